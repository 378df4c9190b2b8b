"""Data that is gone is an error that names the versions and the repair, never silence."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.definition import DeltaTarget
from bridge.delta import change_feed
from bridge.delta.delta_errors import feed_errors
from bridge.delta.table import create_table, open_table
from bridge.errors import REPUBLISH, GapError, TableError
from tests.delta.tables import FIELDS, append, log_file, made


def test_another_table_under_the_same_name(spark: SparkSession, unique: Callable[[str], str]) -> None:
    named = DeltaTarget(table="default." + unique("t").replace("-", "_"))
    table = create_table(spark, named, FIELDS, pipeline="p")
    change_feed.check_same(table, table.id)
    spark.sql(f"DROP TABLE {named.table}")
    new = create_table(spark, named, FIELDS, pipeline="p")
    with pytest.raises(GapError) as caught:
        change_feed.check_same(table, table.id)
    assert str(caught.value) == (
        f"table {named.table} was replaced: progress belongs to table id {table.id}, there is now {new.id}; "
        f"{REPUBLISH}"
    )
    with pytest.raises(GapError, match="was replaced"):
        change_feed.check_feed(new, 0, 0, table.id)
    spark.sql(f"DROP TABLE {named.table}")


def test_a_feed_that_was_off_in_between(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t")
    for switch in ("false", "true"):
        spark.sql(f"ALTER TABLE delta.`{lake}/t` SET TBLPROPERTIES (delta.enableChangeDataFeed = {switch})")
        append(table, [(1, switch)])
    table = open_table(spark, table.target, FIELDS)
    with pytest.raises(GapError) as caught:
        change_feed.check_feed(table, 0, 4, table.id)
    assert str(caught.value) == (
        f"table {table}: versions 0 to 4 are needed, but the change data feed was off for part of them; {REPUBLISH}; "
        "to keep more history raise delta.logRetentionDuration and "
        "delta.deletedFileRetentionDuration"
    )
    with pytest.raises(GapError, match="the change data feed was off"), feed_errors(table, 2, 2):
        change_feed.changes(table, 2, 2).collect()
    change_feed.check_feed(table, 3, 4, table.id)
    assert change_feed.changes(table, 3, 4).count() == 1


def test_a_column_renamed_in_between(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")], properties={"delta.columnMapping.mode": "name"})
    spark.sql(f"ALTER TABLE delta.`{lake}/t` RENAME COLUMN v TO w")
    spark.sql(f"ALTER TABLE delta.`{lake}/t` ADD COLUMN v STRING")
    with pytest.raises(
        GapError, match="versions 1 to 3 are needed, but columns were renamed, dropped or retyped"
    ):
        change_feed.check_feed(table, 1, 3, table.id)


@pytest.mark.slow
def test_files_that_were_vacuumed(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a"), (2, "b")])
    spark.sql(f"UPDATE delta.`{lake}/t` SET v = 'c' WHERE id = 1")
    table.delta().optimize().executeCompaction()
    careless = spark.newSession()
    careless.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    careless.sql(f"VACUUM delta.`{lake}/t` RETAIN 0 HOURS")
    change_feed.check_feed(table, 1, 2, table.id)
    vacuumed = "needed, but files of those versions have been vacuumed"
    with (
        pytest.raises(GapError, match=f"versions 1 to 2 are {vacuumed}"),
        feed_errors(table, 1, 2),
    ):
        change_feed.changes(table, 1, 2).collect()
    with pytest.raises(GapError, match=f"version 1 is {vacuumed}"), feed_errors(table, 1, 1):
        change_feed.snapshot(table, 1).collect()


def test_a_log_that_was_cleaned(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")], properties={"delta.checkpointInterval": "3"})
    append(table, [(2, "b")])
    append(table, [(3, "c")])
    for version in range(3):
        log_file(table, version).unlink()
    with pytest.raises(
        GapError, match="versions 1 to 3 are needed, but the table's log no longer reaches back that far"
    ):
        change_feed.check_feed(table, 1, 3, table.id)
    with pytest.raises(
        GapError, match="versions 1 to 3 are needed, but the table's log no longer reaches back"
    ):
        change_feed.changes(table, 1, 3)
    with pytest.raises(GapError, match="version 1 is needed, but the table's log no longer reaches back"):
        change_feed.snapshot(table, 1)
    change_feed.check_feed(table, 3, 3, table.id)
    assert change_feed.snapshot(table, 3).count() == 3


def test_other_failures_pass_through_the_wrapper(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")])
    with (
        pytest.raises(Exception, match="a failure of another step") as caught,
        feed_errors(table, 1, 1),
    ):
        change_feed.changes(table, 1, 1).selectExpr("raise_error('a failure of another step')").collect()
    assert not isinstance(caught.value, GapError)
    shutil.rmtree(lake / "t")
    with pytest.raises(TableError, match="no Delta table at"):
        change_feed.changes(table, 1, 1)
    with pytest.raises(ZeroDivisionError), feed_errors(table, 1, 1):
        raise ZeroDivisionError
