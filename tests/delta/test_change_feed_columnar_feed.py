"""The feed as Delta plans it, and as Delta's reader returns it: the same rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from bridge.delta.change_feed import plan_as_columns
from bridge.delta.change_feed import read_as_columns as columns_of
from bridge.delta.table import Table
from tests.delta.tables import made

pytestmark = pytest.mark.versions

_OVER_ROWS = "DeltaCDFRelation"


def _read(table: Table, first: int, last: int) -> DataFrame:
    return table.read({"readChangeFeed": "true", "startingVersion": str(first), "endingVersion": str(last)})


def _plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_the_same_rows_without_row_objects(spark: SparkSession, tmp_path: Path, vectors: str) -> None:
    path = tmp_path / "t"
    table = made(spark, path, rows=[(1, "a"), (2, "b"), (3, None)])
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = {vectors})")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 1")
    spark.sql(f"UPDATE delta.`{path}` SET v = 'é' WHERE id = 2")
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (4, 'd')")
    rows = _read(table, 1, 5)
    columns = columns_of(rows)
    assert _OVER_ROWS in _plan(rows)
    assert _OVER_ROWS not in _plan(columns)
    assert columns.schema == rows.schema
    assert sorted(map(str, columns.collect())) == sorted(map(str, rows.collect()))
    assert columns.count() == 7
    assert columns_of(_read(table, 3, 3)).count() == 1


def test_columns_of_another_version_are_left_to_deltas_reader(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = made(spark, path, rows=[(1, "a")])
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (2, 'b')")
    rows = _read(table, 3, 3)
    assert columns_of(rows) is rows


@pytest.mark.parametrize(
    "error", [Py4JError("no such method"), AnalysisException("refused"), TypeError("no such class")]
)
def test_with_another_delta_its_reader_reads(spark: SparkSession, tmp_path: Path, error: Exception) -> None:
    rows = _read(made(spark, tmp_path / "t", rows=[(1, "a")]), 1, 1)

    def fails(_: DataFrame) -> DataFrame:
        raise error

    assert plan_as_columns(rows) is not None
    assert plan_as_columns(rows, "com.example.Relation") is None
    assert columns_of(rows, lambda _: None) is rows
    assert columns_of(rows, fails) is rows
    assert rows.count() == 1


def test_a_class_that_is_not_there_cannot_be_called(spark: SparkSession) -> None:
    with pytest.raises(TypeError, match="JavaPackage"):
        spark._jvm.com.example.Reader.changesToBatchDF(1)  # type: ignore[union-attr]
