"""Names of columns: known, unknown and ambiguous.

Names of tables and views are used once and known.
"""

from __future__ import annotations

import pytest

from tests.sql.scripts import SOURCES, load, plan, refusal, script_refusal, sink


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


S = sink("a STRING, b BIGINT", "a")


def test_each_statement_sees_those_before_it() -> None:
    script = load(
        f"{SOURCES}CREATE VIEW v AS SELECT * FROM users; CREATE TABLE t (a INT) WITH ('connector' = 'print');"
    )
    assert [table.name for table in script.tables] == ["views", "users", "orders", "t"]
    assert script.views == ("v",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{S}{S}", "2:14: `s`: a table with the name `s` already exists; rename or remove one"),
        (
            f"{S}CREATE TABLE IF NOT EXISTS S (a INT) WITH ('connector' = 'print')",
            "2:28: `S`: a table with the name `s` already exists, and IF NOT EXISTS would ignore this one; rename or "
            "remove one",
        ),
        (
            f"{SOURCES}CREATE VIEW v AS SELECT 1 AS a; CREATE VIEW `v` AS SELECT 2 AS b",
            "4:45: `v`: a view with the name `v` already exists; rename or remove one",
        ),
        (f"{SOURCES}INSERT INTO user SELECT 1", "4:13: there is no table `user`; did you mean `users`?"),
        ("INSERT INTO t SELECT 1", "1:13: there is no table `t`; the script creates none"),
        (
            f"{S}INSERT INTO s\nSELECT a, b\nFROM zzz",
            "4:6: there is no table or view `zzz`; known names are `s`",
        ),
        (
            "CREATE VIEW v AS SELECT 1 AS a; INSERT INTO v SELECT 1",
            "1:45: `v` is a view; an INSERT writes to a table",
        ),
        (
            f"{SOURCES}CREATE VIEW w AS SELECT * FROM v; CREATE VIEW v AS SELECT 1 AS a",
            "4:32: there is no table or view `v`; known names are `views`, `users`, `orders`",
        ),
    ],
)
def test_refused_catalogue(text: str, message: str) -> None:
    assert script_refusal(text) == f"t.sql:{message}"
