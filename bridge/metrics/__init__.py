"""The counts of batches and runs, and the metrics that are made of them (docs/metrics.md)."""

from bridge.metrics.reports import (
    BatchReport,
    Counts,
    Listener,
    PartitionRead,
    RunName,
    Step,
    Summary,
    ignore,
    now_ms,
)

__all__ = [
    "BatchReport",
    "Counts",
    "Listener",
    "PartitionRead",
    "RunName",
    "Step",
    "Summary",
    "ignore",
    "now_ms",
]
