"""SELECT: projection, WHERE, DISTINCT and aggregates, as Spark SQL."""

from __future__ import annotations

import pytest

from bridge.sql.plan import QueryKind, SourceTable, StateTable
from tests.sql.scripts import plan, refusal


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
def test_refused(query: str, message: str) -> None:
    assert refusal(query) == f"t.sql:{message}"
