"""Which aggregates need no expression, and what they are made of."""

from __future__ import annotations

import pytest

from bridge.sql.plain_aggregates import PlainAggregate, PlainColumn, PlainFunction
from tests.sql.scripts import SOURCES, load, plan, sink


def test_functions_of_columns_by_the_key() -> None:
    query = (
        "SELECT v.region, COUNT(*), COUNT(ok), COUNT(DISTINCT user_id), SUM(page), SUM(price), MIN(ts), MAX(`region`), "
        "v.ok FROM views AS v GROUP BY ok, region"
    )
    columns = (
        "a STRING, b BIGINT, c BIGINT, d BIGINT, e INT, f DECIMAL(38, 2), g TIMESTAMP(3), h STRING, i BOOLEAN"
    )
    assert plan(query, columns, key="a, i").plain == PlainAggregate(
        "views",
        (
            PlainColumn("a", PlainFunction.GROUP, "region"),
            PlainColumn("b", PlainFunction.COUNT_ROWS, ""),
            PlainColumn("c", PlainFunction.COUNT, "ok"),
            PlainColumn("d", PlainFunction.COUNT_DISTINCT, "user_id"),
            PlainColumn("e", PlainFunction.SUM, "page"),
            PlainColumn("f", PlainFunction.SUM, "price"),
            PlainColumn("g", PlainFunction.MIN, "ts"),
            PlainColumn("h", PlainFunction.MAX, "region"),
            PlainColumn("i", PlainFunction.GROUP, "ok"),
        ),
    )


def test_columns_of_some_functions() -> None:
    found = plan("SELECT region, COUNT(*) FROM views GROUP BY region").plain
    assert found is not None
    assert [c.name for c in found.of(PlainFunction.GROUP)] == ["a"] and found.of(PlainFunction.SUM) == ()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT region, COUNT(*) FROM views WHERE ok GROUP BY region",
        "SELECT region, COUNT(*) FROM views GROUP BY region HAVING COUNT(*) > 1",
        "SELECT region, COUNT(*) FILTER (WHERE ok) FROM views GROUP BY region",
        "SELECT UPPER(region), COUNT(*) FROM views GROUP BY UPPER(region)",
        "SELECT region, COUNT(page + 1) FROM views GROUP BY region",
        "SELECT region, COUNT(DISTINCT page, ok) FROM views GROUP BY region",
        "SELECT region, MAX(CAST(page AS BIGINT)) FROM views GROUP BY region",
        "SELECT region, COUNT(DISTINCT place.a) FROM views GROUP BY region",
        "SELECT region, COUNT(*) + 1 FROM views GROUP BY region",
        "SELECT region, MAX(DISTINCT user_id) FROM views GROUP BY region",
        "SELECT region, AVG(user_id) FROM views GROUP BY region",
        "SELECT region, MAX(page) FROM views GROUP BY region",
        "SELECT 'all', COUNT(*) FROM views",
        "SELECT DISTINCT region, COUNT(*) FROM views GROUP BY region",
        "SELECT city, COUNT(*) FROM users GROUP BY city",
        "SELECT r, COUNT(*) FROM (SELECT region AS r FROM views) AS u GROUP BY r",
        "SELECT region, user_id FROM views",
    ],
)
def test_queries_that_do_more(query: str) -> None:
    assert plan(query).plain is None


def test_a_join_has_two_sources() -> None:
    query = "SELECT u.city, COUNT(*) FROM users AS u JOIN orders AS o ON u.id = o.user_id GROUP BY u.city"
    assert plan(query).plain is None


def test_a_group_that_is_selected_twice_or_not_at_all() -> None:
    columns = "a STRING, h STRING, b BIGINT"
    assert plan("SELECT region, region, COUNT(*) FROM views GROUP BY region", columns).plain is None
    query = "SELECT region, 'x', COUNT(*) FROM views GROUP BY region"
    assert plan(query, columns, key="a, h").plain is None


def test_a_view_is_not_a_source() -> None:
    text = (
        f"{SOURCES}{sink('a STRING, b BIGINT', 'a')}CREATE VIEW v AS SELECT region FROM views;\n"
        "INSERT INTO s SELECT region, COUNT(*) FROM v GROUP BY region;\n"
    )
    assert load(text).inserts[0].plain is None


def test_a_column_that_is_null_or_shared_with_others() -> None:
    """A list of columns leaves one out, which is NULL; of two INSERTs each writes its own."""
    table = sink("a STRING, b BIGINT, c BIGINT", "a")
    counted = "INSERT INTO s (a, b) SELECT region, COUNT(*) FROM views GROUP BY region;\n"
    other = "INSERT INTO s (a, c) SELECT region, MAX(user_id) FROM views GROUP BY region;\n"
    assert [p.plain for p in load(f"{SOURCES}{table}{counted}").inserts] == [None]
    assert [p.plain for p in load(f"{SOURCES}{table}{counted}{other}").inserts] == [None, None]
    same = "INSERT INTO s (b, c, a) SELECT COUNT(*), MAX(user_id), region FROM views GROUP BY region;\n"
    (found,) = load(f"{SOURCES}{table}{same}").inserts
    assert found.plain is not None and [c.name for c in found.plain.columns] == ["a", "b", "c"]
