"""The bridge's own columns, quoting, and equality of columns as the table sees it.

Users' columns cannot collide with them: names that begin with two underscores are refused (config.rules).

Lowest module that imports pyspark.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.schema import quote

__all__ = [
    "BAD",
    "KIND",
    "LEADER_EPOCH",
    "POSITION",
    "col",
    "comparable",
    "differs",
    "fingerprint",
    "same_key",
    "struct_type",
]

KIND = "__kind"
"""Row kind of a change: '+I', '-U', '+U' or '-D'; for an upsert whose key is not looked up, '+U'."""

POSITION = "__position"
"""Where a change stands: struct<topic, partition, offset, timestamp> or struct<version>."""

LEADER_EPOCH = "leaderEpoch"
"""Column of records that is there only where a table asks for it: Spark's source does not give it."""

BAD = "__bad"
"""Why a record cannot be applied (no payload in it); null for a good one."""


def col(name: str, frame: str | None = None) -> Column:
    """The column named exactly `name` (dots and backquotes are part of the name), of alias `frame` if given."""
    return F.col(f"{frame}.{quote(name)}" if frame else quote(name))


def struct_type(spark_ddl: str) -> T.StructType:
    """Parse `STRUCT<...>` as written by schema.RowType.spark()."""
    parsed = T.DataType.fromDDL(spark_ddl)
    assert isinstance(parsed, T.StructType)
    return parsed


def comparable(column: Column, type: T.DataType) -> Column:
    """`column` as something `<=>` and xxhash64 accept: maps become arrays of entries in key order.

    Equal maps give equal arrays whatever the order of their entries; null stays null on every level.
    """
    if isinstance(type, T.MapType):
        value = type.valueType
        entries = F.array_sort(F.map_entries(column))
        if not _has_map(value):
            return entries
        # array_sort cannot order maps: sort the keys alone and look the values up.
        keys = F.array_sort(F.map_keys(column))
        return F.transform(
            keys, lambda k: F.struct(k.alias("key"), comparable(column[k], value).alias("value"))
        )
    if isinstance(type, T.ArrayType) and _has_map(type):
        element = type.elementType
        return F.transform(column, lambda e: comparable(e, element))
    if isinstance(type, T.StructType) and _has_map(type):
        fields = [comparable(column.getField(f.name), f.dataType).alias(f.name) for f in type.fields]
        return F.when(column.isNotNull(), F.struct(*fields))
    return column


def _has_map(type: T.DataType) -> bool:
    if isinstance(type, T.MapType):
        return True
    if isinstance(type, T.ArrayType):
        return _has_map(type.elementType)
    return isinstance(type, T.StructType) and any(_has_map(f.dataType) for f in type.fields)


def differs(fields: Sequence[T.StructField], left: str, right: str) -> Column:
    """True when any of `fields` is not the same, null-safely, in the frames aliased `left` and `right`."""
    unequal = [
        ~comparable(col(f.name, left), f.dataType).eqNullSafe(comparable(col(f.name, right), f.dataType))
        for f in fields
    ]
    return reduce(lambda a, b: a | b, unequal, F.lit(False))


def same_key(names: Sequence[str], left: str, right: str) -> Column:
    """Null-safe equality of the key columns (design.md 5.4)."""
    return reduce(lambda a, b: a & b, [col(n, left).eqNullSafe(col(n, right)) for n in names])


def fingerprint(fields: Sequence[T.StructField]) -> Column:
    """A 64-bit hash of a row that depends on every field, nulls and field order included."""
    parts: list[Column] = []
    for f in fields:
        value = comparable(col(f.name), f.dataType)
        # xxhash64 skips nulls, so (null, 1) and (1, null) would be alike without the flag.
        parts += [value.isNull(), value]
    return F.xxhash64(*parts)
