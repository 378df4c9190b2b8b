"""Reads a history: topics by plain consumers, the log file by file, rows by Spark's own reader. No bridge."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from tests.faults.history import Acked, Commit, History, Record, Row
from tests.reader import messages

__all__ = ["Observer", "Stall", "ends", "leftovers", "log_scratch", "open_transactions", "rows_of"]

_WAIT = 60.0
Rows = Callable[[int], list[tuple[int, Row]]]
"""(key, row) of a version of the table."""


class Observer:
    """Follows the topics (in, and out if there is one), the log and the ledger; `look` reads what is new."""

    def __init__(self, bootstrap: str, topics: Sequence[str], table: Path, ledger: Path, rows: Rows) -> None:
        self.history = History()
        self._bootstrap, self._topics = bootstrap, topics
        self._log, self._ledger, self._rows = table / "_delta_log", ledger, rows
        self._ledger_read = 0
        self._version = -1
        self._next: dict[tuple[str, str], dict[int, int]] = {}

    def look(self) -> History:
        """Everything up to now; first what comes last, so that causes are never missing for effects."""
        history = self.history
        for topic in self._topics[1:]:
            history.topic_out += self._records(topic, "read_committed")
        history.commits += self._commits()
        if history.commits:
            history.table = self._rows(history.commits[-1].version)
        history.ledger += self._lines()
        history.topic_in += self._records(self._topics[0], "read_committed")
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
        """The versions that an ingest has written."""
        while (file := self._log / f"{self._version + 1:020}.json").exists():
            self._version += 1
            actions = [json.loads(line) for line in file.read_text().splitlines()]
            info: dict[str, Any] = next((a["commitInfo"] for a in actions if "commitInfo" in a), {})
            told = _progress(info.get("userMetadata"))
            txns = [a["txn"]["version"] for a in actions if "txn" in a]
            if told is not None:
                (offsets,) = told["offsets"].values() or ({},)
                vector = {int(partition): offset for partition, offset in offsets.items()}
                yield Commit(self._version, txns[0] if txns else -1, told["batch"], vector)

    def _records(self, topic: str, isolation: str) -> Iterator[Record]:
        places = self._next.setdefault((topic, isolation), {})
        for message in messages(self._bootstrap, topic, places, isolation=isolation):
            value, key = message.value(), message.key()
            assert key is not None
            row = None
            if value is not None:
                told = json.loads(value)
                row = told["seq"], told["writer"], told["seed"]
            yield Record(message.partition() or 0, message.offset() or 0, json.loads(key)["id"], row)


def _progress(text: str | None) -> dict[str, Any] | None:
    try:
        found = json.loads(text or "")["bridge"]
    except (ValueError, TypeError, KeyError):
        return None
    return found if isinstance(found, dict) and "batch" in found else None


def rows_of(spark: Any, path: Path) -> Rows:
    """The table's rows at a version, by Spark's own reader."""

    def rows(version: int) -> list[tuple[int, Row]]:
        frame = spark.read.format("delta").option("versionAsOf", version).load(str(path))
        found = frame.select("id", "seq", "writer", "seed").collect()
        return [(r["id"], (r["seq"], r["writer"], r["seed"])) for r in found]

    return rows


def ends(
    admin: AdminClient, topic: str, partitions: Iterable[int], isolation: IsolationLevel
) -> dict[int, int]:
    """The end of each partition for readers of committed, or of all records."""
    latest: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    asked = {TopicPartition(topic, p): latest for p in partitions}
    found = admin.list_offsets(asked, isolation_level=isolation, request_timeout=10)
    return {place.partition: future.result().offset for place, future in found.items()}


class Stall:
    """The longest time that readers of committed records waited for the next record of a partition that was there."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._since: dict[int, tuple[int, float]] = {}

    def look(self, now: float, committed: Mapping[int, int], everything: Mapping[int, int]) -> None:
        """The ends of the partitions at a time, for readers of committed and of all records."""
        for partition, end in committed.items():
            if end >= everything[partition]:
                self._since.pop(partition, None)
                continue
            before, began = self._since.get(partition, (end, now))
            self._since[partition] = (end, began if before == end else now)
            self.longest = max(self.longest, now - self._since[partition][1])


def open_transactions(bootstrap: str) -> list[str]:
    """Partitions whose readers of committed records are kept from the end: a transaction is open there."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    topics = admin.list_topics(timeout=_WAIT).topics
    found = []
    for name, topic in topics.items():
        committed = ends(admin, name, topic.partitions, IsolationLevel.READ_COMMITTED)
        everything = ends(admin, name, topic.partitions, IsolationLevel.READ_UNCOMMITTED)
        found += [f"{name}-{p}" for p in committed if committed[p] < everything[p]]
    return sorted(found)


_LOG_FILES = re.compile(
    r"\.?(\d{20}\.(json|crc|checkpoint(\..+)?\.parquet)|_last_checkpoint)(\.crc)?|_sidecars|_commits|_staged_commits"
)


_LOG_SCRATCH = re.compile(
    r"\.{1,2}\d{20}\.[a-z.0-9]+\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.tmp(\.crc)?"
)


def log_scratch(table: Path) -> list[str]:
    """Temporary files of Delta's own log writer; a kill in the middle of a write leaves one. They are no part of the
    table, and Delta takes them for files of a writer that may still be at work: it never deletes them."""
    return sorted(p.name for p in (table / "_delta_log").iterdir() if _LOG_SCRATCH.fullmatch(p.name))


def leftovers(checkpoints: Iterable[Path], table: Path) -> list[str]:
    """Files that a run should have taken with it: scratch folders, half-written progress, and whatever else is in the
    log's folder but `log_scratch`."""
    found = [path for checkpoint in checkpoints for path in (checkpoint / "ingest").glob("*")]
    found += [path for checkpoint in checkpoints for path in checkpoint.rglob("*.tmp")]
    known = (_LOG_FILES, _LOG_SCRATCH)
    inside = (table / "_delta_log").iterdir()
    found += [path for path in inside if not any(form.fullmatch(path.name) for form in known)]
    return sorted(map(str, found))
