"""How large a table's log is after many small batches, and how long it takes to open the table."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from benchmarks.goals import Outcome, at_most
from benchmarks.ground import Ground
from bridge.definition import DeltaTarget
from bridge.delta.log_cleanup import checkpoint_if_due
from bridge.delta.table import create_table
from bridge.lake.local_store import LocalStore

_BATCHES = 2_000
_RETENTION_SECONDS = 2
_KEEP = f"interval {_RETENTION_SECONDS} seconds"
_FLAT, _FLAT_OPEN = 1.3, 2.0


@dataclass(frozen=True)
class _Log:
    files: int
    kilobytes: float
    open_ms: float


def outcomes(ground: Ground) -> list[Outcome]:
    """Commit batches of one row, with the clean-up that follows each commit of an ingest, under a retention of a few
    seconds; the log at a fifth of them beside the log at their end. The first commits fill the retention."""
    place = ground.folder / "log-size"
    properties = {"delta.logRetentionDuration": _KEEP, "delta.deletedFileRetentionDuration": _KEEP}
    fields = ground.spark.sql("SELECT CAST(NULL AS BIGINT) AS id").schema.fields
    table = create_table(
        ground.spark, DeltaTarget(path=str(place), properties=properties), fields, pipeline="log-size"
    )
    target, store = DeltaTable(str(place)), LocalStore(str(place))
    early = _BATCHES // 5
    first: list[_Log] = []
    last: list[_Log] = []
    for number in range(1, _BATCHES + 1):
        write_deltalake(target, pa.table({"id": pa.array([number], pa.int64())}), mode="overwrite")
        target.update_incremental()
        properties = target.metadata().configuration
        checkpoint_if_due(properties, table, target.version(), store, lambda: target)
        if number % 20 == 0 and number >= early and not early * 2 <= number < _BATCHES - early:
            (first if number < early * 2 else last).append(_measured(place))
    ground.say(f"log of {_BATCHES:,} batches: {len(first)} and {len(last)} measurements")
    name = f"log: {_BATCHES:,} small batches / {early * 2:,}"
    return [
        at_most(f"{name}, files", "files", _middle(first, "files"), _middle(last, "files"), _FLAT),
        at_most(f"{name}, size", "kB", _middle(first, "kilobytes"), _middle(last, "kilobytes"), _FLAT),
        at_most(
            f"{name}, opening the table",
            "ms",
            _middle(first, "open_ms"),
            _middle(last, "open_ms"),
            _FLAT_OPEN,
        ),
    ]


def _measured(place: Path) -> _Log:
    sizes = []
    for file in (place / "_delta_log").iterdir():
        try:
            sizes.append(file.stat().st_size)
        except FileNotFoundError:
            continue  # the clean-up took it meanwhile
    started = time.perf_counter()
    DeltaTable(str(place))
    return _Log(len(sizes), sum(sizes) / 1000, (time.perf_counter() - started) * 1000)


def _middle(logs: list[_Log], field: str) -> float:
    return statistics.median(float(getattr(log, field)) for log in logs)
