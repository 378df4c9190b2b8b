"""The expectation on histories names the keys whose rows overlap or end in the wrong place."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.quality.conftest import Checked

KIND = "expect_history_to_be_whole"


def test_keys_with_a_wrong_end_are_named(spark: SparkSession, checked: Checked) -> None:
    whole = [
        (1, 1, 3, False), (1, 3, 5, False), (1, 8, None, True),  # with a gap: a deletion
        (None, None, 4, False), (None, 4, 9, False),
    ]  # fmt: skip
    columns = "id INT, __valid_from INT, __valid_to INT, __current BOOLEAN"
    outcome = checked(spark.createDataFrame(whole, columns), KIND, key=["id"], column_list=["id"])
    assert (outcome.success, outcome.reason) == (True, None)
    assert outcome.title == "The rows of each id follow each other in time."
    broken = [
        (2, 1, 4, False), (2, 3, None, True),  # overlaps
        (3, 1, None, True), (3, 3, None, True),  # two are current
        (4, 5, 5, False), (4, 6, None, None),  # lasts no time; nobody knows
        (5, 1, None, False),
        (6, 1, 2, True),
    ]  # fmt: skip
    outcome = checked(spark.createDataFrame(whole + broken, columns), KIND, key=["id"], column_list=["id"])
    assert outcome.observed == "5 keys have rows with a wrong end (6 rows)"
    assert outcome.example_keys == tuple({"id": n} for n in range(2, 7))


@pytest.mark.slow
def test_columns_may_have_other_names(spark: SparkSession, checked: Checked) -> None:
    names: dict[str, Any] = {"valid_from": "a", "valid_to": "b", "current": "c"}
    frame = spark.sql("SELECT 1 AS id, 2 AS a, 1 AS b, false AS c")
    outcome = checked(frame, KIND, column_list=["id"], **names)
    assert outcome.observed == "1 key has rows with a wrong end (1 row)"


@pytest.mark.slow
def test_rows_that_were_known_before_do_not_count(spark: SparkSession, checked: Checked) -> None:
    names: dict[str, Any] = {"valid_from": "a", "valid_to": "b", "current": "c"}
    rows = [(1, 2, None, True, 9), (1, 2, 4, False, None), (1, 4, None, True, None)]
    frame = spark.createDataFrame(rows, "id INT, a INT, b INT, c BOOLEAN, known_to INT")
    assert checked(frame, KIND, column_list=["id"], system_to="known_to", **names).success
    assert not checked(frame, KIND, column_list=["id"], **names).success
