"""The keys of a relation after a projection.

By which columns results are computed in parts. That these parts are right is judged by tests/pipelines/scripts.
"""

from __future__ import annotations

import pytest

from bridge.sql.relation import project_keys, scan_distribution, union_distribution
from bridge.sql.tree import column_term
from tests.sql.scripts import plan

A, B, C = (column_term(i) for i in range(3))


def test_a_key_that_is_kept() -> None:
    assert project_keys([frozenset({A, B})], {A: [1], B: [0]}) == {frozenset({A, B})}


def test_a_key_that_is_lost() -> None:
    assert project_keys([frozenset({A, B})], {A: [0]}) == frozenset()


def test_a_column_that_is_selected_twice() -> None:
    assert project_keys([frozenset({A})], {A: [0, 2]}) == {frozenset({A}), frozenset({C})}


def test_an_equal_column_stands_in() -> None:
    assert project_keys([frozenset({A})], {B: [0]}, {A: {B}}) == {frozenset({A})}


def test_the_empty_key_is_kept() -> None:
    assert project_keys([frozenset()], {}) == {frozenset()}


T, U = scan_distribution("t", "a"), scan_distribution("u", "b")


def test_two_sources_have_a_column_each() -> None:
    assert union_distribution(T, U) == frozenset({("t", "a"), ("u", "b")})
    assert union_distribution(T, T) == T


def test_one_source_cannot_be_restricted_by_two_columns() -> None:
    assert union_distribution(T, scan_distribution("t", "c")) is None
    assert union_distribution(T, None) is union_distribution(None, T) is None


def parts(query: str, columns: str = "a STRING, b BIGINT", key: str = "a") -> dict[str, dict[str, str]]:
    return {part.name: dict(part.sources) for part in plan(query, columns, key).parts}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("SELECT city, COUNT(*) FROM users GROUP BY city", {"a": {"users": "city"}}),
        (
            "SELECT city, COUNT(*) FROM users WHERE id > 3 GROUP BY city HAVING COUNT(*) > 1",
            {"a": {"users": "city"}},
        ),
        ("SELECT c, COUNT(*) FROM (SELECT city AS c FROM users) AS v GROUP BY c", {"a": {"users": "city"}}),
        ("SELECT UPPER(city), COUNT(*) FROM users GROUP BY UPPER(city)", {}),
        ("SELECT 'all', COUNT(*) FROM users", {}),
        (
            "SELECT u.name, COUNT(*) FROM users AS u JOIN orders AS o ON u.id = o.user_id GROUP BY u.name",
            {"a": {"users": "name"}},
        ),
        (
            "SELECT u.name, COUNT(*) FROM users AS u LEFT JOIN orders AS o ON u.id = o.user_id GROUP BY u.name",
            {},
        ),
        (
            "SELECT c, COUNT(*) FROM (SELECT city AS c FROM users UNION ALL SELECT name AS c FROM users) AS v "
            "GROUP BY c",
            {},
        ),
        (
            "SELECT c, COUNT(*) FROM (SELECT city AS c FROM users UNION ALL SELECT region AS c FROM views) AS v "
            "GROUP BY c",
            {"a": {"users": "city", "views": "region"}},
        ),
    ],
)
def test_aggregates(query: str, found: dict[str, dict[str, str]]) -> None:
    assert parts(query) == found


BOTH = {"users": "id", "orders": "id"}


@pytest.mark.parametrize(
    ("join", "key", "found"),
    [
        ("users AS u JOIN orders AS o ON u.id = o.id", "u.id", BOTH),
        ("users AS u JOIN orders AS o ON u.id = o.id", "o.id", BOTH),
        ("users AS u LEFT JOIN orders AS o ON u.id = o.id", "u.id", BOTH),
        ("orders AS o RIGHT JOIN users AS u ON u.id = o.id", "u.id", BOTH),
        ("users AS u FULL JOIN orders AS o ON u.id = o.id", "COALESCE(o.id, u.id)", BOTH),
        ("users AS u JOIN orders AS o ON u.id = o.id AND u.name > 'a'", "u.id", BOTH),
    ],
)
def test_joins(join: str, key: str, found: dict[str, str]) -> None:
    assert parts(f"SELECT u.city, {key} FROM {join}", key="b") == {"b": found}


def test_a_column_that_an_outer_join_fills_with_null_has_none() -> None:
    query = "SELECT o.user_id, COUNT(*) FROM users AS u LEFT JOIN orders AS o ON u.id = o.id GROUP BY o.{}"
    found = plan(query.format("user_id"), "a BIGINT, b BIGINT", "a")
    assert found.parts == ()
    assert plan(query.replace("o.user_id", "o.id").format("id"), "a BIGINT, b BIGINT", "a").parts == ()


def test_a_top_n_has_only_its_partition() -> None:
    ranked = (
        "SELECT {} FROM (SELECT city, id, name, ROW_NUMBER() OVER (PARTITION BY city ORDER BY id) AS n FROM users) "
        "AS r WHERE n <= {}"
    )
    assert parts(ranked.format("city, id", 1)) == {"a": {"users": "city"}}
    assert parts(ranked.format("name, id", 3), key="b") == {}


def test_the_columns_of_the_key_are_preferred() -> None:
    found = parts("SELECT city, id FROM users", key="b")
    assert found == {"b": {"users": "id"}}
    two = parts(
        "SELECT name, city, COUNT(*) FROM users GROUP BY name, city", "a STRING, b STRING, c BIGINT", "a, b"
    )
    assert two == {"a": {"users": "name"}, "b": {"users": "city"}}


def test_a_value_that_is_cast_is_no_value_of_the_source() -> None:
    assert parts("SELECT id, COUNT(*) FROM users GROUP BY id", "a DECIMAL(20, 0), b BIGINT") == {}


def test_groups_of_a_join_are_asked_of_the_join() -> None:
    found = plan(
        "SELECT u.name, COUNT(*) FROM users AS u JOIN orders AS o ON u.id = o.user_id WHERE o.id > 3 GROUP BY u.name"
    )
    assert found.parts_sql == (
        "SELECT DISTINCT `u`.`name` AS `a` FROM `users` AS `u` JOIN `orders` AS `o` ON `u`.`id` = `o`.`user_id` WHERE "
        "`o`.`id` > 3"
    )
    assert plan("SELECT city, COUNT(*) FROM users GROUP BY city").parts_sql == ""
