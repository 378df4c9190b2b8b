"""What one batch did, as a value: the only thing pipelines report, whoever listens.

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
    """One finished batch of one pipeline. Counts are of this batch alone; seconds are wall time."""

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
    """Changes of this batch that had nothing to change: no-op updates, deletes of unknown keys."""
    records_out: int = 0
    tombstones: int = 0
    lost: int = 0
    """Records of these that the broker has not acknowledged: above 0 with 'sink.delivery-guarantee' = 'none' alone."""
    bad_records: int = 0
    unexpected_rows: int = 0
    """Rows that are not as the gate's suite expects: put aside (quarantine) or written and sent all the same (warn; a
    row counts for each expectation it does not meet)."""
    keys_in_two_partitions: int = 0
    pending_records: int | None = None
    """How many offsets (ingest) or table versions (publish) are left; None when not known."""
    event_time_lag_seconds: float | None = None
    """Now minus the newest value of the watermark column in this batch; None without a WATERMARK."""
    watermark_ms: int | None = None
    """Epoch milliseconds up to which event time is complete, by the WATERMARK clause: the smallest of all partitions
    that are not idle; None without one, or while a partition has none."""
    engine: str | None = None
    """What merged the batch into the table, and why that (ingest); None where rows have no key."""
    warning: str | None = None
    """Something a user should know though the batch is done."""
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """All fields, JSON-ready."""
        return asdict(self)


Listener = Callable[[BatchReport], None]
"""Told after each batch has been committed; it must not raise."""


def ignore(report: BatchReport) -> None:
    """The listener that does not listen."""


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
    """A whole run: the sums of its batches, and where it ended."""

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
    """How often the section `maintenance` was carried out (ingest)."""
    warning: str | None = None
    seconds: float = 0.0

    def plus(self, report: BatchReport) -> Summary:
        """The summary with one more batch: counts add up, positions and lags are those of the last batch."""
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
    """The time, in epoch milliseconds."""
    return time.time_ns() // 1_000_000
