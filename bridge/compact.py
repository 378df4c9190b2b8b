"""changes -compact-> changes: one change per key, the last one by its position or by a sequence, or the first one.

An ingest takes the last record of each key, a publish the net change. Spark's WindowGroupLimit makes the former cheap:
it takes the first row per group on the map side, before the shuffle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.columns import AFTER, BEFORE, KIND, POSITION, col, comparable, members, retracts
from bridge.rows import RowKind

TWO_PARTITIONS = "__two_partitions"
"""True for a change whose key is in more than one partition (partitions were added, or a producer chose another)."""

_FIRST = "__first"


def first_by_offset(frame: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return one row per key, the first one: what `latest_by_offset` returns if all orders are turned round."""
    return _one_a_key(frame, keys, (), F.asc)


def latest_by_offset(frame: DataFrame, keys: Sequence[str], sequence: Sequence[str] = ()) -> DataFrame:
    """Return one row per key: the last of its partition by offset, whatever the record timestamps are.

    With the columns `sequence`, which have no nulls, the row with the greatest values, the first column first; among
    rows with equal values the one that would be returned without.

    Where a key is in several partitions, the timestamp decides between the last rows of those partitions, then topic,
    partition and offset (ADR 028, rule 3). Null is a key value like any other. `frame` has `__position`
    struct<topic, partition, offset, timestamp>, and `row`, their order, where an offset may have several changes. Adds
    the boolean `__two_partitions`; the result has no order.
    """
    return _one_a_key(frame, keys, sequence, F.desc)


def _one_a_key(
    frame: DataFrame, keys: Sequence[str], sequence: Sequence[str], order: Callable[[Column], Column]
) -> DataFrame:
    names, greatest = [col(name) for name in keys], [order(col(name)) for name in sequence]
    at = [col(POSITION).getField(part) for part in ("topic", "partition", "offset", "timestamp")]
    topic, partition, offset, timestamp = at
    within = [order(col(POSITION).getField("row"))] if "row" in members(frame, POSITION) else []
    in_partition = Window.partitionBy(*names, topic, partition).orderBy(*greatest, order(offset), *within)
    of_key = Window.partitionBy(*names)
    chosen = of_key.orderBy(*greatest, *map(order, (timestamp, topic, partition, offset)))
    return (
        _first(frame, in_partition)
        .withColumn(TWO_PARTITIONS, F.count(F.lit(1)).over(of_key) > 1)
        .transform(_first, chosen)
    )


def net(frame: DataFrame, keys: Sequence[str], *, across_versions: bool) -> DataFrame:
    """Return the net change of each key in each table version, or with `across_versions` over all of them.

    Columns: `__before` and `__after`, structs of the frame's other columns: the key's row before the first change and
    after the last one, null where there was none; `__position` struct<version>, that of the last change. Inside a
    version retractions (-U, -D) precede adds (+I, +U), so an update has both rows, a primary key that changed is a
    deletion of the old key and an insertion of the new one, and a key deleted and inserted again is an update
    (ADR 028, rule 11). Changes without effect are left out: an update that changes no column (null-safe; maps by their
    entries), a key inserted and deleted. `frame` has `__kind` and `__position` struct<version>. The result has no
    order.
    """
    columns = [f for f in frame.schema.fields if f.name not in (KIND, POSITION)]
    version, adds = col(POSITION).getField("version"), ~retracts()
    row = F.struct(*(col(f.name) for f in columns))
    left, made = F.when(~adds, version), F.when(adds, version)
    grouping = [col(name) for name in keys] if across_versions else [*(col(name) for name in keys), version]
    # Spark sorts rows to aggregate them: after the shuffle only, since few changes are of one key and version.
    partitioned = frame if across_versions else frame.repartition(*grouping)
    aggregated = partitioned.groupBy(*grouping).agg(
        F.min(version).alias("__first"),
        F.max(version).alias("__last"),
        F.min(left).alias("__left"),
        F.max(made).alias("__made"),
        F.min_by(row, left).alias(BEFORE),
        F.max_by(row, made).alias(AFTER),
    )
    sides = aggregated.select(
        F.when(col("__left") == col("__first"), col(BEFORE)).alias(BEFORE),
        F.when(col("__made") == col("__last"), col(AFTER)).alias(AFTER),
        F.struct(col("__last").alias("version")).alias(POSITION),
    )
    type = T.StructType(columns)
    return sides.where(~comparable(col(BEFORE), type).eqNullSafe(comparable(col(AFTER), type)))


def each(frame: DataFrame) -> DataFrame:
    """Return every change of rows without a key, in the columns of `net`.

    An add has `__after`, a retraction `__before`; `__position` is struct<version, step>, with retractions as the first
    step of a version."""
    row = F.struct(*(col(f.name) for f in frame.schema.fields if f.name not in (KIND, POSITION)))
    step = F.when(retracts(), 0).otherwise(1)
    return frame.select(
        F.when(retracts(), row).alias(BEFORE),
        F.when(~retracts(), row).alias(AFTER),
        F.struct(col(POSITION).getField("version").alias("version"), step.alias("step")).alias(POSITION),
    )


def upserts(sides: DataFrame) -> DataFrame:
    """Return a frame of `net` as changes: the row after with +I or +U, or before with -D; `__kind`, `__position`."""
    kind = (
        F.when(col(AFTER).isNull(), RowKind.DELETE.value)
        .when(col(BEFORE).isNull(), RowKind.INSERT.value)
        .otherwise(RowKind.UPDATE_AFTER.value)
    )
    row = F.coalesce(col(AFTER), col(BEFORE))
    rows = sides.select(row.alias("__row"), kind.alias(KIND), col(POSITION))
    return rows.select(
        *(col("__row").getField(n).alias(n) for n in members(sides, AFTER)), col(KIND), col(POSITION)
    )


def _first(frame: DataFrame, window: WindowSpec) -> DataFrame:
    ranked = frame.withColumn(_FIRST, F.row_number().over(window))
    return ranked.where(col(_FIRST) == 1).drop(_FIRST)
