"""Rows that are read in the driver are those that Spark reads from the same files."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from bridge.delta.logged_files import AskDelta, asking_delta, commits, open_log, read_files, read_in_driver
from bridge.delta.table import open_table
from tests.delta.drawn_commits import MOMENT, WIDE, counted, sql
from tests.delta.tables import FIELDS, append, made


def test_rows_of_all_types(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", fields=WIDE)
    rows: list[tuple[Any, ...]] = [
        (1, "é", Decimal("-1.5"), MOMENT, MOMENT, MOMENT.date(), b"\0x", ([{"k": None}, None],)),
        (None,) * len(WIDE),
        (2, "", None, None, None, None, b"", (None,)),
    ]
    append(table, rows)
    append(table, rows[:1])
    snapshot = open_log(table, 2)
    by_spark = read_files(table, snapshot, list(snapshot.files))
    found = read_in_driver(snapshot, list(snapshot.files), [f.name for f in WIDE])
    assert found.num_rows == 4
    assert counted(spark.createDataFrame(found, T.StructType(list(WIDE)))) == counted(by_spark)


def test_columns_are_chosen_and_null_in_older_files(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")])
    sql(spark, table, "ALTER TABLE {t} ADD COLUMNS (n INT)")
    sql(spark, table, "INSERT INTO {t} VALUES (2, 'b', 3)")
    table = open_table(spark, table.target, (*FIELDS, T.StructField("n", T.IntegerType())))
    snapshot = open_log(table, None)
    found = read_in_driver(snapshot, list(snapshot.files), ["n", "id"], [pa.field("more", pa.string())])
    assert found.schema.names == ["n", "id", "more"]
    assert Counter(map(str, found.to_pylist())) == Counter(
        str({"n": n, "id": id, "more": None}) for n, id in ((None, 1), (3, 2))
    )
    assert read_in_driver(snapshot, [], ["id"]).to_pylist() == []
    with pytest.raises(AskDelta), asking_delta():
        read_in_driver(snapshot, list(snapshot.files), ["absent"])


def test_dates_of_spark_2_are_left_to_spark(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")])
    snapshot = open_log(table, None)
    (name,) = snapshot.files
    file = lake / "t" / name
    rows = pq.read_table(file)
    pq.write_table(rows.replace_schema_metadata({"org.apache.spark.legacyDateTime": ""}), file)
    with pytest.raises(AskDelta), asking_delta():
        read_in_driver(snapshot, [name], ["id"])


def test_commits_of_a_range(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")])
    append(table, [(2, "b")])
    snapshot = open_log(table, 0, with_files=False)
    assert [version for version, _ in commits(snapshot, 1, 2)] == [1, 2]
    for first, last in ((0, 1), (2, 1), (1, 3), (1, 101)):
        with pytest.raises(AskDelta):
            list(commits(snapshot, first, last))
    sql(spark, table, "ALTER TABLE {t} SET TBLPROPERTIES ('x' = 'y')")
    with pytest.raises(AskDelta):
        list(commits(snapshot, 1, 3))
