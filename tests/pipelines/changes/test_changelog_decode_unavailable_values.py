"""Columns that a document does not tell: from the change before, else from the table, else nothing is done."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from pyspark.sql import SparkSession

from bridge.columns import BAD, KIND, POSITION
from bridge.decode import UNAVAILABLE
from bridge.delta.merge_semantics import KEPT
from bridge.pipelines.changes.changelog_decode import fill_unavailable_values

_AT = datetime(2020, 1, 1, tzinfo=timezone.utc)
_SHAPE = (
    f"struct<id: int, `a.b`: string, w: int, {KIND}: string, {BAD}: string, "
    f"{POSITION}: struct<topic: string, partition: int, offset: bigint, timestamp: timestamp, row: int>, "
    f"{UNAVAILABLE}: array<string>>"
)


def _filled(
    spark: SparkSession, changes: list[tuple[Any, ...]], table: list[tuple[Any, ...]]
) -> list[tuple[Any, ...]]:
    rows = [(*row[:5], ("t", 0, n, _AT, 0), row[5]) for n, row in enumerate(changes)]
    frame = spark.createDataFrame(rows, _SHAPE)
    there = spark.createDataFrame(table, "id int, `a.b` string, w int")
    found = fill_unavailable_values(frame, there, key=["id"], columns=["a.b", "w"])
    assert found.columns == [*frame.columns, KEPT]
    order = sorted(found.collect(), key=lambda row: row[POSITION].offset)
    return [(*tuple(row)[:5], row[UNAVAILABLE]) for row in order]


def test_the_change_before_else_the_table(spark: SparkSession) -> None:
    changes = [
        (1, None, 5, "+U", None, ["a.b"]),
        (2, "new", 1, "+I", None, None),
        (2, None, 2, "+U", None, ["a.b"]),
        (2, None, None, "+U", None, ["a.b", "w"]),
        (2, None, None, "-D", None, None),
        (1, "told", None, "+U", None, ["w"]),
        (3, None, None, "skip", None, None),
        (4, None, None, None, "value: malformed", None),
    ]
    assert _filled(spark, changes, [(1, "large", 9), (2, "old", 8)]) == [
        (1, "large", 5, "+U", None, None),
        (2, "new", 1, "+I", None, None),
        (2, "new", 2, "+U", None, None),
        (2, "new", 2, "+U", None, None),
        (2, None, None, "-D", None, None),
        (1, "told", 5, "+U", None, None),
        (3, None, None, "skip", None, None),
        (4, None, None, None, "value: malformed", None),
    ]


def test_a_null_that_is_told_is_a_value(spark: SparkSession) -> None:
    changes = [(1, None, 1, "+U", None, None), (1, None, 2, "+U", None, ["a.b"])]
    assert _filled(spark, changes, [(1, "old", 0)])[1] == (1, None, 2, "+U", None, None)


def test_a_state_before_that_holds_the_key_alone_tells_nothing(spark: SparkSession) -> None:
    changes = [(1, None, None, "-U", None, None), (1, None, 2, "+U", None, ["a.b"])]
    assert _filled(spark, changes, [(1, "old", 0)])[1] == (1, "old", 2, "+U", None, None)


def test_no_row_to_keep_it_from_is_bad(spark: SparkSession) -> None:
    [row] = _filled(spark, [(1, None, None, "+U", None, ["a.b", "w"])], [(2, "old", 0)])
    assert row[3] is None
    assert row[4] == "value: it leaves out a.b, w, and there is no row of this key whose value could be kept"


def test_of_two_partitions_that_counts_as_earlier_whose_last_record_is_older(spark: SparkSession) -> None:
    """As in the fold (ADR 028, rule 3), whatever the numbers of the partitions are; in each of them by offset."""
    at = [_AT + timedelta(seconds=n) for n in range(4)]
    changes = [
        (1, "first", 1, "+I", None, ("t", 1, 5, at[1], 0), None),
        (1, "second", 2, "+U", None, ("t", 1, 6, at[0], 0), None),
        (1, None, 3, "+U", None, ("t", 0, 9, at[2], 0), ["a.b"]),
        (2, None, 1, "+U", None, ("t", 1, 7, at[1], 0), ["a.b"]),
        (2, "later", 2, "+I", None, ("t", 0, 8, at[3], 0), None),
    ]
    there = spark.createDataFrame([(1, "old", 0), (2, "old", 0)], "id int, `a.b` string, w int")
    frame = spark.createDataFrame(changes, _SHAPE)
    found = fill_unavailable_values(frame, there, key=["id"], columns=["a.b", "w"])
    assert {(row[POSITION].offset, row["a.b"]) for row in found.collect()} == {
        (5, "first"),
        (6, "second"),
        (9, "second"),
        (7, "old"),
        (8, "later"),
    }


def test_a_merge_is_told_which_values_are_those_of_the_table(spark: SparkSession) -> None:
    changes = [
        (1, None, 5, "+U", None, ("t", 0, 0, _AT, 0), ["a.b"]),
        (1, "told", None, "+U", None, ("t", 0, 1, _AT, 0), ["w"]),
        (2, None, None, "+U", None, ("t", 0, 2, _AT, 0), ["a.b", "w"]),
    ]
    there = spark.createDataFrame([(1, "old", 0), (2, "old", 0)], "id int, `a.b` string, w int")
    found = fill_unavailable_values(
        spark.createDataFrame(changes, _SHAPE), there, key=["id"], columns=["a.b", "w"]
    )
    kept = {row[POSITION].offset: row[KEPT] for row in found.collect()}
    assert kept == {0: ["a.b"], 1: None, 2: ["a.b", "w"]}
