"""Files of old rows are removed without a change in the feed."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from bridge.definition import DeltaTarget
from bridge.delta import change_feed
from bridge.delta.file_removal import remove_files_before, removed_before
from bridge.delta.table import Table, create_table, open_table

UTC = 1_795_600_800_000
"""2026-11-25 10:00 in UTC."""


def made(spark: SparkSession, path: Path, name: str, type: T.DataType) -> Table:
    fields = [T.StructField("id", T.IntegerType()), T.StructField(name, type)]
    table = create_table(spark, DeltaTarget(path=str(path)), fields, pipeline="p", appends=True)
    for minutes in ((0, 1), (2, 9), (3, 3)):
        rows = [(m, datetime(2026, 11, 25, 10, m, 0, 999)) for m in minutes]
        frame = spark.createDataFrame(rows, T.StructType(fields))
        frame.coalesce(1).write.format("delta").mode("append").save(str(path))
    return table


@pytest.mark.versions
@pytest.mark.parametrize(
    ("name", "type"),
    [("ts", T.TimestampNTZType()), pytest.param("a t", T.TimestampType(), marks=pytest.mark.slow)],
)
def test_files_whose_rows_are_all_older(spark: SparkSession, lake: Path, name: str, type: T.DataType) -> None:
    table = made(spark, lake / "t", name, type)
    first = change_feed.latest_version(table)
    assert removed_before(table) is None
    assert remove_files_before(table, name, UTC + 60_000) == 0, "a row is of 10:01:00.000999"
    assert change_feed.latest_version(table) == first, "nothing is committed"

    before = UTC + 9 * 60_000
    assert remove_files_before(table, name, before) == 2
    opened = open_table(spark, table.target, table.fields)
    assert removed_before(opened) == before and opened.id == table.id
    assert sorted(row["id"] for row in opened.delta().toDF().collect()) == [2, 9]
    last = change_feed.latest_version(table)
    assert last == first + 2
    assert change_feed.changes(opened, first + 1, last).count() == 0, "no row is deleted for the feed"
    assert change_feed.changes(opened, 0, last).count() == 6, "earlier versions have their changes"
    assert opened.read({"versionAsOf": str(first)}).count() == 6

    assert remove_files_before(opened, name, UTC) == 0
    assert removed_before(open_table(spark, table.target, table.fields)) == before, "it never goes back"
