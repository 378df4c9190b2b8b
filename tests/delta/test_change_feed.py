"""Snapshots and the change data feed as changes.

Data that is gone is an error that names the versions and the repair, never silence.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from bridge.columns import KIND, POSITION
from bridge.definition import DeltaTarget
from bridge.delta import change_feed
from bridge.delta.delta_errors import feed_errors
from bridge.delta.table import Table, create_table, open_table
from bridge.errors import REPUBLISH, DefinitionError, GapError, TableError
from tests.delta.tables import FIELDS, append, at, by_spark, commit_by_hand, frame, log_file, made


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Version 0 empty, 1 an append, 2 a MERGE, 3 a changed key, 4 OPTIMIZE, 5 progress alone."""
    made_here = made(spark, tmp_path_factory.mktemp("feed") / "t", rows=[(1, "a"), (2, "b"), (3, "c")])
    changes = frame(made_here, [("+U", 1, "x"), ("-D", 2, None), ("+U", 3, "c"), ("+U", 4, None)])
    by_spark(made_here, changes, key=["id"], progress=at(0))
    spark.sql(f"UPDATE delta.`{made_here.target.path}` SET id = 30 WHERE id = 3")
    made_here.delta().optimize().executeCompaction()
    by_spark(made_here, frame(made_here, []), key=["id"], progress=at(1))
    return made_here


def rows(changes: DataFrame) -> list[tuple[Any, ...]]:
    """(version, kind, *columns) in order."""
    position = [f"{POSITION}.version", KIND]
    names = [n for n in changes.columns if not n.startswith("__")]
    return sorted(map(tuple, changes.select(*position, *names).collect()), key=str)


def test_a_snapshot_is_all_inserts_of_that_version(table: Table) -> None:
    changes = change_feed.snapshot(table, 1)
    assert changes.columns == ["id", "v", KIND, POSITION]
    assert changes.schema[POSITION].dataType.simpleString() == "struct<version:bigint>"
    assert rows(changes) == [(1, "+I", 1, "a"), (1, "+I", 2, "b"), (1, "+I", 3, "c")]
    assert rows(change_feed.snapshot(table, 0)) == []
    for version in (0, 1, 5):
        assert rows(change_feed.snapshot(table, version)) == rows(
            change_feed.snapshot(table, version, by_delta=True)
        )
    assert rows(change_feed.snapshot(table, 5)) == [(5, "+I", 1, "x"), (5, "+I", 30, "c"), (5, "+I", 4, None)]


@pytest.mark.versions
def test_changes_have_flinks_kinds_and_their_version(table: Table) -> None:
    changes = change_feed.changes(table, 1, 5)
    assert changes.columns == ["id", "v", KIND, POSITION]
    assert changes.schema[POSITION].dataType.simpleString() == "struct<version:bigint>"
    assert rows(changes) == [
        (1, "+I", 1, "a"),
        (1, "+I", 2, "b"),
        (1, "+I", 3, "c"),
        (2, "+I", 4, None),
        (2, "+U", 1, "x"),
        (2, "-D", 2, "b"),
        (2, "-U", 1, "a"),
        (3, "+U", 30, "c"),
        (3, "-U", 3, "c"),
    ]


def test_rows_before_an_update_are_left_out(table: Table) -> None:
    """By Parquet's reader where the version has files of changes."""
    others = [change for change in rows(change_feed.changes(table, 1, 5)) if change[1] != "-U"]
    without = change_feed.changes(table, 1, 5, before_images=False)
    assert rows(without) == others and len(others) == 7
    plan = change_feed.changes(table, 2, 2, before_images=False)._jdf.queryExecution().toString()
    assert "Not(EqualTo(_change_type,update_preimage))" in plan


def test_both_ends_are_inclusive(table: Table) -> None:
    assert {row[0] for row in rows(change_feed.changes(table, 2, 3))} == {2, 3}
    assert {row[0] for row in rows(change_feed.changes(table, 3, 3))} == {3}


def test_commits_without_row_changes_give_nothing(table: Table) -> None:
    assert rows(change_feed.changes(table, 0, 0)) == rows(change_feed.changes(table, 4, 5)) == []


def test_only_the_definitions_columns_are_read(spark: SparkSession, table: Table) -> None:
    narrow = open_table(spark, table.target, table.fields[1:], extra_columns="unused")
    assert (
        change_feed.changes(narrow, 2, 2).columns
        == change_feed.snapshot(narrow, 2).columns
        == ["v", KIND, POSITION]
    )


def test_a_column_added_later_is_null_before(spark: SparkSession, lake: Path) -> None:
    old = made(spark, lake / "t", rows=[(1, "a")])
    spark.sql(f"ALTER TABLE delta.`{lake}/t` ADD COLUMN w STRING")
    new = open_table(spark, old.target, [*old.fields, T.StructField("w", T.StringType())])
    append(new, [(2, "b", "c")])
    assert rows(change_feed.changes(new, 0, 3)) == [(1, "+I", 1, "a", None), (3, "+I", 2, "b", "c")]


def test_latest_version(table: Table) -> None:
    assert change_feed.latest_version(table) == 5


@pytest.mark.versions
def test_the_feed_of_a_sound_table_passes_the_check(table: Table) -> None:
    change_feed.check_feed(table, 0, 5, table.id)


def test_the_version_at_a_time(spark: SparkSession, lake: Path) -> None:
    """Commits by hand are a millisecond apart; so commit times are known."""
    table = made(spark, lake / "t", properties={"delta.checkpointInterval": "3"})
    base = 1_700_000_000_000
    log = [log_file(table, 0), *(log_file(table, v) for v in (1, 2))]
    for version in (1, 2):
        commit_by_hand(table, version)

    for version, file in enumerate(log):
        os.utime(file, ns=((base + version) * 10**6, (base + version) * 10**6))

    def moment(milliseconds: float, zone: timezone = timezone.utc) -> str:
        at = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=base + milliseconds)
        return at.astimezone(zone).isoformat()

    assert [change_feed.version_at(table, moment(m)) for m in (-5, 0, 0.5, 1, 2)] == [0, 0, 1, 1, 2]
    assert change_feed.version_at(table, moment(1, timezone(timedelta(hours=5)))) == 1
    assert change_feed.version_at(table, moment(1).replace("+00:00", "Z")) == 1
    assert change_feed.version_at(table, moment(1).removesuffix("+00:00")) == 1
    with pytest.raises(
        DefinitionError, match=r"no version of table .* was committed at .* or later; the newest, version 2"
    ):
        change_feed.version_at(table, moment(2.5))
    with pytest.raises(
        DefinitionError, match=r"'noon' is not a timestamp; write one as 2026-01-31T12:00:00Z"
    ):
        change_feed.version_at(table, "noon")


def test_a_time_before_the_log_is_refused(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")], properties={"delta.checkpointInterval": "2"})
    append(table, [(2, "b")])
    append(table, [(3, "c")])
    log_file(table, 0).unlink()
    log_file(table, 1).unlink()
    with pytest.raises(
        DefinitionError, match=r"2001-01-01T00:00:00\+00:00 is before version 2 of .*, the oldest"
    ):
        change_feed.version_at(table, "2001-01-01")


def test_a_range_past_the_newest_version_is_a_gap(table: Table) -> None:
    with pytest.raises(
        GapError, match=r"versions 5 to 9 are needed, but the newest is 5.*run `bridge resync FILE`"
    ):
        change_feed.check_feed(table, 5, 9, table.id)


def test_a_version_that_changes_keys(table: Table) -> None:
    assert change_feed.key_moves(table, [2, 3], ["id"]) == [3]
    assert change_feed.key_moves(table, [], ["id"]) == []


def test_every_row_of_a_snapshot_is_in_one_chunk(spark: SparkSession, tmp_path: Path) -> None:
    table = made(spark, tmp_path / "t", rows=[(n, "x") for n in range(50)])
    newest = change_feed.latest_version(table)
    assert change_feed.row_count(table, newest) == 50
    snapshot = change_feed.snapshot(table, newest)
    for key in (["id"], []):
        parts = [[r["id"] for r in change_feed.chunk(table, snapshot, key, n, 3).collect()] for n in range(3)]
        assert sorted(id for part in parts for id in part) == list(range(50))
        assert all(parts)


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
