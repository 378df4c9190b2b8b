"""WITH, UNION, VALUES and parentheses.

SELECT: projection, WHERE, DISTINCT and aggregates, as Spark SQL.
"""

from __future__ import annotations

import pytest

from bridge.sql.plan import QueryKind, SourceTable, StateTable
from tests.sql.scripts import plan, refusal

FIRST = "SELECT region, user_id FROM views"


def test_union_all_of_append_only_queries() -> None:
    found = plan(f"{FIRST} UNION ALL SELECT 'x', page FROM views", key="")
    assert (found.kind, found.key, found.is_updating, found.states) == (QueryKind.UNION, (), False, ())
    assert found.spark_sql == (
        "SELECT `views`.`region` AS `a`, `views`.`user_id` AS `b` FROM `views` AS `views` UNION ALL "
        "SELECT 'x' AS `EXPR$0`, `views`.`page` AS `page` FROM `views` AS `views`"
    )


def test_union_is_distinct() -> None:
    found = plan(f"{FIRST} UNION SELECT city, id FROM users", key="a, b")
    assert (found.kind, found.key, found.is_updating) == (QueryKind.DISTINCT, ("a", "b"), True)


def test_a_union_is_cast_as_a_whole() -> None:
    found = plan("SELECT page FROM views UNION ALL SELECT 1 FROM views", "a BIGINT", "")
    assert found.spark_sql == (
        "SELECT CAST(`query`.`a` AS BIGINT) AS `a` FROM (SELECT `views`.`page` AS `a` FROM `views` AS `views` "
        "UNION ALL "
        "SELECT 1 AS `EXPR$0` FROM `views` AS `views`) AS `query`"
    )


def test_group_of_a_union() -> None:
    query = "SELECT k, COUNT(*) FROM (SELECT city AS k FROM users UNION ALL SELECT region FROM views) AS x GROUP BY k"
    found = plan(query)
    assert (found.kind, found.operations, found.key) == (QueryKind.AGGREGATE, ("union", "aggregate"), ("a",))


def test_with() -> None:
    query = (
        "WITH w AS (SELECT region AS k, page FROM views), x AS (SELECT k FROM w) SELECT k, COUNT(*) FROM x "
        "GROUP BY k"
    )
    found = plan(query)
    assert found.spark_sql == (
        "SELECT `x`.`k` AS `a`, COUNT(*) AS `b` FROM (SELECT `w`.`k` AS `k` FROM (SELECT `views`.`region` AS `k`, "
        "`views`.`page` AS `page` FROM `views` AS `views`) AS `w`) AS `x` GROUP BY `x`.`k`"
    )


def test_values() -> None:
    found = plan("VALUES ('x', 1), ('${env:CITY}', NULL)")
    assert (found.kind, found.key, found.is_updating, found.sources) == (QueryKind.VALUES, ("a",), False, ())
    assert found.spark_sql == (
        "SELECT `EXPR$0` AS `a`, CAST(`EXPR$1` AS BIGINT) AS `b` FROM VALUES ('x', 1), ('Ulm', NULL) AS "
        "`rows`(`EXPR$0`, `EXPR$1`)"
    )


def test_parentheses() -> None:
    assert plan(f"({FIRST})").spark_sql == plan(FIRST).spark_sql


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (f"{FIRST} UNION ALL SELECT city FROM users", "6:45: the queries of UNION have 2 and 1 columns"),
        (f"{FIRST} UNION ALL SELECT city, name FROM users", "6:45: column 2 of the queries of UNION is BIGINT "
         "and STRING, "
         "which have no common type; CAST one of them"),
        ("VALUES ('x', 1), ('y')", "6:19: this row has 1 values, and the first row has 2"),
        ("VALUES ('x', 1), (2, 2)", "6:9: column 1 of VALUES has values without a common type; CAST them"),
        ("VALUES ('x', y)", "6:14: there is no column `y`; no names are known"),
        ("WITH w AS (SELECT 1 AS a), w AS (SELECT 2 AS b) SELECT * FROM w", "6:28: WITH defines `w` twice"),
        ("SELECT region, user_id BETWEEN 1 FROM views", "6:34: this query cannot be parsed at 'FROM'; quote names that "
         "are keywords with `...`"),
    ],
)  # fmt: skip
def test_refused(query: str, message: str) -> None:
    assert refusal(query) == f"t.sql:{message}"


def test_projection_of_an_append_only_topic() -> None:
    found = plan("SELECT region, user_id FROM views WHERE page > 3", key="")
    assert found.kind is QueryKind.PROJECTION
    assert (found.key, found.is_updating, found.states) == ((), False, ())
    assert found.spark_sql == (
        "SELECT `views`.`region` AS `a`, `views`.`user_id` AS `b` FROM `views` AS `views` WHERE `views`.`page` > 3"
    )


def test_projection_of_an_upsert_topic_is_kept_by_its_key() -> None:
    found = plan("SELECT id, city FROM users WHERE city <> 'x'", "a BIGINT, b STRING", "a")
    assert (found.kind, found.key, found.is_updating) == (QueryKind.PROJECTION, ("a",), True)
    assert found.states == ()
    assert found.sources == (SourceTable("users", "upsert-kafka", "users", ("id",), ("id", "city"), True),)


def test_aggregate() -> None:
    found = plan(
        "SELECT region, COUNT(*), COUNT(DISTINCT user_id) FROM views WHERE ok GROUP BY region HAVING COUNT(*) > 1",
        "region STRING, pv BIGINT, uv BIGINT",
        "region",
    )
    assert (found.kind, found.operations, found.key, found.is_updating) == (
        QueryKind.AGGREGATE,
        ("aggregate",),
        ("region",),
        True,
    )
    assert found.states == (StateTable("views", (), ("user_id", "region", "ok")),)
    assert found.spark_sql == (
        "SELECT `views`.`region` AS `region`, COUNT(*) AS `pv`, COUNT(DISTINCT `views`.`user_id`) AS `uv` "
        "FROM `views` AS `views` WHERE `views`.`ok` GROUP BY `views`.`region` HAVING COUNT(*) > 1"
    )


def test_aggregate_of_all_rows_is_one_row() -> None:
    """Its key is empty; a constant column may be the sink's key."""
    found = plan("SELECT 'all', COUNT(*) FROM views")
    assert (found.kind, found.key, found.is_updating) == (QueryKind.AGGREGATE, ("a",), True)


def test_constant_of_a_subquery() -> None:
    assert plan("SELECT k, n FROM (SELECT 'all' AS k, COUNT(*) AS n FROM views)").key == ("a",)


def test_distinct() -> None:
    found = plan("SELECT DISTINCT region, user_id FROM views", key="a, b")
    assert (found.kind, found.key, found.is_updating) == (QueryKind.DISTINCT, ("a", "b"), True)


def test_star_is_expanded() -> None:
    found = plan("SELECT * FROM users", "x BIGINT, y STRING, z STRING", "x")
    assert found.spark_sql == (
        "SELECT `users`.`id` AS `x`, `users`.`name` AS `y`, `users`.`city` AS `z` FROM `users` AS `users`"
    )


def test_star_of_one_table() -> None:
    query = "SELECT u.*, o.amount FROM users u JOIN orders o ON u.id = o.id"
    found = plan(query, "a BIGINT, b STRING, c STRING, d DECIMAL(10, 2)", "a")
    assert [column.name for column in found.columns] == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT region, user_id FROM views ORDER BY region", "6:44: ORDER BY is not supported in this version: "
         "a table "
         "has no order; remove it, or use ROW_NUMBER() OVER (...) <= n"),
        ("SELECT region, page FROM views GROUP BY region", "6:16: Expression 'page' is not being grouped; add it to "
         "GROUP BY, or use it in an aggregate function"),
        ("SELECT region, COUNT(*) FROM views HAVING page > 1", "6:8: Expression 'region' is not being grouped; add it "
         "to GROUP BY, or use it in an aggregate function"),
        ("SELECT region, user_id FROM views WHERE COUNT(*) > 1", "6:41: COUNT is an aggregate function, which is not "
         "legal here; call it in the SELECT or HAVING of a query"),
        ("SELECT region, user_id FROM views WHERE user_id", "6:41: a condition is BOOLEAN, and this is BIGINT"),
        ("SELECT x.*, 1 FROM views AS v", "6:10: there is no table `x` in FROM; known names are `v`"),
    ],
)  # fmt: skip
def test_refused_select(query: str, message: str) -> None:
    assert refusal(query) == f"t.sql:{message}"
