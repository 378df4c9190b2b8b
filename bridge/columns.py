"""The bridge's own columns, quoting, and equality of values by the rules of the table.

Users' columns cannot collide with them: names that begin with two underscores are refused (config.rules).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.backend.plans import column
from bridge.rows import RowKind
from bridge.schema import ArrayType, DataType, MapType, RowField, RowType, ScalarType, quote

if TYPE_CHECKING:
    import pyarrow as pa


KIND = "__kind"
"""Row kind of a change: '+I', '-U', '+U' or '-D'; '+U' for an upsert, which may be an insert."""

POSITION = "__position"
"""Position of a change: struct<topic, partition, offset, timestamp> or struct<version>."""

BEFORE, AFTER = "__before", "__after"
"""A key's row before and after its change; null where there was none."""

ROUTE = "__route"
"""A hash of the row's primary key for records without a key: one task sends all records of a row."""

LEADER_EPOCH = "leaderEpoch"
"""Column of records that only tables with this metadata have, since Spark's source does not give it."""

BAD = "__bad"
"""The error of a bad record, without payload; null for a good one."""


def col(name: str, frame: str | None = None) -> Column:
    """Return the column named exactly `name` (dots and backquotes are part of the name), of alias `frame` if given."""
    full = f"{frame}.{quote(name)}" if frame else quote(name)
    return column(full)


def retracts(frame: str | None = None) -> Column:
    """Return the condition for retractions (-U, -D), by `__kind`."""
    return col(KIND, frame).isin([kind.value for kind in RowKind if kind.retracts])


def members(frame: DataFrame, struct: str) -> list[str]:
    """Return the names of the fields of the column `struct` of `frame`."""
    type = frame.schema[struct].dataType
    assert isinstance(type, T.StructType)
    return type.names


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


_BY_SPARK_NAME = {scalar().simpleString(): scalar() for scalar in _SCALARS}


def spark_type(type: DataType) -> T.DataType:
    """Return the Spark type of a Flink type, whose DDL is `DataType.spark`: nullable in all its parts."""
    if isinstance(type, ArrayType):
        return T.ArrayType(spark_type(type.element))
    if isinstance(type, MapType):
        return T.MapType(spark_type(type.key), spark_type(type.value))
    if isinstance(type, RowType):
        return struct_type(type)
    assert isinstance(type, ScalarType)
    if type.name == "DECIMAL":
        return T.DecimalType(*type.parameters)
    return _BY_SPARK_NAME[type.spark().lower()]


def struct_type(row: RowType) -> T.StructType:
    """Return the Spark type of a row."""
    return T.StructType([T.StructField(f.name, spark_type(f.type)) for f in row.fields])


def data_type(type: T.DataType) -> DataType | None:
    """Return the Flink type whose Spark type is `type` (see schema.DataType.spark); None where there is none."""
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
    scalar = _SCALARS.get(type.__class__)
    return ScalarType(*scalar) if scalar else None


def comparable(column: Column, type: T.DataType) -> Column:
    """Return `column` in a type that `<=>` and xxhash64 accept: maps become arrays of entries in key order.

    Equal maps give equal arrays whatever the order of their entries; null stays null at every level.
    """
    if isinstance(type, T.MapType):
        value = type.valueType
        entries = F.array_sort(F.map_entries(column))
        if not _has_map(value):
            return entries
        # array_sort cannot order maps: sort the keys alone and look up the values.
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
    """Return the null-safe condition that any of `fields` differs between the frames aliased `left` and `right`."""
    unequal = [
        ~comparable(col(f.name, left), f.dataType).eqNullSafe(comparable(col(f.name, right), f.dataType))
        for f in fields
    ]
    return reduce(lambda a, b: a | b, unequal, F.lit(False))


def same_key(names: Sequence[str], left: str, right: str) -> Column:
    """Return null-safe equality of the key columns (ADR 028, rule 4)."""
    return reduce(lambda a, b: a & b, [col(n, left).eqNullSafe(col(n, right)) for n in names])


def row_fingerprint(fields: Sequence[T.StructField]) -> Column:
    """Return a 64-bit hash of a row that depends on every field, on nulls and on the order of fields."""
    parts: list[Column] = []
    for f in fields:
        value = comparable(col(f.name), f.dataType)
        # xxhash64 skips nulls, so (null, 1) and (1, null) would have one hash without the flag.
        parts += [value.isNull(), value]
    return F.xxhash64(*parts)


def frame_of(spark: SparkSession, rows: pa.Table, schema: T.StructType) -> DataFrame:
    """Return all rows of a table of Arrow as a frame, in their order.

    Spark's own `createDataFrame` ends at the first empty batch that has others behind it, without an error (4.1.1):
    what follows would be lost.
    """
    return spark.createDataFrame(rows.combine_chunks(), schema)
