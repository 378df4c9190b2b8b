"""Names of columns: known, unknown and ambiguous."""

from __future__ import annotations

import pytest

from tests.sql.scripts import plan, refusal


@pytest.mark.parametrize(
    ("column", "spark"),
    [
        ("region", "`views`.`region`"),
        ("views.region", "`views`.`region`"),
        ("place.b.c", "`views`.`place`.`b`.`c`"),
        ("views.place.b.c", "`views`.`place`.`b`.`c`"),
    ],
)
def test_columns_and_fields(column: str, spark: str) -> None:
    found = plan(f"SELECT {column} FROM views", "a STRING", "")
    assert found.spark_sql == f"SELECT {spark} AS `a` FROM `views` AS `views`"


def test_only_columns_that_are_used_are_read() -> None:
    query = "SELECT u.city, COUNT(*) FROM users u JOIN orders o ON u.id = o.user_id WHERE o.amount > 1 GROUP BY u.city"
    users, orders = plan(query).sources
    assert (users.name, users.columns) == ("users", ("id", "city"))
    assert (orders.name, orders.columns) == ("orders", ("id", "user_id", "amount"))


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT rgion, 1 FROM views", "8: there is no column `rgion`; did you mean `region`?"),
        ("SELECT Region, 1 FROM views", "8: there is no column `Region`; did you mean `region`?"),
        ("SELECT v.regio, 1 FROM views AS v", "10: `v` has no column `regio`; did you mean `region`?"),
        (
            "SELECT x.region, 1 FROM users AS u",
            "8: there is no table or column `x`; known names are `u`, `id`, `name`, `city`",
        ),
        (
            "SELECT u.name, id FROM users AS u JOIN orders AS o ON u.id = o.id",
            "16: column `id` is ambiguous: it is in `u` and `o`; write alias.column",
        ),
        ("SELECT place.x, 1 FROM views", "14: there is no field `x`; known names are `a`, `b`"),
        ("SELECT region.x, 1 FROM views", "15: there is no field `x`; its type is STRING"),
    ],
)
def test_refused(query: str, message: str) -> None:
    assert refusal(query) == f"t.sql:6:{message}"


def test_an_alias_is_used_once() -> None:
    assert refusal("SELECT a.name, a.id FROM users AS a JOIN orders AS a ON a.id = a.id") == (
        "t.sql:6:42: `a` is in FROM twice; give each table an alias of its own"
    )


def test_columns_that_differ_only_in_case() -> None:
    assert refusal("SELECT x, n FROM (SELECT city AS x, name AS X, id AS n FROM users) AS u") == (
        "t.sql:6:8: `x` and `X` of `u` differ only in case, and Spark does not distinguish case; rename one"
    )
