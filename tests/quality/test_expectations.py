"""The bridge's expectations on tables pass and fail for the right reasons."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.quality.conftest import Checked


@pytest.mark.parametrize(
    ("rows", "success", "examples"),
    [
        ([(1, "a"), (1, "b"), (2, "a")], True, ()),
        ([(1, "a"), (1, "a"), (2, "a")], False, ({"n": 1, "s": "a"},)),
        ([(None, "a"), (None, "b"), (1, None), (2, None)], True, ()),
        ([(None, "a"), (None, "a")], False, ({"n": None, "s": "a"},)),
        ([(None, None), (None, None), (0, None), (None, "")], False, ({"n": None, "s": None},)),
        ([], True, ()),
    ],
)
def test_compound_keys_are_unique_with_null_as_a_value(
    spark: SparkSession,
    checked: Checked,
    rows: list[tuple[Any, ...]],
    success: bool,
    examples: tuple[dict[str, Any], ...],
) -> None:
    frame = spark.createDataFrame(rows, "n INT, s STRING")
    outcome = checked(frame, "expect_key_to_be_unique", key=["n", "s"], column_list=["n", "s"])
    assert (outcome.success, outcome.example_keys, outcome.reason) == (success, examples, None)
    assert outcome.title == "n, s are unique together: each key occurs once."


def test_keys_are_shown_as_json_and_their_columns_may_have_any_name(
    spark: SparkSession, checked: Checked
) -> None:
    frame = spark.sql(
        "SELECT X'0AFF' AS `a.b`, TIMESTAMP '2024-05-06 07:08:09Z' AS `c``d`, 1.5BD AS e FROM range(2)"
    )
    names = ["a.b", "c`d", "e"]
    outcome = checked(frame, "expect_key_to_be_unique", key=names, column_list=names)
    assert outcome.example_keys == ({"a.b": "0aff", "c`d": "2024-05-06T07:08:09+00:00", "e": "1.5"},)


@pytest.mark.slow
def test_duplicates_put_by_hand_into_five_million_rows_are_named(
    spark: SparkSession, checked: Checked, tmp_path: Path
) -> None:
    """One aggregate finds exactly three keys that occur twice and one that occurs four times."""
    rows = spark.range(5_000_000).selectExpr("id", "CAST(id % 7 AS STRING) AS part", "id * 2 AS n")
    rows.write.format("delta").save(str(tmp_path / "table"))
    twice = [(17, "3", 0), (4_999_999, "4", 1), (1_000_000, "1", 2)] + [(70, "0", n) for n in range(3)]
    again = spark.createDataFrame([*twice, (70, "1", 0)], "id bigint, part string, n bigint")
    again.write.format("delta").mode("append").save(str(tmp_path / "table"))
    key = ["id", "part"]
    started = time.monotonic()
    frame = spark.read.format("delta").load(str(tmp_path / "table"))
    outcome = checked(frame, "expect_key_to_be_unique", key=key, column_list=key)
    print(f"duplicates among {5_000_007:,} rows: {time.monotonic() - started:.1f} s")
    assert outcome.observed == "4 keys occur more than once (10 rows)"
    assert outcome.example_keys == (
        {"id": 70, "part": "0"},
        {"id": 17, "part": "3"},
        {"id": 1_000_000, "part": "1"},
        {"id": 4_999_999, "part": "4"},
    )


@pytest.mark.parametrize(
    ("type", "old", "success", "observed"),
    [
        ("TIMESTAMP_NTZ", timedelta(minutes=30), True, "30 minutes"),
        ("TIMESTAMP_NTZ", timedelta(hours=2, minutes=5), False, "2 hours 5 minutes"),
        ("TIMESTAMP", timedelta(hours=2, minutes=5), False, "2 hours 5 minutes"),
        ("TIMESTAMP", timedelta(minutes=-4), True, "in the future"),
        ("TIMESTAMP", timedelta(days=-2), False, "in the future"),
        ("DATE", timedelta(days=3), False, "3 days"),
        ("TIMESTAMP", None, False, "no value in t"),
    ],
)
def test_freshness_looks_at_the_newest_value(
    spark: SparkSession, checked: Checked, type: str, old: timedelta | None, success: bool, observed: str
) -> None:
    at = None if old is None else datetime.now(timezone.utc) - old
    rows = [(at and at.isoformat(),)] + [("2001-01-01T00:00:00Z",), (None,)] * (at is not None)
    frame = spark.createDataFrame(rows, "t STRING").select(F.col("t").cast(type))
    outcome = checked(frame, "expect_table_to_be_fresh", column="t", max_age_seconds=3600)
    assert outcome.success is success
    assert observed in outcome.observed
    assert (outcome.expected, outcome.reason) == ("at most 1 hour old", None)
    assert outcome.title == "The newest t is at most 1 hour old."


def test_freshness_of_text_is_refused(spark: SparkSession, checked: Checked) -> None:
    outcome = checked(spark.sql("SELECT 'x' AS t"), "expect_table_to_be_fresh", column="t", max_age_seconds=1)
    assert not outcome.success
    assert (
        outcome.reason == "TypeError: column 't' is STRING; freshness needs TIMESTAMP, TIMESTAMP_LTZ or DATE"
    )
