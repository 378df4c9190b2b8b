"""Equality by the rules of the table: null-safe, exact names, maps whatever the order of their entries."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge import columns
from bridge.schema import ArrayType, DataType, MapType, RowField, RowType, ScalarType

pytestmark = pytest.mark.versions

NESTED = "struct<m: map<string, map<string,int>>, a: array<map<string,int>>, s: struct<x: map<int,string>, y: int>>"


def same(spark: SparkSession, ddl: str, pairs: list[tuple[Any, Any]]) -> list[tuple[bool, bool]]:
    """For each pair of values: whether `differs` finds no difference, and whether their fingerprints agree."""
    type = T.DataType.fromDDL(ddl)
    shape = T.StructType([T.StructField("n", T.IntegerType()), T.StructField("v", type)])
    left, right = (
        spark.createDataFrame([(n, pair[side]) for n, pair in enumerate(pairs)], shape) for side in (0, 1)
    )
    joined = left.alias("l").join(right.alias("r"), F.expr("l.n = r.n"))
    prints = [f.select("n", columns.row_fingerprint(shape.fields).alias("p")) for f in (left, right)]
    equal = {
        r["n"]: not r["d"]
        for r in joined.select("l.n", columns.differs(shape.fields[1:], "l", "r").alias("d")).collect()
    }
    agree = {
        r["n"]: r["a"]
        for r in prints[0]
        .join(prints[1].withColumnRenamed("p", "q"), "n")
        .selectExpr("n", "p = q as a")
        .collect()
    }
    return [(equal[n], agree[n]) for n in range(len(pairs))]


def test_maps_are_equal_whatever_their_order(spark: SparkSession) -> None:
    one = ({"a": {"x": 1, "y": None}, "b": None}, [{"p": 1, "q": 2}, None], ({1: "a", 2: "b"}, 3))
    two = ({"b": None, "a": {"y": None, "x": 1}}, [{"q": 2, "p": 1}, None], ({2: "b", 1: "a"}, 3))
    other = ({"b": None, "a": {"y": 0, "x": 1}}, [{"q": 2, "p": 1}, None], ({2: "b", 1: "a"}, 3))
    pairs = [(one, two), (one, other), (None, None), (one, None), ((None, None, None), None)]
    assert same(spark, NESTED, pairs) == [
        (True, True),
        (False, False),
        (True, True),
        (False, False),
        (False, False),
    ]


def test_nulls_and_their_places_count(spark: SparkSession) -> None:
    fields = [T.StructField("a", T.IntegerType()), T.StructField("b", T.IntegerType())]
    frame = spark.createDataFrame([(None, 1), (1, None), (None, None)], T.StructType(fields))
    assert frame.select(columns.row_fingerprint(fields).alias("p")).distinct().count() == 3


def test_keys_compare_null_safely(spark: SparkSession) -> None:
    ddl = "`a.b` int, `c``d` string"
    left = spark.createDataFrame([(None, "x"), (1, None), (2, "y")], ddl).alias("l")
    right = spark.createDataFrame([(None, "x"), (1, None), (2, "z")], ddl).alias("r")
    assert left.join(right, columns.same_key(["a.b", "c`d"], "l", "r")).count() == 2


def test_names_are_taken_literally(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, 2)], "`a.b` int, `we``ird` int").alias("f")
    assert frame.select(columns.col("a.b", "f"), columns.col("we`ird")).collect() == [(1, 2)]


def test_spark_types_are_those_that_spark_reads_from_their_ddl(spark: SparkSession) -> None:
    scalars: list[DataType] = [
        ScalarType(name, (3,) if "CHAR" in name or name in ("BINARY", "VARBINARY", "TIMESTAMP") else ())
        for name in "CHAR VARCHAR STRING BOOLEAN BINARY VARBINARY BYTES TINYINT SMALLINT INT BIGINT FLOAT DOUBLE "
        "DATE TIMESTAMP TIMESTAMP_LTZ".split()
    ]
    nested: list[DataType] = [
        ArrayType(ScalarType("INT", nullable=False)),
        MapType(ScalarType("STRING"), ScalarType("DECIMAL", (38, 9)), nullable=False),
        RowType((RowField("x", ArrayType(MapType(ScalarType("INT"), ScalarType("DATE")))),)),
    ]
    row = RowType(tuple(RowField(f"a`.{n}", type) for n, type in enumerate(scalars + nested)))
    assert columns.struct_type(row) == T.DataType.fromDDL(row.spark())


def test_a_column_is_made_once_and_serves_every_frame(spark: SparkSession) -> None:
    assert columns.col("a.b") is columns.col("a.b") is not columns.col("a.b", "t")
    for value in (1, 2):
        frame = spark.createDataFrame([(value,)], "`a.b` int").alias("t")
        assert frame.select(columns.col("a.b"), columns.col("a.b", "t")).first() == (value, value)


def test_a_frame_has_all_rows_of_a_table_of_arrow(spark: SparkSession) -> None:
    """Also those behind an empty chunk, at which Spark's createDataFrame ends."""
    chunks = [[1], [], [2, 3], [], []]
    rows = pa.table({"a": pa.chunked_array(chunks, pa.int64())})
    schema = T.StructType([T.StructField("a", T.LongType())])
    assert [row[0] for row in columns.frame_of(spark, rows, schema).collect()] == [1, 2, 3]
    assert columns.frame_of(spark, rows.slice(0, 0), schema).collect() == []
