"""Changes that are read from the files of a log are those of Delta's change data feed, or Delta is asked."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from bridge.columns import col, frame_of
from bridge.definition import DeltaTarget
from bridge.delta import change_feed
from bridge.delta import changed_files as by_log
from bridge.delta.changed_files import CHANGE_TYPE, COMMIT_VERSION
from bridge.delta.delta_errors import feed_errors
from bridge.delta.table import Table, open_table
from bridge.errors import GapError
from tests.delta.drawn_commits import MOMENT, WIDE, add_by_hand, counted, play, sql
from tests.delta.tables import (
    FIELDS,
    NO_VECTORS,
    Merge,
    append,
    at,
    by_copies,
    by_marks,
    frame,
    log_file,
    made,
)
from tests.refusals import optional

changed_files = optional(by_log.changed_files)
changed_rows = optional(by_log.changed_rows)
changes_in_driver = optional(by_log.changes_in_driver)


def agrees(table: Table, first: int, last: int) -> set[tuple[int, int]]:
    """Compare all ranges within first..last with Delta's feed; returns those that were read from their files."""
    known = set()
    for start in range(first, last + 1):
        for end in range(start, last + 1):
            found = changed_rows(table, start, end)
            if found is None:
                continue
            known.add((start, end))
            options = {"readChangeFeed": "true", "startingVersion": str(start), "endingVersion": str(end)}
            columns = [col(name) for name in (*table.columns, CHANGE_TYPE, COMMIT_VERSION)]
            assert counted(found) == counted(table.read(options).select(*columns)), (
                f"versions {start} to {end}"
            )
            for before in (True, False) if (start, end) == (first, last) else ():
                ours = change_feed.changes(table, start, end, before_images=before)
                theirs = change_feed.changes(table, start, end, before_images=before, by_delta=True)
                assert counted(ours) == counted(theirs)
                assert ours.schema.simpleString() == theirs.schema.simpleString()
            arrow = changes_in_driver(table, start, end, table.columns, most_bytes=1 << 30, most_rows=10**6)
            if WIDE[-1].name in table.columns:
                assert arrow is None, "it has a nested column"
                continue
            assert arrow is not None
            read = frame_of(table.spark, arrow, found.drop(COMMIT_VERSION).schema)
            assert counted(read) == counted(found.drop(COMMIT_VERSION))
    return known


def played(spark: SparkSession, lake: Path, seed: int, length: int) -> None:
    draw = random.Random(seed)
    properties = {"delta.checkpointInterval": "4"} | (NO_VECTORS if seed % 2 else {})
    table = made(spark, lake / "t", properties=properties)
    names = play(spark, table, draw, length, appends=2)
    assert agrees(table, 1, change_feed.latest_version(table)), names


def test_drawn_histories(spark: SparkSession, lake: Path) -> None:
    played(spark, lake, seed=4, length=3)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(10, 20))
def test_more_drawn_histories(spark: SparkSession, lake: Path, seed: int) -> None:
    played(spark, lake, seed, length=8)


@pytest.mark.parametrize(
    ("merge", "properties"), [(by_marks, {}), (by_copies, NO_VECTORS)], ids=["marks", "copies"]
)
def test_batches_of_an_ingest(
    spark: SparkSession, lake: Path, merge: Merge, properties: Mapping[str, str]
) -> None:
    draw = random.Random(1)
    table = made(spark, lake / "t", properties={"delta.checkpointInterval": "3", **properties})
    append(table, [(key, "a") for key in range(30)])
    for batch in range(2):
        keys = draw.sample(range(40), 8)
        changes = [(draw.choice(["+U", "-D"]), key, draw.choice(["x", "", None])) for key in keys]
        merge(table, frame(table, changes), key=["id"], progress=at(batch))
    last = change_feed.latest_version(table)
    assert (1, last) in agrees(table, 1, last)


@pytest.mark.parametrize("name", ["t", "sp ace & ü #1;a%20b+c:d,e"])
def test_rows_of_all_types(spark: SparkSession, lake: Path, name: str) -> None:
    table = made(spark, lake / name, fields=WIDE, properties=NO_VECTORS)
    rows: list[tuple[Any, ...]] = [
        (1, "é", Decimal("-1.5"), MOMENT, MOMENT, MOMENT.date(), b"\0x", ([{"k": None}, None],)),
        (None,) * len(WIDE),
        (2, "", None, None, None, None, b"", (None,)),
    ]
    append(table, rows)
    table.delta().update("id = 1", {"v": "'u'"})
    table.delta().delete("id = 2")
    assert agrees(table, 1, 3) == {(1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (3, 3)}


def test_a_range_without_changes(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")])
    append(table, [(2, "b")])
    table.delta().optimize().executeCompaction()
    found = changed_rows(table, 3, 3)
    assert found is not None and found.collect() == []
    assert found.columns == [*table.columns, CHANGE_TYPE, COMMIT_VERSION]
    assert agrees(table, 1, 3)


def test_files_of_changes_are_told_from_added_ones(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a"), (2, "b")], properties=NO_VECTORS)
    table.delta().update("id = 1", {"v": "'u'"})
    found = changed_files(table, 1, 2)
    assert found is not None
    added, changed = found[1]
    assert (added.version, added.of_changes, changed.version, changed.of_changes) == (1, False, 2, True)
    names = [str(action["path"]) for action in changed.actions]
    assert names and all(name.startswith("_change_data/") for name in names)
    assert changed.bytes == sum((lake / "t" / name).stat().st_size for name in names)
    most = added.bytes + changed.bytes
    kept, left = (
        changes_in_driver(table, 1, 2, ["id"], most_bytes=size, most_rows=4) for size in (most, most - 1)
    )
    assert left is None and kept is not None
    assert kept.column_names == ["id", CHANGE_TYPE]
    assert changes_in_driver(table, 1, 2, ["id"], most_bytes=most, most_rows=3) is None
    assert kept[CHANGE_TYPE].to_pylist()[:2] == ["insert", "insert"], "by ascending version"


def test_a_version_that_removed_whole_files_is_left_to_delta(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")])
    append(table, [(2, "b")])
    table.delta().delete("id = 1")
    table.delta().delete()
    assert changed_rows(table, 1, 2) is not None
    assert changed_rows(table, 1, 4) is None and changed_rows(table, 4, 4) is None
    assert change_feed.changes(table, 4, 4).count() == 1
    change_feed.check_feed(table, 1, 4, table.id)


def test_columns_that_change_are_left_to_delta(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")])
    sql(spark, table, "ALTER TABLE {t} ADD COLUMNS (c INT)")
    append(table, [(2, "b")])
    table = open_table(spark, table.target, (*FIELDS, T.StructField("c", T.IntegerType())))
    assert changed_rows(table, 1, 3) is None and changed_rows(table, 2, 3) is None
    assert agrees(table, 1, 3) == {(3, 3)}, "in version 1 the column was not there, which Delta says"


def test_a_file_that_is_gone_is_named_by_delta(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a"), (2, "b")], properties=NO_VECTORS)
    table.delta().update("id = 1", {"v": "'u'"})
    shutil.rmtree(lake / "t" / "_change_data")
    assert changed_rows(table, 2, 2) is None
    change_feed.check_feed(table, 2, 2, table.id)  # it reads the log only
    with (
        pytest.raises(GapError, match="version 2 is needed, but files of those versions have been vacuumed"),
        feed_errors(table, 2, 2),
    ):
        change_feed.changes(table, 2, 2).collect()


def _cleaned(table: Table) -> None:
    log_file(table, 2).unlink()


def _torn(table: Table) -> None:
    log_file(table, 2).write_text('{"add":')


def _replaced(table: Table) -> None:
    shutil.rmtree(str(table.target.path))
    append(made(table.spark, Path(str(table.target.path))), [(1, "a")])


@pytest.mark.parametrize("change", [_cleaned, _torn, _replaced])
def test_a_log_that_is_not_complete_is_left_to_delta(
    spark: SparkSession, lake: Path, change: Callable[[Table], None]
) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")])
    append(table, [(1, "a")])
    assert changed_rows(table, 1, 2) is not None
    change(table)
    assert changed_files(table, 1, 2) is None and changed_rows(table, 1, 2) is None
    with pytest.raises(Exception, match=r"version|Checksum|end-of-input|replaced"):  # or Hadoop's error
        change_feed.check_feed(table, 1, 2, table.id)


def test_ranges_and_places_that_are_left_to_delta(
    spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.delta.changed_files.MOST_VERSIONS", 2)
    table = made(spark, lake / "t", rows=[(1, "a")])
    for _ in range(2):
        append(table, [(1, "a")])
    assert changed_rows(table, 0, 1) is None, "the first version creates the table"
    assert changed_rows(table, 2, 1) is None and changed_rows(table, 2, 4) is None
    assert changed_rows(table, 1, 2) is not None and changed_rows(table, 1, 3) is None
    assert changed_files(table, 1, 3) is not None
    named = replace(table, target=DeltaTarget(table="default.t"))
    assert changed_rows(named, 2, 2) is None


def test_a_feed_that_was_off_before_is_left_to_delta(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")])
    for state in ("false", "true"):
        sql(spark, table, f"ALTER TABLE {{t}} SET TBLPROPERTIES (delta.enableChangeDataFeed = {state})")
        append(table, [(2, "b")])
    assert changed_rows(table, 3, 3) is None and changed_rows(table, 3, 5) is None
    with pytest.raises(GapError):
        change_feed.check_feed(table, 3, 5, table.id)
    assert agrees(table, 1, 5) == {(1, 1), (5, 5)}


def test_a_file_with_a_vector_that_another_writer_added_is_left_to_delta(
    spark: SparkSession, lake: Path
) -> None:
    table = made(spark, lake / "t", rows=[(1, "a"), (2, "b")])
    file = next((lake / "t").glob("*.parquet"))
    shutil.copy(file, lake / "t" / "copy.parquet")
    add_by_hand(table, 2, "copy.parquet", file.stat().st_size)
    assert agrees(table, 1, 2)
    text = log_file(table, 2).read_text()
    log_file(table, 2).write_text(
        text.replace('"dataChange": true', '"dataChange": true, "deletionVector": {"x": 1}')
    )
    assert changed_rows(table, 2, 2) is None
