"""A batch of the reader `consumer`: it is read, decoded and compacted already, so it is merged and reported."""

from __future__ import annotations

from dataclasses import replace

from bridge import failpoints
from bridge.definition import Definition
from bridge.delta.engine_choice import Engines, changes_frame
from bridge.delta.table import Table
from bridge.ingest_progress import IngestProgress
from bridge.pipelines.changes import row_gate
from bridge.pipelines.ingest.batch import AppliedBatch
from bridge.pipelines.ingest.consumer_reader import LatestBatch

__all__ = ["apply_latest"]


def apply_latest(
    definition: Definition, table: Table, batch: LatestBatch, progress: IngestProgress, *, engines: Engines
) -> AppliedBatch:
    """Apply `batch` to `table`, in one commit that carries `progress`. Does and raises as `apply_batch` does for the
    same records."""
    unexpected, warnings = _judged(definition, table, batch)
    failpoints.hit("ingest.before-merge")
    merged = engines.merge(
        table,
        batch.changes,
        key=definition.primary_key,
        adds=batch.upserts,
        progress=replace(progress, newest_ms=batch.read.newest_ms),
    )
    failpoints.hit("ingest.after-merge")
    result = merged.result
    return AppliedBatch(
        merged=result,
        read=batch.read,
        bad=0,
        unchanged=result.unchanged(batch.changes.num_rows),
        two_partitions=0,
        newest_event_ms=batch.newest_event_ms,
        needed_full_decode=False,
        engine=str(merged),
        reader="consumer",
        unexpected=unexpected,
        warnings=warnings,
    )


def _judged(definition: Definition, table: Table, batch: LatestBatch) -> tuple[int, tuple[str, ...]]:
    """How many rows break a rule of the gate, and its warnings. Raises QualityError under `gate: fail`."""
    if definition.gate is None:
        return 0, ()
    rows = changes_frame(table, batch.changes)
    return row_gate.enforce_before_write(definition, rows, row_gate.aggregate(definition, rows))
