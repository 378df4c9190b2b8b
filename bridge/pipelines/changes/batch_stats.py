"""Counts of a batch of changes, in one pass that also fills the cache which the write then reads."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge import compact
from bridge.backend import is_connect
from bridge.columns import BAD, KIND, POSITION, col
from bridge.decode import DROPPED, SKIP, UNAVAILABLE
from bridge.definition import Definition
from bridge.formats.base import NEEDS_FULL_DECODE
from bridge.kafka.read_counts import ReadCounts
from bridge.metrics import now_ms
from bridge.offsets import TopicPartition
from bridge.pipelines.changes import row_gate
from bridge.pipelines.changes.good_changes import is_good, sets_row
from bridge.pipelines.changes.truncates import Place, places_aggregate
from bridge.schema import TableSchema
from bridge.spark_versions import or_public

_LONGEST = 100
"""Characters of a value in an error."""
_OBSERVATION_TIMEOUT_SECONDS = 5.0
_READ = ("records", "bytes", "oldest_ms", "newest_ms")
"""The fields of ReadCounts that are counted."""


@dataclass(frozen=True)
class BatchStats:
    """Counts of changes."""

    good: int
    upserts: int
    """Good changes that set a row."""
    bad: int
    """Without those that the gate diverts."""
    skipped: int
    dropped: int
    needs_full_decode: int
    unavailable: int
    """Changes with unavailable values."""
    two_partitions: int
    first_bad: str | None = None
    """Partition, offset, key where it is known, and reason of the first bad change; None if there is none."""
    newest_event_ms: dict[TopicPartition, int] = field(default_factory=dict)
    diverted: int = 0
    truncates: Sequence[Place] | None = None
    """The places of the first and the last truncate; None where there is none."""
    gate_values: Sequence[int] | None = None
    """The value of `row_gate.counts_aggregate`; None where the rows to be written are known only after the fold."""


def collect_batch_stats(definition: Definition, changes: DataFrame) -> BatchStats:
    """Count decoded `changes`: one small job, and a second one where the table has a WATERMARK."""
    diverted, good = row_gate.is_diverted(), is_good()
    bad = col(BAD).isNotNull() & ~diverted
    two_partitions = (
        F.count_if(col(compact.TWO_PARTITIONS) & good)
        if compact.TWO_PARTITIONS in changes.columns
        else F.lit(0)
    )
    unavailable = F.count_if(F.size(UNAVAILABLE) > 0) if UNAVAILABLE in changes.columns else F.lit(0)
    place = F.struct(*[col(POSITION).getField(part) for part in ("topic", "partition", "offset")])
    is_folded = definition.topic.appends or definition.compacts_first
    gate_values = row_gate.counts_aggregate(definition, changes, good) if is_folded else F.lit(None)
    row = changes.agg(
        F.count_if(good).alias("good"),
        F.count_if(sets_row()).alias("upserts"),
        F.count_if(bad).alias("bad"),
        F.count_if(col(BAD) == NEEDS_FULL_DECODE).alias("needs_full_decode"),
        F.count_if(col(BAD).isNull() & (col(KIND) == SKIP)).alias("skipped"),
        F.count_if(col(BAD).isNull() & (col(KIND) == DROPPED)).alias("dropped"),
        F.min(
            F.when(bad, F.struct(place.alias("place"), _row(definition, changes), col(BAD).alias("reason")))
        ).alias("first_bad"),
        unavailable.alias("unavailable"),
        two_partitions.alias("two_partitions"),
        F.count_if(diverted).alias("diverted"),
        places_aggregate(changes, definition).alias("truncates"),
        gate_values.alias("gate_values"),
    ).first()
    assert row is not None
    counts = row.asDict()
    first_bad = counts.pop("first_bad")
    if first_bad is not None:
        coordinates = "{topic}-{partition} at offset {offset}".format(**first_bad["place"].asDict())
        first_bad = f"{coordinates}{first_bad['row']}: {first_bad['reason']}"
    newest_event_ms = _newest_event_times(definition.topic.schema, changes)
    return BatchStats(**counts, first_bad=first_bad, newest_event_ms=newest_event_ms)


def _row(definition: Definition, changes: DataFrame) -> Column:
    """The key as text, such as `, row (id: 5)`, without the values that `peek.hide` hides.

    Empty where it is not known: it could not be decoded, or the table has none.
    """
    key, hidden = definition.topic.identity, definition.peek_hides
    if not key:
        return F.lit("").alias("row")
    is_known = reduce(or_, (col(name).isNotNull() for name in key))
    texts = {
        name: F.lit("***") if {name, "*"} & set(hidden) else _shown(name, changes.schema[name].dataType)
        for name in key
    }
    named = [F.concat(F.lit(f"{name}: "), F.coalesce(text, F.lit("NULL"))) for name, text in texts.items()]
    row = F.concat(F.lit(", row ("), F.concat_ws(", ", *named), F.lit(")"))
    return F.when(is_known, row).otherwise("").alias("row")


def _shown(name: str, type: T.DataType) -> Column:
    """A value of a key on one line of a log."""
    text = F.hex(col(name)) if isinstance(type, T.BinaryType) else col(name).cast("string")
    return F.regexp_replace(F.left(text, F.lit(_LONGEST)), r"\p{Cntrl}", "?")


def _newest_event_times(schema: TableSchema, changes: DataFrame) -> dict[TopicPartition, int]:
    if schema.watermark is None:
        return {}
    event_ms = F.max(col(schema.watermark.column).cast("timestamp").cast("double") * 1000).cast("bigint")
    rows = (
        changes.where(is_good())
        .groupBy(col(POSITION).getField("topic"), col(POSITION).getField("partition"))
        .agg(event_ms.alias("ms"))
        .collect()  # a row per partition
    )
    return {(row[0], row[1]): row[2] for row in rows if row[2] is not None}


class ReadCounter:
    """Counts what the first job over a frame has read. See `count_reads`."""

    def __init__(self, observation: Observation | None, frame: DataFrame) -> None:
        self._observation, self._frame = observation, frame

    def value(self) -> ReadCounts:
        """Return the counts after that job, none if Spark sends none.

        Spark sends them after the job, and never if its optimizer found nothing to read; Observation.get would then
        wait for ever. A Spark in which nothing else can be asked counts by another job.
        """
        return or_public(self._observed, self._counted)

    def _observed(self) -> ReadCounts:
        deadline = time.monotonic() + _OBSERVATION_TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            metrics = self._observation._jo.getOrEmpty()  # type: ignore[union-attr]
            if not metrics.isEmpty():
                return ReadCounts(**{name: metrics.apply(name) for name in _READ}, at_ms=now_ms())
        return ReadCounts()

    def _counted(self) -> ReadCounts:
        row = self._frame.agg(*_aggregates()).first()
        assert row is not None
        return ReadCounts(**row.asDict(), at_ms=now_ms())


def count_reads(frame: DataFrame) -> tuple[DataFrame, ReadCounter]:
    """Return `frame`, records of a topic, to be used in its place, and the counter of what is read of it."""
    if is_connect(frame):  # its client takes no plan that has an observed frame twice, as a join with itself
        return frame, ReadCounter(None, frame)
    observation = Observation()
    return frame.observe(observation, *_aggregates()), ReadCounter(observation, frame)


def _aggregates() -> list[Column]:
    """A column for each name of `_READ`."""
    sizes = [F.coalesce(F.octet_length(col(name)), F.lit(0)) for name in ("key", "value")]
    ms = F.unix_millis(col("timestamp"))
    times = F.when(ms >= 0, ms)  # Kafka's -1 is no time
    aggregates = (
        F.count(F.lit(1)),
        F.coalesce(F.sum(sizes[0] + sizes[1]), F.lit(0)),
        F.min(times),
        F.max(times),
    )
    return [made.alias(name) for made, name in zip(aggregates, _READ, strict=True)]
