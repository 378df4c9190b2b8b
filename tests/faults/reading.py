"""Reads a history without the bridge: topics by plain consumers, the log and the data files one by one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from tests.faults.appended import AppendHistory
from tests.faults.documents import KEY_TYPES, Documents
from tests.faults.history import Acked, Commit, History, Record, UserCommit
from tests.faults.intervals import IntervalHistory
from tests.faults.parquet import Log, rows
from tests.faults.sums import CombinedHistory
from tests.reader import messages

_WAIT = 60.0


class Observer:
    """Follows the topics (input, and output if any), the log and the ledger; `look` reads what is new."""

    def __init__(
        self,
        bootstrap: str,
        topics: Sequence[str],
        table: Path,
        ledger: Path,
        *,
        key: str = "BIGINT",
        format: str = "json",
        registry: str = "",
        quarantine: Path | None = None,
        by_sequence: bool = False,
    ) -> None:
        self.history = History(by_sequence=by_sequence)
        self.log = Log(table)
        self._bootstrap, self._topics, self._ledger = bootstrap, topics, ledger
        self._key, self._documents = KEY_TYPES[key], Documents(key, format, registry)
        self._quarantine = quarantine
        self._ledger_read = 0
        self._next: dict[str, dict[int, int]] = {}

    def look(self) -> History:
        """Reads everything up to now, from the end of the data flow, so that each effect has its cause."""
        history = self.history
        for topic in self._topics[1:]:
            history.topic_out += self.records(topic)
        history.commits += self._commits()
        history.table = self.rows()
        history.quarantine = self._quarantined()
        history.ledger += self._lines()
        history.topic_in += self.records(self._topics[0])
        return history

    def _lines(self) -> Iterator[Acked]:
        if not self._ledger.exists():
            return
        text = self._ledger.read_bytes()[self._ledger_read :]
        whole = text.rpartition(b"\n")[0]
        self._ledger_read += len(whole) + bool(whole)
        for line in whole.splitlines():
            yield Acked(*json.loads(line))

    def _commits(self) -> Iterator[Commit]:
        """Reads the versions that an ingest wrote."""
        for version, actions in self.log.commits():
            commit = commit_of(version, actions)
            if commit is not None:
                self._note(version, actions)
                yield commit
            elif (user := _user_commit(version, actions)) is not None:
                self.history.user_commits.append(user)

    def newest_version(self) -> int:
        """The newest version of the table in its log."""
        return max((int(file.stem) for file in (self.log.table / "_delta_log").glob("*.json")), default=0)

    def _note(self, version: int, actions: Sequence[Mapping[str, Any]]) -> None:
        """Called with each version that an ingest wrote."""

    def rows(self) -> list[tuple[int, tuple[int, str, int]]]:
        columns = list(self._key.columns)
        rows = self.log.rows([*columns, "seq", "writer", "seed"])
        return [(self._key.number(_naive(row[: len(columns)])), row[len(columns) :]) for row in rows]

    def _quarantined(self) -> list[tuple[int, int]]:
        if self._quarantine is None:
            return []
        kept = Log(self._quarantine)
        for _ in kept.commits():
            pass
        return [(row[0], row[1]) for row in kept.rows(["partition", "offset"])]

    def records(self, topic: str) -> Iterator[Record]:
        """Yields what read_committed consumers see; undecodable records are added to the history's `bad`."""
        for message in messages(self._bootstrap, topic, self._next.setdefault(topic, {})):
            key, place = message.key(), (message.partition() or 0, message.offset() or 0)
            try:
                number, row = self._documents.read(key, message.value())
            except ValueError as bad:
                if topic != self._topics[0]:
                    raise AssertionError(f"{topic} {place}: nobody can decode what was published") from bad
                self.history.bad.append(place)
                continue
            ordered = self.history.by_sequence and topic == self._topics[0]
            order = self._documents.order(message.value()) if ordered else 0
            yield Record(*place, number, row, message.timestamp()[1], order)


class AppendObserver(Observer):
    """Follows a topic and a table without a key, whose columns `p` and `o` are the record's partition and offset."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self._added: dict[int, list[tuple[int, int]]] = {}
        self._by_consumers = 0

    def appends(self) -> AppendHistory:
        """Reads everything up to now, as `look` does."""
        seen = self.look()
        columns = [*self._key.columns, "seq", "writer", "seed"]
        table = [
            ((row[0], row[1]), self._key.number(_naive(row[2:-3])), row[-3:])
            for row in self.log.rows(["p", "o", *columns])
        ]
        return AppendHistory(seen.ledger, seen.topic_in, seen.commits, self._added, table, self._by_consumers)

    def _note(self, version: int, actions: Sequence[Mapping[str, Any]]) -> None:
        adds = [action["add"] for action in actions if "add" in action]
        self._added[version] = [place for add in adds for place in rows(self.log.table, add, ["p", "o"])]
        engines = [action["commitInfo"].get("engineInfo", "") for action in actions if "commitInfo" in action]
        self._by_consumers += any(engine.startswith("changelog-bridge/") for engine in engines)


class IntervalObserver(Observer):
    """Follows a topic and the table with the history of its keys."""

    def intervals(self) -> IntervalHistory:
        """Reads everything up to now, as `look` does."""
        seen, columns = self.look(), [*self._key.columns, "seq", "writer", "seed"]
        table = [
            (self._key.number(_naive(row[:-5])), row[-5:-2], _millis(row[-2]), row[-1] and _millis(row[-1]))
            for row in self.log.rows([*columns, "__valid_from", "__valid_to"])
        ]
        return IntervalHistory(seen.ledger, seen.topic_in, seen.commits, table)


class CombinedObserver(Observer):
    """Follows a topic and the table with the combined values of its keys."""

    def sums(self) -> CombinedHistory:
        """Reads everything up to now, as `look` does."""
        seen, columns = self.look(), [*self._key.columns, "seq", "writer", "seed", "low", "high", "tags"]
        table = [
            (self._key.number(_naive(row[:-6])), (*row[-6:-1], tuple(row[-1])))
            for row in self.log.rows(columns)
        ]
        return CombinedHistory(seen.topic_in, seen.commits, table)


def _millis(time: datetime) -> int:
    return round(1000 * time.timestamp())


def _naive(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(v.replace(tzinfo=None) if hasattr(v, "tzinfo") else v for v in values)


def commit_of(version: int, actions: Sequence[Mapping[str, Any]]) -> Commit | None:
    """Returns a version as the commit of an ingest; None for commits of other writers."""
    progress = progress_of(actions)
    if progress is None or not isinstance(progress.get("offsets"), dict):
        return None
    (offsets,) = progress["offsets"].values() or ({},)
    txns = [a["txn"]["version"] for a in actions if "txn" in a]
    vector = {int(partition): offset for partition, offset in offsets.items()}
    return Commit(version, txns[0] if txns else -1, progress["batch"], vector)


def progress_of(actions: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Returns the progress that an ingest stored in a commit; None for commits of other writers."""
    info: Mapping[str, Any] = next((a["commitInfo"] for a in actions if "commitInfo" in a), {})
    try:
        progress = json.loads(info.get("userMetadata") or "")["bridge"]
    except (ValueError, TypeError, KeyError):
        return None
    return progress if isinstance(progress, dict) and "batch" in progress else None


def _user_commit(version: int, actions: Iterable[Mapping[str, Any]]) -> UserCommit | None:
    """Returns the commit of a user that changed rows: none for OPTIMIZE, a new column, an UPDATE to what is there."""
    info: Mapping[str, Any] = next((a["commitInfo"] for a in actions if "commitInfo" in a), {})
    asked = info.get("operationParameters", {})
    if info.get("operation") == "RESTORE":
        return UserCommit(version, int(asked["version"]))
    if info.get("operation") == "UPDATE" and "hash" not in asked.get("predicate", ""):
        return UserCommit(version)
    return None


def ends(
    admin: AdminClient, topic: str, partitions: Iterable[int], isolation: IsolationLevel
) -> dict[int, int]:
    """Returns the end offsets for read_committed or read_uncommitted consumers."""
    latest: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    asked = {TopicPartition(topic, p): latest for p in partitions}
    results = admin.list_offsets(asked, isolation_level=isolation, request_timeout=10)
    return {place.partition: future.result().offset for place, future in results.items()}


class Stall:
    """Measures the longest wait of read_committed consumers for an existing record of a partition."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._since: dict[int, tuple[int, float]] = {}

    def look(self, now: float, committed: Mapping[int, int], everything: Mapping[int, int]) -> None:
        """Adds the end offsets at a time, for read_committed and read_uncommitted consumers."""
        for partition, end in committed.items():
            if end >= everything[partition]:
                self._since.pop(partition, None)
                continue
            before, began = self._since.get(partition, (end, now))
            self._since[partition] = (end, began if before == end else now)
            self.longest = max(self.longest, now - self._since[partition][1])


def open_transactions(bootstrap: str) -> list[str]:
    """Returns the partitions with an open transaction, which blocks read_committed consumers before the end."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    topics = admin.list_topics(timeout=_WAIT).topics
    blocked = []
    for name, topic in topics.items():
        committed = ends(admin, name, topic.partitions, IsolationLevel.READ_COMMITTED)
        everything = ends(admin, name, topic.partitions, IsolationLevel.READ_UNCOMMITTED)
        blocked += [f"{name}-{p}" for p in committed if committed[p] < everything[p]]
    return sorted(blocked)


_LOG_FILES = re.compile(
    r"\.?(\d{20}\.(json|crc|checkpoint(\..+)?\.parquet)|_last_checkpoint|_last_vacuum_info)(\.crc)?|_sidecars|_commits|_staged_commits"
)


_LOG_SCRATCH = re.compile(
    r"\.{1,2}(\d{20}\.[a-z.0-9]+|_last_checkpoint)\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.tmp(\.crc)?"
)


def log_scratch(table: Path) -> list[str]:
    """Returns temporary files of Delta's log writer, which a kill during a write leaves behind. They are not part of
    the table; Delta never deletes them, because their writer might still be running."""
    return sorted(p.name for p in (table / "_delta_log").iterdir() if _LOG_SCRATCH.fullmatch(p.name))


def leftovers(checkpoints: Iterable[Path], table: Path) -> list[str]:
    """Returns files that a run should have deleted: scratch folders, partial progress files, and other files in the
    log's folder except `log_scratch`."""
    files = [path for checkpoint in checkpoints for path in (checkpoint / "ingest").glob("*")]
    files += [path for checkpoint in checkpoints for path in checkpoint.rglob("*.tmp")]
    known = (_LOG_FILES, _LOG_SCRATCH)
    inside = (table / "_delta_log").iterdir()
    files += [path for path in inside if not any(form.fullmatch(path.name) for form in known)]
    return sorted(map(str, files))
