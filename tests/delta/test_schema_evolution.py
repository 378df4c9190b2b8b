"""Columns are added and types widened; nothing else in the schema changes."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from bridge.delta.schema_evolution import merge_schema
from bridge.delta.table import open_table
from bridge.errors import TableError
from tests.delta.tables import content, log_file, made, target


def _fields(ddl: str) -> list[T.StructField]:
    parsed = T.DataType.fromDDL(f"struct<{ddl}>")
    assert isinstance(parsed, T.StructType)
    return list(parsed.fields)


def test_columns_are_added_and_types_widened_and_rows_stay(spark: SparkSession, lake: Path) -> None:
    old = _fields("id: int, `a.b`: float, n: decimal(5,1)")
    table = made(spark, lake / "t", rows=[(1, 0.5, Decimal("1.5"))], fields=old)
    new = _fields("id: bigint, `a.b`: double, `ünï`: string, n: decimal(10,2)")
    done = merge_schema(spark, target(lake / "t"), new, pipeline="p")
    assert done == [
        "column 'ünï' added",
        "column 'id' widened from int to bigint",
        "column 'a.b' widened from float to double",
        "column 'n' widened from decimal(5,1) to decimal(10,2)",
    ]
    table = open_table(spark, target(lake / "t"), new)
    rows = table.delta().toDF().select("id", "`a.b`", "`ünï`", "n").collect()
    assert [tuple(row) for row in rows] == [(1, 0.5, None, Decimal("1.50"))]


def test_nothing_to_do_is_no_commit(spark: SparkSession, lake: Path) -> None:
    made(spark, lake / "t", rows=[(1, "a")])
    assert merge_schema(spark, target(lake / "t"), _fields("id: bigint, v: string"), pipeline="p") == []
    assert not log_file(made(spark, lake / "t"), 2).exists()


def test_what_cannot_be_widened_is_left_to_be_refused(spark: SparkSession, lake: Path) -> None:
    made(spark, lake / "t", rows=[(1, "a")])
    narrower = _fields("id: int, v: bigint")
    assert merge_schema(spark, target(lake / "t"), narrower, pipeline="p") == []
    with pytest.raises(TableError, match="other type: `id` is bigint, wanted int"):
        open_table(spark, target(lake / "t"), narrower)


def test_another_pipeline_s_table_is_not_touched(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")])
    with pytest.raises(TableError, match="belongs to pipeline 'p', not 'q'"):
        merge_schema(spark, target(lake / "t"), _fields("id: bigint, v: string, w: int"), pipeline="q")
    assert content(table) == {(1, "a")}


def test_a_name_that_delta_does_not_take_is_refused(spark: SparkSession, lake: Path) -> None:
    made(spark, lake / "t", rows=[(1, "a")])
    with pytest.raises(
        TableError, match=r"cannot follow the DDL: \[DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES\]"
    ):
        merge_schema(spark, target(lake / "t"), _fields("id: bigint, v: string, `a b`: int"), pipeline="p")
