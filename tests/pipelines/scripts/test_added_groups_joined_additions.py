"""Joins of tables whose rows are only added, with each other and with keyed tables: results are those that SQLite
computes after every batch of drawn changes, as bags of rows.

The machinery is that of test_refresh_histories; `e` and `f` have no key, and a row of them may be there twice.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.sql import load_script
from tests.expressions.vectors import drawn_seed
from tests.pipelines.scripts.test_refresh_histories import played, script

EVENTS = ("e", "f")
QUERIES = {
    "by_name": (
        "name STRING, n BIGINT, total INT",
        "name",
        "SELECT u.name, COUNT(*), SUM(e.v) FROM e JOIN u ON e.h = u.h AND e.v = u.id GROUP BY u.name",
    ),
    "of_subqueries": (
        "name STRING, n BIGINT, total INT",
        "name",
        "SELECT r.name, COUNT(*), SUM(s.v) FROM (SELECT h, id, v FROM e WHERE v > 0) AS s "
        "JOIN (SELECT u.h, u.id, u.name, t.v AS w FROM u JOIN t ON u.h = t.h AND u.w = t.id WHERE t.g <> 'a') AS r "
        "ON s.h = r.h AND s.v = r.w GROUP BY r.name",
    ),
    "by_left": (
        "h INT, g STRING, n BIGINT, met BIGINT",
        "h, g",
        "SELECT e.h, e.g, COUNT(*), COUNT(u.w) FROM e LEFT JOIN u ON e.h = u.h AND e.id = u.id GROUP BY e.h, e.g",
    ),
    "by_full": (
        "h INT, n BIGINT, met BIGINT",
        "h",
        "SELECT COALESCE(e.h, u.h), COUNT(e.v), COUNT(u.w) FROM e FULL JOIN u ON e.h = u.h AND e.id = u.id "
        "GROUP BY COALESCE(e.h, u.h)",
    ),
    "by_right": (
        "h INT, n BIGINT, total INT",
        "h",
        "SELECT u.h, COUNT(e.v), SUM(f.v) FROM f JOIN e ON e.h = f.h AND e.id = f.id "
        "RIGHT JOIN u ON e.h = u.h AND e.v = u.id GROUP BY u.h",
    ),
    "of_all": (
        "name STRING, n BIGINT",
        "name",
        "SELECT u.name, COUNT(*) FROM e LEFT JOIN u ON e.h = u.h AND e.v = u.id GROUP BY u.name",
    ),
    "three": (
        "name STRING, g STRING, n BIGINT",
        "name, g",
        "SELECT u.name, t.g, COUNT(*) FROM e, t, u "
        "WHERE e.h = t.h AND e.id = t.id AND u.h = t.h AND u.id = t.v AND e.v > 0 GROUP BY u.name, t.g",
    ),
    "best": (
        "h INT, g STRING, place BIGINT, name STRING, v INT",
        "h, g, place",
        "SELECT h, g, place, name, v FROM (SELECT e.h, e.g, u.name, e.v, "
        "ROW_NUMBER() OVER (PARTITION BY e.h, e.g ORDER BY e.v DESC, u.name) AS place "
        "FROM e JOIN u ON e.h = u.h AND e.id = u.id) AS r WHERE place <= 2",
    ),
    "different": (
        "name STRING, g STRING",
        "name, g",
        "SELECT DISTINCT u.name, e.g FROM e JOIN u ON e.h = u.h AND e.v = u.id",
    ),
    "highest": (
        "h INT, n BIGINT",
        "h",
        "SELECT h, COUNT(*) FROM (SELECT e.h, e.id, MAX(f.v) AS top FROM e JOIN f ON e.h = f.h AND e.id = f.id "
        "AND f.v <= e.v GROUP BY e.h, e.id) AS m WHERE top > 0 GROUP BY h",
    ),
    "counted_pairs": (
        "g STRING, n BIGINT, total INT, low INT",
        "g",
        "SELECT e.g, COUNT(*), SUM(f.v), MIN(e.v) FROM e JOIN f ON e.h = f.h AND e.id = f.id JOIN e AS o "
        "ON o.h = e.h AND o.v = e.id GROUP BY e.g",
    ),
    "known_pairs": (
        "h INT, g STRING",
        "h, g",
        "SELECT e.h, e.g FROM e JOIN f ON e.h = f.h AND e.id = f.id GROUP BY e.h, e.g",
    ),
    "pairs": (
        "h INT, id INT, v INT",
        "",
        "SELECT e.h, e.id, f.v FROM e JOIN f ON e.h = f.h AND e.id = f.id WHERE e.v <> 2",
    ),
    "of_itself": (
        "h INT, id INT, v INT",
        "",
        "SELECT a.h, a.id, b.v FROM e AS a JOIN e AS b ON a.h = b.h AND a.v = b.id",
    ),
    "united": (
        "h INT, id INT, v INT",
        "",
        "SELECT f.h, f.id, o.v FROM f JOIN (SELECT h, id, v FROM e WHERE v > 1 UNION ALL SELECT h, id, v FROM f) AS o "
        "ON f.h = o.h AND f.v = o.id UNION ALL SELECT e.h, e.id, e.v FROM e",
    ),
}  # fmt: skip
"""Columns and key of the sink, and the query, which means the same to Flink and to SQLite."""
IN_DEFAULT_TESTS = ("of_subqueries", "counted_pairs", "of_itself", "united")


def test_what_is_merged(lake: Path) -> None:
    """Aggregates over rows that are only added; not those that would need values of rows before."""
    plans = {plan.name: plan for plan in load_script(script(lake, QUERIES, EVENTS)).inserts}
    assert {name for name, plan in plans.items() if plan.accumulators} == {"counted_pairs", "known_pairs"}
    joined = {"counted_pairs", "known_pairs", "pairs", "of_itself", "united"}
    assert {name for name, plan in plans.items() if plan.joined is not None} == joined


def test_some_histories(spark: SparkSession, lake: Path) -> None:
    """Of a drawn query; those of all queries are played by the slow test."""
    seed = drawn_seed()
    name = random.Random(seed).choice(IN_DEFAULT_TESTS)
    played(spark, lake, seed, {name: QUERIES[name]}, histories=20, batches=2, events=EVENTS)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(20, 23))
def test_long_histories(spark: SparkSession, lake: Path, seed: int) -> None:
    played(spark, lake, seed, QUERIES, histories=30, batches=4, events=EVENTS)
