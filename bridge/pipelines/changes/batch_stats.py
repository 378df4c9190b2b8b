"""What is in a batch of changes: one pass over it, which also fills the cache that the write then reads."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from bridge import compact
from bridge.columns import BAD, KIND, POSITION, col, retracts
from bridge.decode import DROPPED, SKIP, UNAVAILABLE
from bridge.definition import Definition
from bridge.formats.base import NEEDS_FULL_DECODE
from bridge.offsets import TopicPartition
from bridge.pipelines.changes import changelog_decode, row_gate
from bridge.schema import TableSchema

__all__ = ["BatchStats", "RowCounter", "collect_batch_stats"]

_PATIENCE_SECONDS = 5.0


@dataclass(frozen=True)
class BatchStats:
    """Counts of changes. `first_bad` names the first bad one's place and reason; None when all are good. Those that the
    gate puts aside are `diverted`, and not `bad`."""

    good: int
    upserts: int
    """The good ones that do not take their row away."""
    bad: int
    skipped: int
    dropped: int
    needs_full_decode: int
    unavailable: int
    two_partitions: int
    first_bad: str | None = None
    newest_event_ms: dict[TopicPartition, int] = field(default_factory=dict)
    diverted: int = 0
    gate_counts: row_gate.Counts = ()
    """What the gate counts in the rows to be written, where these are known before anything is folded."""


def collect_batch_stats(definition: Definition, changes: DataFrame) -> BatchStats:
    """Count `changes` (see fold.decoded). Two small jobs where the table has a WATERMARK, else one."""
    schema = definition.topic.schema
    diverted, good = row_gate.is_diverted(), changelog_decode.is_good()
    bad = col(BAD).isNotNull() & ~diverted
    two = (
        F.count_if(col(compact.TWO_PARTITIONS) & good)
        if compact.TWO_PARTITIONS in changes.columns
        else F.lit(0)
    )
    kept = F.count_if(F.size(UNAVAILABLE) > 0) if UNAVAILABLE in changes.columns else F.lit(0)
    where = F.struct(*[col(POSITION).getField(part) for part in ("topic", "partition", "offset")])
    is_folded = definition.topic.appends or changelog_decode.compacts_first(definition)
    judging = row_gate.counts_aggregate(definition, changes, good) if is_folded else F.lit(None)
    row = changes.agg(
        F.count_if(good).alias("good"),
        F.count_if(good & ~retracts()).alias("adds"),
        F.count_if(bad).alias("bad"),
        F.count_if(col(BAD) == NEEDS_FULL_DECODE).alias("doubtful"),
        F.count_if(col(BAD).isNull() & (col(KIND) == SKIP)).alias("skipped"),
        F.count_if(col(BAD).isNull() & (col(KIND) == DROPPED)).alias("dropped"),
        F.min(F.when(bad, F.struct(where.alias("at"), col(BAD).alias("why")))).alias("first_bad"),
        kept.alias("kept"),
        two.alias("two"),
        F.count_if(diverted).alias("diverted"),
        judging.alias("judged"),
    ).first()
    assert row is not None
    first = row["first_bad"]
    return BatchStats(
        good=row["good"],
        upserts=row["adds"],
        bad=row["bad"],
        skipped=row["skipped"],
        dropped=row["dropped"],
        needs_full_decode=row["doubtful"],
        unavailable=row["kept"],
        two_partitions=row["two"],
        first_bad=first
        and "{topic}-{partition} at offset {offset}: ".format(**first["at"].asDict()) + first["why"],
        newest_event_ms=_newest_event_times(schema, changes),
        diverted=row["diverted"],
        gate_counts=row_gate.read_counts(definition, changes, row["judged"]),
    )


def _newest_event_times(schema: TableSchema, changes: DataFrame) -> dict[TopicPartition, int]:
    if schema.watermark is None:
        return {}
    moment = F.max(col(schema.watermark.column).cast("timestamp").cast("double") * 1000).cast("bigint")
    rows = (
        changes.where(changelog_decode.is_good())
        .groupBy(col(POSITION).getField("topic"), col(POSITION).getField("partition"))
        .agg(moment.alias("ms"))
        .collect()  # a row per partition
    )
    return {(row[0], row[1]): row[2] for row in rows if row[2] is not None}


class RowCounter:
    """Counts the rows of a frame as a job passes over them."""

    def __init__(self) -> None:
        self._seen = Observation()

    def observe(self, frame: DataFrame) -> DataFrame:
        """`frame`, to be used instead."""
        return frame.observe(self._seen, F.count(F.lit(1)).alias("rows"))

    def value(self) -> int:
        """The rows of the first job over the frame. Spark sends them after the job; where its optimizer has found that
        there is nothing to read it never does, and Observation.get would wait for ever."""
        until = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < until:
            found = self._seen._jo.getOrEmpty()  # type: ignore[union-attr]
            if not found.isEmpty():
                return int(found.apply("rows"))
        return 0
