"""Rows that are read from the files of a log are those of Delta's change feed and time travel, or Delta is asked."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.columns import KIND, col
from bridge.definition import DeltaTarget
from bridge.delta import appended_files, change_feed
from bridge.delta.appended_files import has_no_files
from bridge.delta.table import Table, open_table
from bridge.rows import RowKind
from bridge.session import child_session
from tests.delta.drawn_commits import MOMENT, WIDE, add_by_hand, counted, play, sql
from tests.delta.tables import FIELDS, NO_VECTORS, append, log_file, made
from tests.refusals import optional

appended_rows = optional(appended_files.appended_rows)
count_at = optional(appended_files.count_at)
rows_at = optional(appended_files.rows_at)


def by_delta(table: Table, version: int) -> Counter[str]:
    return counted(table.read({"versionAsOf": str(version)}).select(*map(col, table.columns)))


def fed(table: Table, first: int, last: int) -> tuple[Counter[str], bool]:
    """The inserts of the change feed, and whether there is nothing else in it."""
    found = change_feed.changes(table, first, last, by_delta=True).cache()
    inserts = found.where(col(KIND) == F.lit(RowKind.INSERT.value))
    try:
        return counted(inserts.select(*map(col, table.columns))), inserts.count() == found.count()
    finally:
        found.unpersist()


def agrees(table: Table, first: int, last: int) -> bool:
    """Compare all ranges and versions from `first` to `last`; returns whether a range was read from its files."""
    known = False
    for start in range(first, last + 1):
        rows = appended_rows(table, start, last)
        if rows is not None:
            inserts, is_all = fed(table, start, last)
            assert counted(rows) == inserts and is_all, f"versions {start} to {last}"
            known = True
        whole = rows_at(table, start)
        right = by_delta(table, start)
        assert whole is None or counted(whole) == right, f"version {start}"
        assert count_at(table, start) in (None, right.total()), f"version {start}"
    return known


def played(spark: SparkSession, lake: Path, seed: int, length: int) -> None:
    draw = random.Random(seed)
    properties = {"delta.checkpointInterval": "4"} | (NO_VECTORS if seed % 2 else {})
    table = made(spark, lake / "t", properties=properties)
    names = play(spark, table, draw, length, appends=6)
    last = change_feed.latest_version(table)
    assert agrees(table, 1, last), names


def test_drawn_histories(spark: SparkSession, lake: Path) -> None:
    played(spark, lake, seed=3, length=5)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(10, 20))
def test_more_drawn_histories(spark: SparkSession, lake: Path, seed: int) -> None:
    played(spark, lake, seed, length=12)


@pytest.mark.parametrize("name", ["t", "_dt=2026-01-01", "sp ace & ü #1;a%20b+c:d,e"])
def test_rows_of_all_types(spark: SparkSession, lake: Path, name: str) -> None:
    table = made(spark, lake / name, fields=WIDE)
    rows: list[tuple[Any, ...]] = [
        (1, "é", Decimal("-1.5"), MOMENT, MOMENT, MOMENT.date(), b"\0x", ([{"k": None}, None],)),
        (None,) * len(WIDE),
        (2, "", None, None, None, None, b"", (None,)),
    ]
    append(table, rows)
    append(table, rows[:1])
    for first, count in ((1, 4), (2, 1)):
        found = appended_rows(table, first, 2)
        assert found is not None and found.count() == count
        assert found.schema == T.StructType(list(WIDE))
    assert agrees(table, 1, 2)


def test_files_that_are_older_than_a_column(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")])
    sql(spark, table, "ALTER TABLE {t} ADD COLUMNS (n STRUCT<a: INT>)")
    sql(spark, table, "INSERT INTO {t} VALUES (2, 'b', struct(3))")
    newer = T.StructField("n", T.StructType([T.StructField("a", T.IntegerType())]))
    table = open_table(spark, table.target, (*FIELDS, newer))
    found = rows_at(table, 3)
    assert found is not None and sorted(map(tuple, found.collect())) == [(1, "a", None), (2, "b", (3,))]
    assert rows_at(table, 1) is None, "the column was not there, which Delta says"
    assert appended_rows(table, 2, 3) is None and appended_rows(table, 3, 3) is not None


def test_rows_of_commits_that_change_nothing(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")])
    append(table, [(2, "b")])
    table.delta().optimize().executeCompaction()
    added, compacted = appended_rows(table, 2, 3), appended_rows(table, 3, 3)
    assert added is not None and list(map(tuple, added.collect())) == [(2, "b")]
    assert compacted is not None and compacted.collect() == []
    assert agrees(table, 1, 3)


def _without_a_commit(table: Table) -> None:
    log_file(table, 2).unlink()


def _without_a_file(table: Table) -> None:
    next(Path(str(table.target.path)).glob("*.parquet")).unlink()


def _torn(table: Table) -> None:
    log_file(table, 2).write_text('{"add":')


def _of_another_table(table: Table) -> None:
    shutil.rmtree(str(table.target.path))
    again = made(table.spark, Path(str(table.target.path)))
    for _ in range(2):
        append(again, [(1, "a")])


@pytest.mark.parametrize("change", [_without_a_commit, _without_a_file, _torn, _of_another_table])
def test_what_is_gone_is_left_to_delta(
    spark: SparkSession, lake: Path, change: Callable[[Table], None]
) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")])
    append(table, [(1, "a")])
    assert appended_rows(table, 1, 2) is not None and rows_at(table, 2) is not None
    change(table)
    assert appended_rows(table, 1, 2) is None and rows_at(table, 2) is None


@pytest.mark.parametrize(
    "ddl",
    [
        "(id BIGINT, v STRING) USING delta PARTITIONED BY (v)",
        "(id BIGINT, v STRING) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "(id BIGINT, v CHAR(3)) USING delta",
        "(id BIGINT, v STRING) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'false')",
    ],
)
def test_tables_with_more_to_them_are_left_to_delta(spark: SparkSession, lake: Path, ddl: str) -> None:
    feed = "ALTER TABLE {t} SET TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    if "enableChangeDataFeed" in ddl:
        feed = ""
    at = DeltaTarget(path=str(lake / "t"))
    spark.sql(f"CREATE TABLE delta.`{lake}/t` {ddl}")
    table = open_table(spark, at, FIELDS, feed=False)
    for text in filter(None, (feed, "INSERT INTO {t} VALUES (1, 'a')", "INSERT INTO {t} VALUES (1, 'b')")):
        sql(spark, table, text)
    last = change_feed.latest_version(table)
    assert appended_rows(table, last, last) is None and rows_at(table, last) is None


def test_rows_are_counted_by_statistics(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a"), (2, "b"), (3, "c")])
    append(table, [(4, "d")])
    table.delta().delete("id = 1")
    assert [count_at(table, version) for version in range(4)] == [0, 3, 4, 3], "marked rows are not counted"
    file = next((lake / "t").glob("*.parquet"))
    shutil.copy(file, lake / "t" / "copy.parquet")
    add_by_hand(table, 4, "copy.parquet", file.stat().st_size)
    assert count_at(table, 4) is None, "a file without statistics"
    assert change_feed.row_count(table, 4) == table.delta().toDF().count() > 3
    assert count_at(table, 5) is None


def test_the_newest_rows(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t")
    assert has_no_files(table)
    append(table, [(1, "a"), (2, "b")])
    found = rows_at(table, None)
    assert not has_no_files(table) and found is not None and found.count() == 2
    table.delta().delete("id = 1")
    assert rows_at(table, None) is None, "a file has a deletion vector"
    table.delta().delete("id = 2")
    assert has_no_files(table) == (table.delta().toDF().inputFiles() == [])
    named = replace(table, target=DeltaTarget(table="default.t"))
    assert rows_at(named, None) is None and not has_no_files(named)


@pytest.mark.parametrize(
    "name", ["_hidden.parquet", ".hidden.parquet", "a[b].parquet", "a.parquet._COPYING_"]
)
def test_names_that_spark_would_not_read_are_left_to_delta(
    spark: SparkSession, lake: Path, name: str
) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")])
    file = next((lake / "t").glob("*.parquet"))
    shutil.copy(file, lake / "t" / name)
    add_by_hand(table, 2, name, file.stat().st_size)
    assert appended_rows(table, 2, 2) is None and rows_at(table, 2) is None


def test_another_writer_adds_files_by_absolute_or_encoded_paths(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")])
    file = next((lake / "t").glob("*.parquet"))
    given = (
        (lake / "t" / "o ther%.parquet", "o%20ther%25.parquet"),
        (lake / "x.parquet", f"file://{lake}/x.parquet"),
    )
    for version, (name, path) in enumerate(given, 2):
        shutil.copy(file, name)
        add_by_hand(table, version, path, file.stat().st_size)
    found = appended_rows(table, 2, 3)
    assert found is not None and list(map(tuple, found.collect())) == [(1, "a")] * 2
    assert agrees(table, 1, 3)


def test_many_files_are_listed_without_a_job(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t")
    frame = spark.range(40).selectExpr("id", "CAST(id AS STRING) AS v").repartition(40)
    frame.write.format("delta").mode("append").save(str(lake / "t"))
    session = child_session(spark)
    spark.sparkContext.setJobGroup("planning", "")
    try:
        found = rows_at(table.on(session), 1)
        assert not spark.sparkContext.statusTracker().getJobIdsForGroup("planning")
    finally:
        spark.sparkContext._jsc.clearJobGroup()
    assert found is not None and found.count() == 40


def test_ranges_and_places_that_are_left_to_delta(
    spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")])
    append(table, [(1, "a")])
    assert appended_rows(table, 0, 1) is None, "the first version creates the table"
    assert appended_rows(table, 2, 1) is None and appended_rows(table, 2, 3) is None
    assert rows_at(table, 3) is None
    named = replace(table, target=DeltaTarget(table="default.t"))
    assert appended_rows(named, 2, 2) is None
    monkeypatch.setattr("bridge.delta.logged_files.MOST_FILES", 1)
    assert rows_at(table, 2) is None and rows_at(table, 1) is not None
