"""Top-N and deduplication by ROW_NUMBER."""

from __future__ import annotations

import pytest

from bridge.sql.plan import QueryKind
from tests.sql.scripts import SOURCES, load, plan, refusal, sink

OVER = "ROW_NUMBER() OVER (PARTITION BY region ORDER BY ts DESC) AS rn"


@pytest.mark.parametrize(
    "condition", ["rn = 1", "rn <= 1", "rn < 2", "1 >= rn", "t.rn = 1 AND ok", "(rn = 1)", "2 > rn"]
)
def test_the_last_row_of_each_key(condition: str) -> None:
    query = f"SELECT region, user_id FROM (SELECT *, {OVER} FROM views) AS t WHERE {condition}"
    found = plan(query)
    assert (found.kind, found.key, found.is_updating) == (QueryKind.TOP_N, ("a",), True)


def test_the_first_rows_are_known_by_their_number() -> None:
    query = f"SELECT region, rn FROM (SELECT *, {OVER} FROM views) WHERE rn <= 3"
    assert plan(query, key="a, b").key == ("a", "b")


def test_the_first_rows_of_a_keyed_table_keep_its_key_which_decides_ties() -> None:
    query = (
        "SELECT name, id FROM (SELECT id, name, ROW_NUMBER() OVER (PARTITION BY city ORDER BY name) AS rn FROM users) "
        "AS t WHERE rn <= 3"
    )
    found = plan(query, key="b")
    assert found.key == ("b",)
    assert (
        "ROW_NUMBER() OVER (PARTITION BY `users`.`city` ORDER BY `users`.`name`, `users`.`id`)"
        in found.spark_sql
    )


def test_rows_of_a_topic_with_equal_times_are_in_the_order_of_their_records() -> None:
    over = OVER.replace("DESC", "{}")
    arrival = (
        "`views`.`__offset`{0}, `views`.`__timestamp`{0}, `views`.`__topic`{0}, `views`.`__partition`{0})"
    )
    for order, watermark, table, expected in (
        ("DESC", True, "views", " DESC"),
        ("ASC", True, "views", ""),
        ("DESC", False, "views", ""),
        ("DESC", True, "(SELECT region, ts, user_id FROM views WHERE ok) AS views", " DESC"),
    ):
        query = f"SELECT region, user_id FROM (SELECT *, {over.format(order)} FROM {table}) AS t WHERE rn = 1"
        text = SOURCES.replace("ok BOOLEAN", "ok BOOLEAN, WATERMARK FOR ts AS ts") if watermark else SOURCES
        found = load(f"{text}{sink('a STRING, b BIGINT', 'a')}INSERT INTO s {query};").inserts[-1]
        spark = found.spark_sql.replace(" NULLS LAST", "")
        assert arrival.format(expected) in spark, (order, watermark, table)
        assert found.positioned == ("views",)


def test_an_expression_in_partition_by_is_in_the_key_where_it_is_selected() -> None:
    over = "ROW_NUMBER() OVER (PARTITION BY COALESCE(region, '-') ORDER BY ts) AS n"
    for selected, key, columns in (
        ("COALESCE(region, '-') AS a, user_id AS b", "a", "a, b"),
        ("coalesce(region, '-') AS a, user_id AS b", "a, c", "a, b, n"),
    ):
        query = f"SELECT {columns} FROM (SELECT {selected}, {over} FROM views) WHERE n <= {len(key) // 2 + 1}"
        declared = "a STRING, b BIGINT, c BIGINT" if "c" in key else "a STRING, b BIGINT"
        assert plan(query, declared, key).key == tuple(key.split(", "))
    assert "the key" in refusal(
        f"SELECT a, b FROM (SELECT region AS a, user_id AS b, {over} FROM views) WHERE n = 1"
    )


def test_rows_without_a_key_are_in_the_order_of_what_is_selected() -> None:
    """A row that is computed again has its place again."""
    over = "ROW_NUMBER() OVER (PARTITION BY u.city ORDER BY v.ts) AS n"
    join = "views AS v JOIN users AS u ON v.user_id = u.id"
    query = f"SELECT a, b FROM (SELECT u.city AS a, v.user_id AS b, {over} FROM {join}) WHERE n = 1"
    found = plan(query).spark_sql.replace(" NULLS LAST", "")
    assert "ORDER BY `v`.`ts`, `u`.`city`, `v`.`user_id`) AS `n`" in found


NO_WINDOW = (
    "is not supported in this version: the supported one is ROW_NUMBER() in a subquery whose rows are filtered by it: "
    "WHERE rn <= n"
)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (f"SELECT region, {OVER} FROM views", f"16: an OVER window (ROW_NUMBER) {NO_WINDOW}"),
        ("SELECT region, SUM(page) OVER (PARTITION BY region ORDER BY ts) FROM views", "16: an OVER window (SUM) "
         f"{NO_WINDOW}"),
        (f"SELECT region, rn FROM (SELECT *, {OVER} FROM views) WHERE rn > 1", f"35: an OVER window (ROW_NUMBER) "
         f"{NO_WINDOW}"),
        (f"SELECT region, rn FROM (SELECT *, {OVER} FROM views) WHERE rn = 2", f"35: an OVER window (ROW_NUMBER) "
         f"{NO_WINDOW}"),
        ("SELECT region, rn FROM (SELECT region, RANK() OVER (ORDER BY ts) AS rn FROM views) WHERE rn = 1",
         f"40: an OVER window (RANK) {NO_WINDOW}"),
        ("SELECT region, rn FROM (SELECT region, ROW_NUMBER() OVER (PARTITION BY page) AS rn FROM views) WHERE rn = 1",
         "40: ROW_NUMBER requires ORDER BY in its OVER (...)"),
        ("SELECT region, rn FROM (SELECT region, ROW_NUMBER() OVER (ORDER BY COUNT(*)) AS rn FROM views GROUP "
         "BY region) "
         "WHERE rn = 1", "40: GROUP BY or DISTINCT beside ROW_NUMBER is not supported in this version: group in a "
         "subquery, and rank its rows"),
        ("SELECT region, ROW_NUMBER() FROM views", "16: ROW_NUMBER requires OVER (PARTITION BY ... ORDER BY ...); the "
         "supported one is ROW_NUMBER() in a subquery whose rows are filtered by it: WHERE rn <= n"),
    ],
)  # fmt: skip
def test_refused(query: str, message: str) -> None:
    assert refusal(query) == f"t.sql:6:{message}"
