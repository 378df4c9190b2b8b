"""Defines the measured rows: a typical order, and very narrow rows."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bridge.schema import ArrayType, DataType, RowField, RowType, ScalarType


@dataclass(frozen=True)
class Shape:
    """A row type, and the SQL that derives a row from `id`, a BIGINT."""

    name: str
    type: RowType
    sql: str
    later: str
    """The same row after an update, which changes some of its columns, never the first."""
    times: int = 1
    """A factor for the number of rows, since narrow rows need more of them for a measurement."""


def _shape(name: str, fields: list[tuple[str, DataType, str]], times: int = 1) -> Shape:
    type = RowType(tuple(RowField(n, t) for n, t, _ in fields))

    def made(changed: frozenset[str]) -> str:
        columns = (f"'{n}', {_next(sql) if n in changed else sql}" for n, _, sql in fields)
        return f"CAST(named_struct({', '.join(columns)}) AS {type.spark()})"

    return Shape(name, type, made(frozenset()), made(_CHANGED), times)


def _next(sql: str) -> str:
    return sql.replace("id ", "(id + 1) ").replace(", id)", ", id + 1)")


_CHANGED = frozenset(("name", "status", "amount", "updated_at", "paid", "note"))


_STRING = ScalarType("STRING")
_ADDRESS = RowType(tuple(RowField(name, _STRING) for name in ("street", "city", "zip")))
_COLUMNS: list[tuple[str, DataType, str]] = [
    ("order_id", ScalarType("BIGINT"), "id * 7919"),
    ("customer", _STRING, "concat('customer-', id % 5000)"),
    ("email", _STRING, "IF(id % 3 = 0, NULL, concat('user', id, '@example.com'))"),
    ("status", _STRING, "elt(1 + id % 4, 'NEW', 'PAID', 'SHIPPED', 'DONE')"),
    ("amount", ScalarType("DECIMAL", (10, 2)), "(id * 37) % 1000000 / 100"),
    (
        "updated_at",
        ScalarType("TIMESTAMP", (3,)),
        "CAST(timestamp_millis(1700000000000 + id * 1234567) AS TIMESTAMP_NTZ)",
    ),
    ("ordered_on", ScalarType("DATE"), "date_add(DATE'2020-01-01', CAST(id % 2000 AS INT))"),
    ("paid", ScalarType("BOOLEAN"), "id % 2 = 0"),
    ("weight", ScalarType("DOUBLE"), "IF(id % 5 = 0, NULL, CAST(id % 9999 AS DOUBLE) / 7)"),
    ("note", _STRING, "IF(id % 4 = 0, 'please leave it at the door, not on the stairs', NULL)"),
    (
        "address",
        _ADDRESS,
        "IF(id % 10 = 0, NULL, named_struct('street', concat(id % 300, ' Main Street'), "
        "'city', 'Springfield', 'zip', lpad(id % 99999, 5, '0')))",
    ),
    ("tags", ArrayType(_STRING), "array('red', 'large', concat('t', id % 10))"),
]

ORDERS = _shape("orders", _COLUMNS)
FLAT = _shape("flat orders", _COLUMNS[:-2])
NARROW = _shape("narrow", [("id", ScalarType("BIGINT"), "id"), ("name", _STRING, "concat('n', id)")], times=3)
TEXT = _shape("text", [("line", _STRING, "concat('2026-01-31 12:00:00 INFO order ', id, ' shipped')")], 3)


def rows(spark: SparkSession, shape: Shape, count: int) -> DataFrame:
    """Returns `count` rows (times the factor of the shape) in column `row`, in memory."""
    return _held(spark.range(count * shape.times).select(F.expr(shape.sql).alias("row")))


def changes(spark: SparkSession, shape: Shape, count: int) -> DataFrame:
    """Returns changes in columns `before` and `after`: seven updates to two inserts and a delete, in memory."""
    ids = spark.range(count * shape.times).select((F.col("id") * 3).alias("id"))
    return _held(
        ids.select(
            F.expr(f"IF(id % 10 < 2, NULL, {shape.sql})").alias("before"),
            F.expr(f"IF(id % 10 = 9, NULL, {shape.later})").alias("after"),
        )
    )


def _held(frame: DataFrame) -> DataFrame:
    # Not cache(): Spark would replace an equal expression that is measured by the cached result.
    return frame.localCheckpoint()
