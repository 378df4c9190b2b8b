"""Rows that are only added and replace each other by the sink's key: the last one by the position of its record."""

from __future__ import annotations

import pytest

from tests.sql.scripts import SOURCES, load, plan, refusal, sink

POSITION = ", ".join(
    f"`{{0}}`.`__{name}` AS `__{name}`" for name in ("topic", "partition", "offset", "timestamp")
)
REFUSED = (
    "t.sql:6:1: rows that replace each other by the PRIMARY KEY of `s`, from anything but one topic is not supported "
    "in this version: which of two rows of one key is the last one is not known. Select from one topic, or keep one "
    "row of each key with ROW_NUMBER() OVER (PARTITION BY key ORDER BY ...) = 1"
)


def test_the_position_is_selected_from_the_topic() -> None:
    found = plan("SELECT region, user_id FROM views WHERE ok")
    assert found.keeps_last and not found.is_updating
    assert found.spark_sql == (
        f"SELECT `views`.`region` AS `a`, `views`.`user_id` AS `b`, {POSITION.format('views')} FROM `views` AS `views` "
        "WHERE `views`.`ok`"
    )


def test_and_through_views_and_subqueries() -> None:
    text = (
        f"{SOURCES}{sink('a STRING, b BIGINT', 'a')}CREATE VIEW v AS SELECT region, user_id FROM views;\n"
        "INSERT INTO s SELECT region, user_id FROM (SELECT * FROM v WHERE user_id > 3) AS w;\n"
    )
    found = load(text).inserts[0].spark_sql
    assert [found.count(f"`{alias}`.`__offset` AS `__offset`") for alias in ("w", "v", "views")] == [1, 1, 1]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT region, user_id FROM views UNION ALL SELECT region, user_id FROM views",
        "SELECT * FROM (SELECT region, user_id FROM views UNION ALL SELECT region, user_id FROM views) AS u",
    ],
)
def test_rows_of_several_queries_are_refused(query: str) -> None:
    assert refusal(query) == REFUSED


def test_a_delta_table_has_no_positions() -> None:
    text = (
        "CREATE TABLE d (a STRING, b BIGINT) WITH ('connector' = 'delta', 'path' = 'd');\n"
        f"{sink('a STRING, b BIGINT', 'a')}"
    )
    with pytest.raises(Exception, match="from anything but one topic"):
        load(f"{text}INSERT INTO s SELECT a, b FROM d;\n")


@pytest.mark.parametrize(
    ("query", "columns", "key"),
    [
        ("SELECT region, user_id FROM views", "a STRING, b BIGINT", ""),
        ("SELECT region, COUNT(*) FROM views GROUP BY region", "a STRING, b BIGINT", "a"),
        ("SELECT city, id FROM users", "a STRING, b BIGINT", "b"),
        ("VALUES ('x', 1)", "a STRING, b BIGINT", "a"),
    ],
)
def test_other_rows_need_no_position(query: str, columns: str, key: str) -> None:
    found = plan(query, columns, key)
    assert not found.keeps_last and "__offset" not in found.spark_sql
