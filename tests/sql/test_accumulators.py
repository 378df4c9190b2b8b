"""Which aggregates are merged with the added rows alone."""

from __future__ import annotations

import pytest

from tests.sql.scripts import plan

COLUMNS = "a STRING, b BIGINT, c BIGINT, d INT, e DECIMAL(38, 2)"
QUERY = "SELECT region, COUNT(*), COUNT(user_id), MAX(page), SUM(price) FROM views GROUP BY region"


def test_counts_sums_and_bounds_of_added_rows() -> None:
    found = plan(QUERY, COLUMNS)
    assert {name: how.name for name, how in found.accumulators.items()} == {
        "a": "GROUP",
        "b": "SUM",
        "c": "SUM",
        "d": "MAX",
        "e": "SUM",
    }


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 'all', COUNT(*) FROM views",
        "SELECT region, COUNT(*) FILTER (WHERE page > 1) FROM views WHERE ok GROUP BY region",
        "SELECT UPPER(region), COUNT(*) FROM views GROUP BY UPPER(region)",
        "SELECT r, COUNT(*) FROM (SELECT region AS r FROM views UNION ALL SELECT region FROM views) AS u GROUP BY r",
    ],
)
def test_further_queries(query: str) -> None:
    assert set(plan(query).accumulators) == {"a", "b"}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT region, SUM(DISTINCT user_id) FROM views GROUP BY region",
        "SELECT region, COUNT(*) FROM views GROUP BY region HAVING COUNT(*) > 1",
        "SELECT region, COUNT(*) + 1 FROM views GROUP BY region",
        "SELECT region, AVG(DISTINCT user_id) FROM views GROUP BY region",
        "SELECT city, COUNT(*) FROM users GROUP BY city",
        "SELECT DISTINCT region, COUNT(*) FROM views GROUP BY region",
        "SELECT r, COUNT(*) FROM (SELECT region AS r, user_id FROM views GROUP BY region, user_id) AS u GROUP BY r",
    ],
)
def test_queries_that_need_rows_again(query: str) -> None:
    assert plan(query).accumulators == {}


@pytest.mark.parametrize(("digits", "merged"), [(28, {"a", "b"}), (29, set())])
def test_sums_that_may_overflow_are_computed_from_all_rows(digits: int, merged: set[str]) -> None:
    """Their NULL does not say that it was a number too long, to which more rows add nothing."""
    query = f"SELECT region, SUM(CAST(price AS DECIMAL({digits}, 0))) FROM views GROUP BY region"
    assert set(plan(query, "a STRING, b DECIMAL(38, 0)").accumulators) == merged
    average = query.replace("SUM", "AVG")
    assert set(plan(average, "a STRING, b DECIMAL(38, 6)").accumulators) == merged


@pytest.mark.parametrize(
    ("query", "values"),
    [
        (
            "SELECT region, COUNT(DISTINCT user_id) FROM views WHERE ok GROUP BY region",
            "SELECT `views`.`region` AS `a`, `views`.`user_id` AS `__value0` FROM `views` AS `views` "
            "WHERE `views`.`ok` AND NOT `views`.`user_id` IS NULL",
        ),
        (
            "SELECT 'all', COUNT(DISTINCT region, page) FILTER (WHERE page > 1 OR ok) FROM views",
            "SELECT CAST('all' AS STRING) AS `a`, `views`.`region` AS `__value0`, `views`.`page` AS `__value1` FROM "
            "`views` AS `views` WHERE NOT `views`.`region` IS NULL AND NOT `views`.`page` IS NULL AND "
            "(`views`.`page` > 1 OR `views`.`ok`)",
        ),
    ],
)
def test_values_that_are_counted_once(query: str, values: str) -> None:
    found = plan(query)
    assert found.accumulators["b"].name == "SUM" and found.counted_values == {"b": values}


def test_which_columns_count_values_once() -> None:
    query = "SELECT region, COUNT(*), COUNT(DISTINCT page), MAX(DISTINCT page) FROM views GROUP BY region"
    found = plan(query, "a STRING, b BIGINT, c BIGINT, d INT")
    assert set(found.accumulators) == set("abcd") and set(found.counted_values) == {"c"}
    assert plan("SELECT city, COUNT(DISTINCT id) FROM users GROUP BY city").counted_values == {}


def test_sums_that_depend_on_the_order_are_computed_again() -> None:
    query = "SELECT region, SUM(CAST(page AS DOUBLE)) FROM views GROUP BY region"
    assert plan(query, "a STRING, b DOUBLE").accumulators == {}


def test_a_column_of_another_type_is_computed_again() -> None:
    assert plan("SELECT region, MAX(page) FROM views GROUP BY region").accumulators == {}
