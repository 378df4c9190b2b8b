"""A check of changes alone: the rows that changed, and the whole table where they cannot tell."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from bridge import config
from bridge.definition import Definition
from bridge.delta.table import Table, create_table
from bridge.delta.table_checks import CHANGE_FEED_PROPERTY
from bridge.errors import DefinitionError, GapError, TableError
from bridge.pipelines.quality.check import changed_rows, check, split_by_scope
from bridge.quality.suite import load
from tests.pipelines.quality.test_check import FILE, SUITE

FIELDS = [
    T.StructField("id", T.LongType()),
    T.StructField("part", T.StringType()),
    T.StructField("n", T.IntegerType()),
]
KEY = ("id", "part")


def sql(spark: SparkSession, table: Table, statement: str) -> None:
    spark.sql(statement.replace("@", f"delta.`{table.target.path}`"))


@pytest.fixture(scope="module")
def definition(tmp_path_factory: pytest.TempPathFactory) -> Definition:
    folder = tmp_path_factory.mktemp("things")
    (folder / "things.json").write_text(json.dumps(SUITE))
    (folder / "things.yaml").write_text(FILE)
    return config.load(folder / "things.yaml")


@pytest.fixture(scope="module")
def table(spark: SparkSession, definition: Definition) -> Table:
    """Version 1 has rows 1 to 3, of which 2 is bad; what comes after it changes 3, and 4 comes and goes."""
    made = create_table(spark, definition.delta, FIELDS, pipeline=definition.name)
    sql(spark, made, "INSERT INTO @ VALUES (1, 'a', 5), (2, 'a', -1), (3, null, 5)")
    sql(spark, made, "UPDATE @ SET n = -6 WHERE id = 3")
    sql(spark, made, "INSERT INTO @ VALUES (4, 'a', -1), (5, 'a', -2)")
    sql(spark, made, "DELETE FROM @ WHERE id = 4")
    sql(spark, made, "UPDATE @ SET n = -7 WHERE id = 3")
    sql(spark, made, "INSERT INTO @ VALUES (1, 'a', 5)")  # a duplicate; version 6
    return made


def test_changed_rows_are_judged_alone_and_keys_on_the_whole_table(
    spark: SparkSession, definition: Definition, table: Table
) -> None:
    checked = check(spark, definition, since=1)
    unique, between = checked.verdict.expectations
    assert (unique.evaluated_on, unique.success) == ("table", False)
    assert unique.example_keys == ({"id": 1, "part": "a"},)
    assert (between.evaluated_on, between.success, between.observed) == (
        "changes",
        False,
        "2 of 3 values fail",
    )
    assert sorted(k["id"] for k in between.example_keys) == [3, 5]
    assert (checked.verdict.row_count, checked.verdict.changed_rows) == (5, 3)
    page = Path(checked.report).read_text(encoding="utf-8")
    assert "Checked 3 rows that changed since version 1, and all 5 rows for" in page

    nothing = check(spark, definition, since=6)
    assert nothing.history.runs == ()  # a check of changes is no part of the trends
    assert [o.success for o in nothing.verdict.expectations] == [False, True]
    assert nothing.verdict.changed_rows == 0
    assert nothing.verdict.expectations[1].observed == "no row to check"


def test_the_newest_rows_of_a_key_and_all_rows_without_one(table: Table) -> None:
    def rows(key: tuple[str, ...], since: int, version: int) -> list[tuple[object, ...]]:
        return sorted((tuple(r) for r in changed_rows(table, key, since, version).collect()), key=str)

    assert rows(KEY, 1, 6) == [(1, "a", 5), (3, None, -7), (5, "a", -2)]
    assert rows(KEY, 1, 3) == [(3, None, -6), (4, "a", -1), (5, "a", -2)]
    assert rows(KEY, 3, 4) == []
    assert rows((), 2, 3) == [(4, "a", -1), (5, "a", -2)]


def test_what_cannot_be_known_is_refused(spark: SparkSession, definition: Definition, table: Table) -> None:
    with pytest.raises(DefinitionError, match=r"--since 99: the newest version of table .* is 6"):
        check(spark, definition, since=99)
    off = replace(table, properties={**table.properties, CHANGE_FEED_PROPERTY: "false"})
    with pytest.raises(
        TableError, match=r"--since 1: the change data feed of table .* is off.*leave --since out"
    ):
        changed_rows(off, KEY, 1, 6)
    sql(spark, table, f"ALTER TABLE @ SET TBLPROPERTIES ({CHANGE_FEED_PROPERTY} = false)")
    sql(spark, table, "INSERT INTO @ VALUES (6, 'a', 1)")
    sql(spark, table, f"ALTER TABLE @ SET TBLPROPERTIES ({CHANGE_FEED_PROPERTY} = true)")
    with pytest.raises(GapError, match=r"--since 6: .*feed was off for part of them\. Leave --since out"):
        changed_rows(table, KEY, 6, 9)


def test_only_what_each_row_answers_is_asked_of_changed_rows(tmp_path: Path) -> None:
    asked = [
        ("expect_column_values_to_be_between", {"column": "n", "min_value": 0}, True),
        ("expect_column_values_to_be_between", {"column": "n", "min_value": 0, "mostly": 0.9}, False),
        ("expect_column_values_to_not_be_null", {"column": "n"}, True),
        ("expect_column_values_to_be_unique", {"column": "n"}, False),
        ("expect_compound_columns_to_be_unique", {"column_list": ["id", "n"]}, False),
        ("expect_select_column_values_to_be_unique_within_record", {"column_list": ["id", "n"]}, True),
        ("expect_column_pair_values_to_be_equal", {"column_A": "id", "column_B": "n"}, True),
        ("expect_column_mean_to_be_between", {"column": "n", "min_value": 0}, False),
        ("expect_table_row_count_to_be_between", {"min_value": 1}, False),
        ("expect_key_to_be_unique", {"column_list": ["id"]}, False),
        ("expect_table_to_be_fresh", {"column": "at", "max_age_seconds": 5}, False),
    ]
    suite = {"name": "s", "expectations": [{"type": type, "kwargs": kwargs} for type, kwargs, _ in asked]}
    (tmp_path / "s.json").write_text(json.dumps(suite))
    own, whole = split_by_scope(load(tmp_path / "s.json"))
    assert own == [i for i, (_, _, by_row) in enumerate(asked) if by_row]
    assert sorted(own + whole) == list(range(len(asked)))
