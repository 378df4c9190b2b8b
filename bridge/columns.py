"""The bridge's own columns, quoting, and equality of columns as the table sees it.

Users' columns cannot collide with them: names that begin with two underscores are refused (config.rules).

Lowest module that imports pyspark.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, reduce

from pyspark import SparkContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.rows import RowKind
from bridge.schema import ArrayType, DataType, MapType, RowField, RowType, ScalarType, quote

__all__ = [
    "AFTER",
    "BAD",
    "BEFORE",
    "KIND",
    "LEADER_EPOCH",
    "POSITION",
    "ROUTE",
    "col",
    "comparable",
    "data_type",
    "differs",
    "estimated_bytes",
    "members",
    "retracts",
    "row_fingerprint",
    "same_key",
    "struct_type",
]

KIND = "__kind"
"""Row kind of a change: '+I', '-U', '+U' or '-D'; for an upsert whose key is not looked up, '+U'."""

POSITION = "__position"
"""Where a change stands: struct<topic, partition, offset, timestamp> or struct<version>."""

BEFORE, AFTER = "__before", "__after"
"""A key's row before and after what happened to it; null where it was not there."""

ROUTE = "__route"
"""A number by which records without a key find the task that sends all changes of their row."""

LEADER_EPOCH = "leaderEpoch"
"""Column of records that is there only where a table asks for it: Spark's source does not give it."""

BAD = "__bad"
"""Why a record cannot be applied (no payload in it); null for a good one."""


def col(name: str, frame: str | None = None) -> Column:
    """The column named exactly `name` (dots and backquotes are part of the name), of alias `frame` if given."""
    return _col(f"{frame}.{quote(name)}" if frame else quote(name), SparkContext._gateway)


@lru_cache(maxsize=4096)
def _col(name: str, gateway: object) -> Column:
    """A column means the same in every frame, and to make one takes three calls into the JVM behind `gateway`; a batch
    needs hundreds."""
    return F.col(name)


def retracts(frame: str | None = None) -> Column:
    """True for changes that take a row away (-U, -D), by their `__kind`."""
    return col(KIND, frame).isin([kind.value for kind in RowKind if kind.retracts])


def members(frame: DataFrame, struct: str) -> list[str]:
    """The names of the fields of the column `struct` of `frame`."""
    type = frame.schema[struct].dataType
    assert isinstance(type, T.StructType)
    return type.names


def struct_type(spark_ddl: str) -> T.StructType:
    """Parse `STRUCT<...>` as written by schema.RowType.spark()."""
    parsed = T.DataType.fromDDL(spark_ddl)
    assert isinstance(parsed, T.StructType)
    return parsed


_SCALARS: dict[type[T.DataType], tuple[str, tuple[int, ...]]] = {
    T.StringType: ("STRING", ()),
    T.BooleanType: ("BOOLEAN", ()),
    T.BinaryType: ("BYTES", ()),
    T.ByteType: ("TINYINT", ()),
    T.ShortType: ("SMALLINT", ()),
    T.IntegerType: ("INT", ()),
    T.LongType: ("BIGINT", ()),
    T.FloatType: ("FLOAT", ()),
    T.DoubleType: ("DOUBLE", ()),
    T.DateType: ("DATE", ()),
    T.TimestampNTZType: ("TIMESTAMP", (6,)),
    T.TimestampType: ("TIMESTAMP_LTZ", (6,)),
}


def data_type(type: T.DataType) -> DataType | None:
    """The Flink type whose Spark counterpart `type` is (schema.DataType.spark); None where there is none."""
    if isinstance(type, T.DecimalType):
        return ScalarType("DECIMAL", (type.precision, type.scale))
    if isinstance(type, T.ArrayType):
        element = data_type(type.elementType)
        return element and ArrayType(element)
    if isinstance(type, T.MapType):
        key, value = data_type(type.keyType), data_type(type.valueType)
        return MapType(key, value) if key and value else None
    if isinstance(type, T.StructType):
        fields = [(f.name, data_type(f.dataType)) for f in type.fields]
        return (
            RowType(tuple(RowField(name, t) for name, t in fields if t))
            if all(t for _, t in fields)
            else None
        )
    found = _SCALARS.get(type.__class__)
    return ScalarType(*found) if found else None


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
    """Null-safe equality of the key columns (ADR 028, rule 4)."""
    return reduce(lambda a, b: a & b, [col(n, left).eqNullSafe(col(n, right)) for n in names])


def row_fingerprint(fields: Sequence[T.StructField]) -> Column:
    """A 64-bit hash of a row that depends on every field, nulls and field order included."""
    parts: list[Column] = []
    for f in fields:
        value = comparable(col(f.name), f.dataType)
        # xxhash64 skips nulls, so (null, 1) and (1, null) would be alike without the flag.
        parts += [value.isNull(), value]
    return F.xxhash64(*parts)


def estimated_bytes(frame: DataFrame) -> int:
    """How large Spark takes the frame for; of one that is persisted and has been computed it knows."""
    return int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
