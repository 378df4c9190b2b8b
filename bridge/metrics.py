"""Defines the report of a batch and the summary of a run, which pipelines pass to their listeners.

Names follow Flink's connector metrics where it has one (numRecordsIn, pendingRecords, ...).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

__all__ = ["BatchReport", "Listener", "Summary", "ignore", "now_ms"]


@dataclass(frozen=True)
class BatchReport:
    """One committed batch of a pipeline. Counts cover this batch only; seconds are wall-clock time."""

    pipeline: str
    verb: str
    """`ingest` or `publish`."""
    batch: int
    version: int | None = None
    """The Delta version written (ingest) or published up to (publish)."""
    records_in: int = 0
    """Kafka records read (ingest)."""
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    unchanged: int = 0
    """Changes without effect on the table: no-op updates and deletes of unknown keys."""
    records_out: int = 0
    tombstones: int = 0
    lost: int = 0
    """Sent records that the broker did not acknowledge: above 0 only with 'sink.delivery-guarantee' = 'none'."""
    bad_records: int = 0
    unexpected_rows: int = 0
    """Rows that fail the gate: quarantined, or with `gate: warn` applied anyway. With `warn` a row counts once for each
    expectation that it fails."""
    keys_in_two_partitions: int = 0
    pending_records: int | None = None
    """Offsets (ingest) or table versions (publish) that are still pending; None when unknown."""
    event_time_lag_seconds: float | None = None
    """The current time minus the newest value of the watermark column in this batch; None without a WATERMARK."""
    watermark_ms: int | None = None
    """The watermark in epoch milliseconds: the smallest of all partitions that are not idle. None without a WATERMARK
    clause, or while a partition has no watermark yet."""
    engine: str | None = None
    """The merge engine of this batch and the reason for it (ingest); None where rows have no key."""
    reader: str | None = None
    """What read the records of this batch (ingest): `consumer`, or `spark` and why consumers could not."""
    warning: str | None = None
    """A problem that did not fail the batch, for the user."""
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """All fields, JSON-ready."""
        return asdict(self)


Listener = Callable[[BatchReport], None]
"""Called after each batch has been committed; it must not raise."""


def ignore(report: BatchReport) -> None:
    """Ignores the report: the default listener."""


_SUMMED = (
    "records_in",
    "inserted",
    "updated",
    "deleted",
    "unchanged",
    "records_out",
    "tombstones",
    "lost",
    "bad_records",
    "unexpected_rows",
    "keys_in_two_partitions",
)


@dataclass(frozen=True)
class Summary:
    """The totals of a run, and its last position."""

    pipeline: str
    verb: str
    batches: int = 0
    version: int | None = None
    records_in: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    unchanged: int = 0
    records_out: int = 0
    tombstones: int = 0
    lost: int = 0
    bad_records: int = 0
    unexpected_rows: int = 0
    keys_in_two_partitions: int = 0
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
        sums = {name: getattr(self, name) + getattr(report, name) for name in _SUMMED}
        return replace(
            self,
            batches=self.batches + 1,
            version=self.version if report.version is None else report.version,
            pending_records=report.pending_records,
            event_time_lag_seconds=report.event_time_lag_seconds,
            watermark_ms=report.watermark_ms,
            **sums,
        )

    def as_dict(self) -> dict[str, Any]:
        """All fields, JSON-ready."""
        return asdict(self)


def now_ms() -> int:
    """Returns the current time in epoch milliseconds."""
    return time.time_ns() // 1_000_000
