"""changes -compact-> changes: the last change per key, by where it stands and by nothing else.

Both directions share the idea, and Spark's WindowGroupLimit makes it cheap: a first row per group is kept on the
map side before anything is shuffled.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window, WindowSpec
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.columns import KIND, POSITION, col
from bridge.rows import RowKind

__all__ = ["TWO_PARTITIONS", "latest_by_offset", "latest_per_version"]

TWO_PARTITIONS = "__two_partitions"
"""True on a change whose key was seen in more than one partition (they were added, or a writer went astray)."""

_FIRST = "__first"


def latest_by_offset(frame: DataFrame, keys: Sequence[str]) -> DataFrame:
    """One row per key: the last of its partition by offset, whatever the record timestamps say.

    Only where a key shows up in several partitions do timestamps decide, between the last rows of those
    partitions; then topic, partition and offset (design.md 5.3). Null is a key value like any other. `frame` has
    `__position` struct<topic, partition, offset, timestamp>, and `row` where an offset may hold several changes, which
    stand in its order. Adds the boolean `__two_partitions`; an order is not kept.
    """
    names = [col(name) for name in keys]
    at = [col(POSITION).getField(part) for part in ("topic", "partition", "offset", "timestamp")]
    topic, partition, offset, timestamp = at
    position = frame.schema[POSITION].dataType
    assert isinstance(position, T.StructType)
    within = [col(POSITION).getField("row").desc()] if "row" in position.names else []
    in_partition = Window.partitionBy(*names, topic, partition).orderBy(offset.desc(), *within)
    of_key = Window.partitionBy(*names)
    newest = of_key.orderBy(timestamp.desc(), topic.desc(), partition.desc(), offset.desc())
    return (
        _first(frame, in_partition)
        .withColumn(TWO_PARTITIONS, F.count(F.lit(1)).over(of_key) > 1)
        .transform(_first, newest)
    )


def latest_per_version(frame: DataFrame, keys: Sequence[str], *, across_versions: bool) -> DataFrame:
    """One row per key and table version, or with `across_versions` one per key over all of them.

    Inside a version retractions (-U, -D) stand before adds (+I, +U), so an update leaves its +U, a primary key that
    changed leaves the old key's -U, and a key deleted and inserted again leaves its +I; a -U that remains is a
    delete and is relabelled -D (design.md 5.11). `frame` has `__position` struct<version>; an order is not kept.
    """
    names = [col(name) for name in keys]
    version = col(POSITION).getField("version")
    adds = (~col(KIND).isin([kind.value for kind in RowKind if kind.retracts])).cast("int")
    last = Window.partitionBy(*names, *([] if across_versions else [version])).orderBy(
        version.desc(), adds.desc()
    )
    trailing = F.when(col(KIND) == RowKind.UPDATE_BEFORE.value, RowKind.DELETE.value).otherwise(col(KIND))
    return _first(frame, last).withColumn(KIND, trailing)


def _first(frame: DataFrame, window: WindowSpec) -> DataFrame:
    ranked = frame.withColumn(_FIRST, F.row_number().over(window))
    return ranked.where(col(_FIRST) == 1).drop(_FIRST)
