"""The files of a frame, listed before it is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.delta import change_feed
from bridge.delta.data_files import DataFile, data_files, digest
from bridge.delta.table import Table
from tests.delta.tables import FIELDS, VECTORS, append, at, by_spark, create_fed, frame, made

pytestmark = pytest.mark.versions


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """In a folder and with partitions whose names Spark encodes in URIs."""
    folder = tmp_path_factory.mktemp("data-files") / "a b%c"
    create_fed(spark, folder, "id BIGINT, v STRING, p STRING", "PARTITIONED BY (p)", VECTORS)
    table = made(spark, folder, fields=(*FIELDS, T.StructField("p", T.StringType())))
    append(table, [(id, f"v{id}", f"p% /{id % 2}") for id in range(20)])
    append(table, [(20, None, None)])
    changes = [("+U", 1, "x", "p% /1"), ("-D", 2, None, "p% /0"), ("+I", 30, "y", "new")]
    by_spark(table, frame(table, changes), key=["id"], progress=at(0))
    return table


def input_files(rows: DataFrame) -> set[str]:
    """The files that Spark names as the sources of the rows."""
    return {row[0] for row in rows.select(F.input_file_name()).distinct().collect()}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_files_are_those_that_rows_come_from(table: Table, version: int) -> None:
    """Of an append and of a MERGE of the bridge's, as changes; and of all rows there are."""
    for rows in (
        change_feed.changes(table, version, version, by_delta=True),
        change_feed.snapshot(table, version, by_delta=True),
    ):
        files = data_files(rows.where("id % 3 = 0 OR p IS NULL").select("id"))
        assert input_files(rows) == {file.uri for file in files} != set()
        assert all(file.bytes > 0 for file in files)
        assert [file.name for file in files] == sorted(file.name for file in files)
    assert data_files(change_feed.changes(table, 1, 3, by_delta=True)) == tuple(
        sorted(
            (file for v in (1, 2, 3) for file in data_files(change_feed.changes(table, v, v, by_delta=True))),
            key=lambda file: file.name,
        )
    )


def test_rows_of_elsewhere_have_no_files(table: Table, tmp_path: Path, spark: SparkSession) -> None:
    """Only files of Delta tables are known to be immutable."""
    rows = change_feed.snapshot(table, 1, by_delta=True).select("id")
    rows.write.parquet(str(tmp_path / "plain"))
    plain = spark.read.parquet(str(tmp_path / "plain"))
    assert data_files(plain) == ()
    assert data_files(rows.union(spark.range(1))) == ()
    assert data_files(rows.union(spark.createDataFrame([(1,)], "id bigint"))) == ()
    assert data_files(rows.union(rows)) == ()


def test_another_delta_has_no_files(table: Table) -> None:
    changes = change_feed.changes(table, 1, 1, by_delta=True)
    assert data_files(changes, delta_package="com.databricks.sql.transaction.tahoe.") == ()


def test_too_many_files_are_not_listed(table: Table) -> None:
    assert data_files(change_feed.changes(table, 1, 1, by_delta=True), max_files=1) == ()


def test_a_moved_table_has_the_same_digest() -> None:
    here = [DataFile("file:/here/p=1/one.parquet", 1), DataFile("file:/here/two.parquet", 2)]
    there = [DataFile("s3://there/p=1/one.parquet", 1), DataFile("s3://there/two.parquet", 2)]
    assert digest(here) == digest(there)
    assert digest(here) != digest(here[:1])
    assert len(digest(here)) == 16
