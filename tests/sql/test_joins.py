"""Joins: their keys, and which are refused."""

from __future__ import annotations

import pytest

from bridge.sql.plan import QueryKind
from tests.sql.scripts import plan, refusal

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
        "select the columns of the key of each source, or those of GROUP BY"
    )


PRODUCT = "its result grows with the product of both tables; write JOIN ... ON a = b"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT u.id, u.name, 1 FROM users u, orders o WHERE u.id = o.id", "38: a join without ON (a comma between "
         f"tables, or CROSS JOIN) is not supported in this version: {PRODUCT}"),
        ("SELECT u.id, u.name, 1 FROM users u JOIN orders o", "42: a join without an equality is not supported in this "
         "version: write ON with left.a = right.b"),
        ("SELECT u.id, u.name, 1 FROM users u JOIN orders o ON u.id > o.id", "42: a join without an equality is not "
         "supported in this version: write ON with left.a = right.b"),
        ("SELECT u.id, u.name, 1 FROM users u JOIN orders o ON u.id = 1", "42: a join without an equality is not "
         "supported in this version: write ON with left.a = right.b"),
        ("SELECT u.id, u.name, 1 FROM users u LEFT SEMI JOIN orders o ON u.id = o.id", "52: LEFT SEMI JOIN is not "
         "supported in this version: the supported joins are [INNER], LEFT, RIGHT and FULL JOIN"),
        ("SELECT u.id, u.name, 1 FROM users u JOIN views ON views.user_id = u.id", "42: the right side of this "
         "join has "
         "no key, so its state would grow without bound; read it from an 'upsert-kafka' table or another table with a "
         "PRIMARY KEY, or group it or keep the last row of each key (ROW_NUMBER) first"),
        ("SELECT u.id, u.name, 1 FROM views LEFT JOIN users u ON views.user_id = u.id", "45: the left side of "
         "this join "
         "has no key, so its state would grow without bound; read it from an 'upsert-kafka' table or another "
         "table with "
         "a PRIMARY KEY, or group it or keep the last row of each key (ROW_NUMBER) first"),
        ("SELECT u.id, u.name, 1 FROM users u JOIN orders o ON u.name = o.id", "54: STRING and BIGINT cannot be "
         "compared; CAST one of them"),
        ("SELECT u.id, u.name, 1 FROM users u JOIN orders o USING (idd)", "58: `o` has no column `idd`; did you mean "
         "`id`?"),
    ],
)  # fmt: skip
def test_refused(query: str, message: str) -> None:
    assert refusal(query, COLUMNS) == f"t.sql:6:{message}"
