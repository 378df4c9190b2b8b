"""Reads the newest commits of a table's log as plain values, and follows it: without Spark.

Formats: `commitInfo`, `add` and `remove` in "Actions" of the Delta protocol (PROTOCOL.md).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bridge.commit_operations import NO_ROWS, OTHER_NO_ROWS, row_counts
from bridge.errors import TableError
from bridge.ingest_progress import IngestProgress
from bridge.lake.snapshot import Action, Snapshot, last_checkpoint
from bridge.lake.store import Store, at_once
from bridge.log_layout import LOG_FOLDER, commit_path, version_of
from bridge.offsets import Offsets

_AT_A_TIME = 256
_TOO_LATE_MS = 253_402_300_800_000
"""The year 10000, which no date has; microseconds are later than this."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One version of a table. Counts are those of its metrics, an update being one row; 0 where it has none."""

    version: int
    at_ms: int
    """Epoch milliseconds, by its writer; by the store where the writer does not say, or not in milliseconds."""
    operation: str
    """Delta's name; "" where the writer does not say."""
    writer: str
    """The engine that wrote it, such as `Apache-Spark/4.1.1 Delta-Lake/4.3.1`; "" where it does not say."""
    inserted: int
    updated: int
    deleted: int
    files: int = 0
    """Data files added; 0 of a log that is read without files."""
    bytes: int = 0
    """Their size."""
    pipeline: str | None = None
    """The pipeline whose batch it is; None for all other commits."""
    batch: int | None = None
    engine: str = ""
    """The merge engine and, in brackets, the reason for it; "" where nothing was merged."""
    records: int | None = None
    """Offsets from the pipeline's commit before to this one, an upper bound of the records read; of batch 0 from offset
    0. None where the commit before is not known."""
    newest_ms: int | None = None
    """The timestamp of the newest record of the batch; None where the commit does not say."""

    @property
    def rows(self) -> int:
        """Rows inserted, updated and deleted."""
        return self.inserted + self.updated + self.deleted

    @property
    def is_other_writers(self) -> bool:
        """Whether it may have changed rows and is no batch of the bridge."""
        return self.pipeline is None and self.operation not in (*NO_ROWS, *OTHER_NO_ROWS)


class CommitLog:
    """The newest commits of the table in `store`, at most `most` of them, oldest first. For one thread."""

    def __init__(self, store: Store, most: int, *, with_files: bool = False) -> None:
        self._store = store
        self._wanted = ("commitInfo", "add") if with_files else ("commitInfo",)
        self._stamp: str | None = None
        self.commits: deque[Commit] = deque(maxlen=most)
        self.progress: dict[str, tuple[IngestProgress, int]] = {}
        """The newest progress of each pipeline, and its version; after a RESTORE none until the next batch."""
        self.newest = -1
        """The newest version; -1 where there is no table."""

    def follow(self) -> None:
        """Read what has come since, or all anew where this is no longer the same table.

        Raises the store's errors: NotThisWay, OSError; TableError for a commit that is no JSON."""
        try:
            if self.newest < 0 or self._stamp_of(self.newest) != self._stamp:
                self._open()
                return
            while self._read([self.newest + 1]):
                pass
        except BaseException:
            self.newest = -1  # what was read so far may be half of it
            raise

    def _open(self) -> None:
        self.commits.clear()
        self.progress.clear()
        self.newest = -1
        most = self.commits.maxlen or 0
        after = max(0, last_checkpoint(self._store)[0] - most)
        names = self._store.names(LOG_FOLDER, after=f"{after:020}")
        versions = [v for n in names if n.endswith(".json") and (v := version_of(n)) is not None][-most:]
        for begin in range(0, len(versions), _AT_A_TIME):
            self._read(versions[begin : begin + _AT_A_TIME])

    def _read(self, versions: Sequence[int]) -> bool:
        """Whether there was one of them."""
        snapshot = Snapshot(self._store)
        try:
            found = at_once(lambda version: snapshot.read_commit(version, self._wanted), versions)
        except ValueError as failed:
            raise TableError(
                f"a commit among versions {versions[0]} to {versions[-1]} is no JSON"
            ) from failed
        read = [(v, actions) for v, actions in zip(versions, found, strict=True) if actions is not None]
        for version, actions in read:
            self.commits.append(self._commit(version, actions))
        if read:
            self.newest = read[-1][0]
            self._stamp = self._stamp_of(self.newest)
        return bool(read)

    def _commit(self, version: int, actions: Sequence[Action]) -> Commit:
        about: Mapping[str, Any] = next((a["commitInfo"] for a in actions if "commitInfo" in a), {})
        operation = str(about.get("operation") or "")
        metrics = about.get("operationMetrics")
        inserted, updated, deleted = row_counts(operation, metrics if isinstance(metrics, Mapping) else {})
        sizes = [int(action["add"].get("size") or 0) for action in actions if "add" in action]
        at_ms = _ms(about.get("timestamp")) or _ms(about.get("inCommitTimestamp"))
        plain = Commit(
            version,
            at_ms or self._written_ms(version),
            operation,
            str(about.get("engineInfo") or ""),
            inserted,
            updated,
            deleted,
            len(sizes),
            sum(sizes),
        )
        if operation == "RESTORE":
            self.progress.clear()
        return self._with_progress(plain, about.get("userMetadata"))

    def _with_progress(self, commit: Commit, text: str | None) -> Commit:
        parsed = IngestProgress.from_json(text)
        if parsed is None:
            return commit
        progress, _ = parsed
        before = self.progress.get(progress.pipeline)
        self.progress[progress.pipeline] = progress, commit.version
        return replace(
            commit,
            pipeline=progress.pipeline,
            batch=progress.batch,
            engine=progress.engine,
            records=_records(before and before[0], progress),
            newest_ms=progress.newest_ms,
        )

    def _written_ms(self, version: int) -> int:
        head = self._store.head(commit_path(version))
        return 0 if head is None else int(head.modified * 1000)

    def _stamp_of(self, version: int) -> str | None:
        head = self._store.head(commit_path(version))
        return None if head is None else head.stamp


def _ms(value: object) -> int | None:
    """Epoch milliseconds as a writer gives them; None for microseconds, texts and whatever else is no such time."""
    return value if type(value) is int and 0 < value < _TOO_LATE_MS else None


def _records(before: IngestProgress | None, now: IngestProgress) -> int | None:
    if now.starts:
        return 0
    if before is None:
        return Offsets().lag(now.offsets) if now.batch == 0 else None
    return before.offsets.lag(now.offsets)
