"""Joins: their keys, and which are refused."""

from __future__ import annotations

import pytest

from bridge.sql.plan import QueryKind
from tests.sql.scripts import plan, refusal
from tests.sql.test_row_key import WAY_OUT

COLUMNS = "a BIGINT, b STRING, c DECIMAL(10, 2)"
FROM = "FROM users AS u {} orders AS o ON {}"


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("SELECT o.id, u.name, o.amount FROM orders o LEFT JOIN users u ON o.user_id = u.id", "a"),
        ("SELECT o.id, u.name, o.amount FROM users u RIGHT JOIN orders o ON o.user_id = u.id", "a"),
        ("SELECT o.id, u.name, o.amount FROM orders o JOIN users u ON u.id = o.user_id", "a"),
        ("SELECT u.id, u.name, o.amount FROM orders o JOIN users u ON o.id = u.id", "a"),
        ("SELECT u.id, u.name, o.amount FROM orders o JOIN users u ON o.id = u.id AND o.amount > 1", "a"),
        ("SELECT u.id, u.name, o.amount FROM orders o JOIN users u ON (o.id) IS NOT DISTINCT FROM u.id", "a"),
        ("SELECT COALESCE(u.id, o.id), u.name, o.amount FROM orders o FULL JOIN users u ON o.id = u.id", "a"),
        ("SELECT COALESCE(o.id, u.id), u.name, o.amount FROM orders o FULL OUTER JOIN users u ON o.id = u.id", "a"),
        ("SELECT id, u.name, o.amount FROM orders o FULL JOIN users u USING (id)", "a"),
        ("SELECT id, u.name, o.amount FROM orders o LEFT JOIN users u USING (id)", "a"),
        ("SELECT id, u.name, o.amount FROM orders o RIGHT JOIN users u USING (id)", "a"),
        ("SELECT COALESCE(x.id, y.id, o.id), x.name, o.amount FROM users x FULL JOIN users y ON x.id = y.id "
         "FULL JOIN orders o ON COALESCE(x.id, y.id) = o.id", "a"),
        ("SELECT id, x.name, o.amount FROM users x FULL JOIN users y USING (id) FULL JOIN orders o USING (id)", "a"),
        ("SELECT x.id, x.name, o.amount FROM users x JOIN (SELECT id FROM users) y ON x.id = y.id "
         "LEFT JOIN orders o ON o.id = y.id", "a"),
        ("SELECT u.id, u.name, o.amount FROM users u, orders o WHERE o.id = u.id AND o.amount > 1", "a"),
        ("SELECT u.id, u.name, o.amount FROM orders o CROSS JOIN users u WHERE o.id = u.id", "a"),
        ("SELECT x.id, x.name, o.amount FROM users x, (SELECT id FROM users) y, orders o WHERE o.id = y.id "
         "AND x.id = y.id", "a"),
    ],
)  # fmt: skip
def test_keys(query: str, key: str) -> None:
    found = plan(query, COLUMNS, key)
    assert (found.kind, found.key, found.is_updating) == (QueryKind.JOIN, (key,), True)
    assert {state.source for state in found.states} == {"users", "orders"}


def test_key_of_a_join_of_many_to_one_row_each() -> None:
    query = "SELECT u.id, u.name, o.amount, o.id FROM users u FULL JOIN orders o ON o.user_id = u.id"
    assert plan(query, f"{COLUMNS}, d BIGINT", "a, d").key == ("a", "d")


def test_a_condition_beside_the_equality_leaves_no_merged_key_in_a_full_join() -> None:
    """An order and a user with the same id that do not meet are two rows."""
    query = (
        "SELECT COALESCE(u.id, o.id), u.name, o.amount FROM orders o FULL JOIN users u ON o.id = u.id AND "
        "o.amount > 1"
    )
    assert refusal(query, COLUMNS) == (
        "t.sql:5:13: the rows of this query are updated, but it selects no key by which a row replaces its former one; "
        f"{WAY_OUT}"
    )


PRODUCT = (
    "its result grows with the product of both tables; write JOIN ... ON a = b, or an equality with a table before it "
    "in WHERE"
)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT u.id, u.name, 1 FROM users u, orders o WHERE u.id < o.id", "38: a join without ON (a comma between "
         f"tables, or CROSS JOIN) is not supported in this version: {PRODUCT}"),
        ("SELECT u.id, u.name, 1 FROM users u, orders o WHERE u.id = 1", "38: a join without ON (a comma between "
         f"tables, or CROSS JOIN) is not supported in this version: {PRODUCT}"),
        ("SELECT u.id, u.name, 1 FROM users u CROSS JOIN orders o", "48: a join without ON (a comma between "
         f"tables, or CROSS JOIN) is not supported in this version: {PRODUCT}"),
        ("SELECT o.id, x.name, 1 FROM users x, users y, orders o WHERE x.id = o.id AND y.id = o.id", "38: a join "
         "without ON (a comma between "
         f"tables, or CROSS JOIN) is not supported in this version: {PRODUCT}"),
        ("SELECT o.id, u.name, 1 FROM users u, orders o RIGHT JOIN users y ON y.id = o.id WHERE u.id = o.id", "58: "
         "RIGHT JOIN after a comma or CROSS JOIN is not supported in this version: write JOIN ... ON before it"),
        ("SELECT o.id, name, 1 FROM users u, orders o, users y WHERE u.id = o.id AND y.id = o.id AND name = 'a'",
         "14: column `name` is ambiguous: it is in `u` and `y`; write alias.column"),
        ("SELECT u.id, u.name, 1 FROM users u JOIN orders o ON u.id > o.id", "42: a join without an equality is not "
         "supported in this version: write ON with left.a = right.b"),
        ("SELECT u.id, u.name, 1 FROM users u JOIN orders o ON u.id = 1", "42: a join without an equality is not "
         "supported in this version: write ON with left.a = right.b"),
        ("SELECT u.id, u.name, 1 FROM users u LEFT SEMI JOIN orders o ON u.id = o.id", "52: LEFT SEMI JOIN is not "
         "supported in this version: the supported joins are [INNER], LEFT, RIGHT and FULL JOIN"),
        ("SELECT u.id, u.name, 1 FROM users u JOIN orders o ON u.name = o.id", "54: STRING and BIGINT cannot be "
         "compared; CAST one of them"),
        ("SELECT u.id, u.name, 1 FROM users u JOIN orders o USING (idd)", "58: `o` has no column `idd`; did you mean "
         "`id`?"),
    ],
)  # fmt: skip
def test_refused(query: str, message: str) -> None:
    assert refusal(query, COLUMNS) == f"t.sql:6:{message}"


VIEWS = "FROM views AS v JOIN users AS u ON v.user_id = u.id"


def test_groups_of_a_join_with_a_table_without_a_key() -> None:
    found = plan(f"SELECT u.city, COUNT(*) {VIEWS} GROUP BY u.city")
    assert (found.key, found.is_updating, found.joined) == (("a",), True, None)
    assert {state.source: state.key for state in found.states} == {"views": (), "users": ("id",)}
    assert [(part.name, part.sources) for part in found.parts] == [("a", (("users", "city"),))]
    assert "FROM `views` AS `v`" in found.parts_sql, "which cities have new views is asked of the join"


def test_rows_of_a_join_of_tables_whose_rows_are_only_added_are_only_added() -> None:
    query = "SELECT v.region, w.user_id FROM views AS v, views AS w WHERE v.user_id = w.user_id"
    found = plan(query, key="")
    assert (found.key, found.is_updating, found.kind) == ((), False, QueryKind.JOIN)
    assert [state.source for state in found.states] == ["views"]
    assert found.joined is not None
    assert [(scan.name, scan.source) for scan in found.joined.scans] == [
        ("__scan0_views", "views"),
        ("__scan1_views", "views"),
    ]
    assert "FROM `__scan0_views` AS `v` JOIN `__scan1_views` AS `w`" in found.joined.spark_sql


def test_rows_of_such_a_join_have_no_last_one() -> None:
    query = "SELECT v.region, w.user_id FROM views AS v, views AS w WHERE v.user_id = w.user_id"
    assert "rows that replace each other by the PRIMARY KEY of `s`, from anything but one topic" in refusal(
        query
    )


def test_groups_of_a_join_of_subqueries() -> None:
    inner = "SELECT id, city FROM users WHERE name IS NOT NULL"
    for side in (f"({inner})", "(SELECT id, city FROM (SELECT * FROM users) AS x)"):
        found = plan(
            f"SELECT u.city, COUNT(*) FROM views AS v JOIN {side} AS u ON v.user_id = u.id GROUP BY u.city"
        )
        assert [(part.name, part.sources) for part in found.parts] == [("a", (("users", "city"),))]
        assert found.parts_sql
    for side in (
        "(SELECT MAX(id) AS id, city FROM users GROUP BY city)",
        "(SELECT DISTINCT id, city FROM users)",
        "(SELECT user_id AS id, region AS city FROM views)",
        "(SELECT u.id, u.city FROM users AS u LEFT JOIN orders AS o ON o.id = u.id)",
    ):
        found = plan(
            f"SELECT u.city, COUNT(*) FROM views AS v JOIN {side} AS u ON v.user_id = u.id GROUP BY u.city"
        )
        assert not found.parts_sql, side


@pytest.mark.parametrize(
    ("condition", "made"),
    [
        ("ARRAY[v.user_id] = ARRAY[u.id]", "ARRAY(`v`.`user_id`) = ARRAY(`u`.`id`)"),
        (
            "ARRAY[v.user_id] IS NOT DISTINCT FROM ARRAY[u.id]",
            "ARRAY(`v`.`user_id`) IS NOT DISTINCT FROM ARRAY(`u`.`id`)",
        ),
    ],
)
def test_arrays_are_keys_of_a_join(condition: str, made: str) -> None:
    """Compared by their bytes, as Flink does with keys; elsewhere an array with NULL equals none."""
    query = f"SELECT v.region, COUNT(*) FROM views v JOIN users u ON {condition} GROUP BY v.region"
    assert f"ON {made}" in plan(query).spark_sql


def test_a_float_is_compared_with_a_double_as_a_float_in_joins_too() -> None:
    condition = "CAST(v.user_id AS FLOAT) = CAST(u.id AS DOUBLE)"
    query = f"SELECT v.region, COUNT(*) FROM views v JOIN users u ON {condition} GROUP BY v.region"
    assert "= CAST(CAST(`u`.`id` AS DOUBLE) AS FLOAT)" in plan(query).spark_sql


def test_rows_are_keys_of_a_join_field_by_field() -> None:
    query = (
        "SELECT v.region, COUNT(*) FROM views v JOIN users u ON ROW(v.user_id) = ROW(u.id) GROUP BY v.region"
    )
    assert "`v`.`user_id` = `u`.`id`" in plan(query).spark_sql
