"""Defines the counts and the report of a batch, which pipelines pass to their listeners, and the summary of a run.

Names follow Flink's connector metrics where it has one (numRecordsIn, pendingRecords, ...).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, NamedTuple

from bridge.metrics.datasets import Assertion


class RunName(NamedTuple):
    """What a run is called where it is watched."""

    pipeline: str
    verb: str
    topic: str = ""


@dataclass(frozen=True)
class Step:
    """A part of a batch: when it began, in epoch milliseconds, and how long it took."""

    name: str
    began_ms: int
    seconds: float


@dataclass(frozen=True)
class PartitionRead:
    """The offsets of a partition that a batch contains: from `first` on, below `next`; `end` is where it ends now."""

    topic: str
    partition: int
    first: int
    next: int
    end: int


@dataclass(frozen=True, kw_only=True)
class Counts:
    """What batches did, which a run sums up; bytes are those of keys and values before compression."""

    records_in: int = 0
    """Kafka records read (ingest)."""
    bytes_in: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    unchanged: int = 0
    """Changes without effect on the table: no-op updates and deletes of unknown keys."""
    records_out: int = 0
    tombstones: int = 0
    bytes_out: int = 0
    lost: int = 0
    """Sent records that the broker did not acknowledge: above 0 only with 'sink.delivery-guarantee' = 'none'."""
    bad_records: int = 0
    quarantined: int = 0
    """Bad records, and rows that fail the gate, that were written to the quarantine."""
    unexpected_rows: int = 0
    """Rows that fail the gate: quarantined, or with `gate: warn` applied anyway. With `warn` a row counts once for each
    expectation that it fails."""
    keys_in_two_partitions: int = 0
    files_written: int = 0
    """Data files that a commit added; one whose rows are only marked as deleted is not new."""
    bytes_written: int = 0
    files_rewritten: int = 0
    """Data files that a commit removed, as their rows are in other files now, or nowhere."""
    bytes_rewritten: int = 0
    transactions: int = 0
    """Transactions in which records were sent (publish)."""
    failed_expectations: int = 0
    """Expectations of a suite that were not met (check)."""
    differing_keys: int = 0
    """Keys whose rows differ between topic and table (verify)."""
    failed_comparisons: int = 0
    """Comparisons that ended in an error, so that nothing is known of rows (verify)."""

    def sums(self, other: Counts) -> dict[str, Any]:
        """Returns each count of both together, by its name."""
        return {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(Counts)}


@dataclass(frozen=True)
class BatchReport(Counts):
    """One committed batch of a pipeline. Counts cover this batch only; seconds are wall-clock time."""

    pipeline: str
    verb: str
    """`ingest`, `publish`, `check`, `verify`, or `insert` for a result of a script."""
    batch: int
    topic: str = ""
    """The topic or topics that are read or written; empty for a result of a script."""
    version: int | None = None
    """The Delta version written (ingest) or published up to (publish)."""
    first_version: int | None = None
    """The first of the versions that were published (publish)."""
    table: str = ""
    """Delta's id of the table; empty for a result of a script."""
    pending_records: int | None = None
    """Offsets (ingest) or table versions (publish) that are still pending; None when unknown."""
    oldest_record_ms: int | None = None
    """The timestamp of the oldest record of the batch (ingest), epoch milliseconds; None where records have none."""
    newest_record_ms: int | None = None
    read_ms: int | None = None
    """When the records had been read (ingest), epoch milliseconds."""
    committed_ms: int | None = None
    """When the batch was in the table or in the topic, epoch milliseconds."""
    event_time_lag_seconds: float | None = None
    """The current time minus the newest value of the watermark column in this batch; None without a WATERMARK."""
    watermark_ms: int | None = None
    """The watermark in epoch milliseconds: the smallest of all partitions that are not idle. None without a WATERMARK
    clause, or while a partition has no watermark yet."""
    engine: str | None = None
    """The merge engine of this batch and, in brackets, the reason for it (ingest); None where rows have no key."""
    reader: str | None = None
    """What read the records of this batch (ingest): `consumer`, or `spark` and, in brackets, why not they."""
    sender: str | None = None
    """What sent the records (publish): `driver`, or `tasks` and, in brackets, why not it."""
    encoder: str | None = None
    """What encoded the records (publish): `driver`, `tasks`, or `spark` and, in brackets, why not they."""
    warning: str | None = None
    """A problem that did not fail the batch, for the user."""
    send_seconds: float | None = None
    """How long it took to send the records (publish)."""
    seconds: float = 0.0
    log_commits: int | None = None
    """Commits of the table since its last checkpoint (ingest); None when unknown."""
    expectations: Mapping[str, int] | None = None
    """How many expectations of the suite were met, failed, or could not be evaluated (check)."""
    assertions: tuple[Assertion, ...] = ()
    """Whether each expectation was met (check), once for each of its columns."""
    steps: tuple[Step, ...] = ()
    sent_to: tuple[tuple[str, int, int | None, int], ...] = ()
    """Topic, partition, first offset and end (exclusive) of what was sent (publish), where that moved. They are known
    at-least-once and of topics with a key; the first offset is None where it is not known."""
    partitions: tuple[PartitionRead, ...] = ()
    """What the batch contains of each partition (ingest), in order of topic and partition; empty where they are more
    than a hundred."""

    def warned(self, text: str) -> BatchReport:
        """Returns the report with one more warning."""
        return replace(self, warning="; ".join(filter(None, (self.warning, text))))

    def as_dict(self) -> dict[str, Any]:
        """All fields, JSON-ready."""
        return asdict(self)


Listener = Callable[[BatchReport], None]
"""Called after each batch has been committed; it must not raise."""


def ignore(report: BatchReport) -> None:
    """Ignores the report: the default listener."""


@dataclass(frozen=True)
class Summary(Counts):
    """The totals of a run, and its last position."""

    pipeline: str
    verb: str
    batches: int = 0
    version: int | None = None
    pending_records: int | None = None
    event_time_lag_seconds: float | None = None
    watermark_ms: int | None = None
    maintained: int = 0
    """How often maintenance ran between batches (ingest)."""
    has_ended: bool = False
    """Whether all that a bounded topic has until its bound is in the table (ingest)."""
    warning: str | None = None
    seconds: float = 0.0

    def plus(self, report: BatchReport) -> Summary:
        """Adds a batch: sums its counts, and takes over its position and lags."""
        return replace(
            self,
            batches=self.batches + 1,
            version=self.version if report.version is None else report.version,
            pending_records=report.pending_records,
            event_time_lag_seconds=report.event_time_lag_seconds,
            watermark_ms=report.watermark_ms,
            **self.sums(report),
        )

    def as_dict(self) -> dict[str, Any]:
        """All fields, JSON-ready."""
        return asdict(self)


def now_ms() -> int:
    """Returns the current time in epoch milliseconds."""
    return time.time_ns() // 1_000_000
