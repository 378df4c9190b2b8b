"""One batch of records, applied: decode, judge, compact, merge."""

from __future__ import annotations

import time
from dataclasses import dataclass

from pyspark.sql import DataFrame, Observation, Row
from pyspark.sql import functions as F

from bridge import compact
from bridge.columns import BAD, POSITION, col
from bridge.definition import Definition
from bridge.delta.merge import MergeResult, merge
from bridge.delta.progress import IngestProgress
from bridge.delta.table import Table
from bridge.errors import BadRecordError
from bridge.formats.base import DOUBTFUL
from bridge.pipelines import fold

__all__ = ["Applied", "apply"]


_PATIENCE_SECONDS = 5.0


@dataclass(frozen=True)
class Applied:
    """What became of a batch. `unchanged` changes found the table as they wanted it."""

    merged: MergeResult
    records: int
    bad: int
    unchanged: int
    two_partitions: int
    event_time_lag_seconds: float | None
    doubtful: bool


def apply(
    definition: Definition, table: Table, records: DataFrame, progress: IngestProgress, *, glance: bool = True
) -> Applied:
    """Merge the fold of `records` into `table` as one commit that carries `progress`.

    Under `bad-records: fail` only the last record of each key is decoded, and one that cannot be raises
    BadRecordError with nothing written; under `skip` every record is decoded and the last good one counts.
    `glance` first tries the short way to decode, which most topics never leave; `Applied.doubtful` says whether
    this one did, so that the next batch need not try. The frame's session carries the write.
    """
    strict = fold.is_strict(definition)
    seen = Observation()
    changes = fold.decoded(
        records.observe(seen, F.count(F.lit(1)).alias("records")), definition, glance=glance
    ).persist()
    found = _survey(definition, changes)
    doubtful = found["doubtful"] > 0
    if doubtful:
        changes.unpersist()
        changes = fold.decoded(records, definition).persist()
        found = _survey(definition, changes)
    folded = fold.folded(changes, definition)
    try:
        if found["bad"] and strict:
            raise BadRecordError(_first_bad(definition, found))
        keys, two = found["good"], found["two"]
        if strict:
            folded = changes if found["skipped"] == 0 else folded.persist()
        else:
            folded = folded.persist()
            counted = folded.agg(
                F.count(F.lit(1)).alias("keys"), F.count_if(F.col(compact.TWO_PARTITIONS)).alias("two")
            ).first()
            assert counted is not None
            keys, two = counted["keys"], counted["two"]
        merged = merge(
            table.on(records.sparkSession),
            folded,
            key=definition.primary_key,
            progress=progress,
            persisted=True,
        )
    finally:
        folded.unpersist()
        changes.unpersist()
    return Applied(
        merged=merged,
        records=_counted(seen),
        bad=found["bad"] + found["skipped"],
        unchanged=keys - merged.inserted - merged.updated - merged.deleted,
        two_partitions=two,
        event_time_lag_seconds=found["lag"],
        doubtful=doubtful,
    )


def _counted(seen: Observation) -> int:
    """The records that were read. Spark sends them after the job that counted; where its optimizer has found that
    there is nothing to read it never does, and Observation.get would wait for ever."""
    until = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < until:
        found = seen._jo.getOrEmpty()  # type: ignore[union-attr]
        if not found.isEmpty():
            return int(found.apply("records"))
    return 0


def _survey(definition: Definition, changes: DataFrame) -> Row:
    """One pass over the batch: what is in it. This also fills the cache that MERGE then reads twice."""
    watermark = definition.topic.schema.watermark
    now = F.current_timestamp().cast("double")
    lag = now - F.max(col(watermark.column).cast("timestamp")).cast("double") if watermark else F.lit(None)
    bad = col(BAD).isNotNull()
    good = fold.is_good()
    two = (
        F.count_if(col(compact.TWO_PARTITIONS) & good)
        if compact.TWO_PARTITIONS in changes.columns
        else F.lit(0)
    )
    where = F.struct(*[col(POSITION).getField(part) for part in ("topic", "partition", "offset")])
    row = changes.agg(
        F.count_if(good).alias("good"),
        F.count_if(bad).alias("bad"),
        F.count_if(col(BAD) == DOUBTFUL).alias("doubtful"),
        F.count_if(~bad & ~good).alias("skipped"),
        F.min(F.when(bad, F.struct(where.alias("at"), col(BAD).alias("why")))).alias("first_bad"),
        two.alias("two"),
        lag.cast("double").alias("lag"),
    ).first()
    assert row is not None
    return row


def _first_bad(definition: Definition, found: Row) -> str:
    at, why = found["first_bad"]["at"], found["first_bad"]["why"]
    more = f" (and {found['bad'] - 1} more in this batch)" if found["bad"] > 1 else ""
    return (
        f"{at['topic']}-{at['partition']} at offset {at['offset']}: {why}{more}. Nothing of this batch was "
        f"written. Correct the producer and have the key sent again, or set `ingest: {{bad-records: skip}}` in "
        f"the pipeline file of {definition.name!r} to count such records and go on without them"
    )
