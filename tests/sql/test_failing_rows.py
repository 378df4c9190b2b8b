"""For which rows a query fails, and what is left of it without them; no Spark."""

from __future__ import annotations

import pytest

from bridge.sql import InsertPlan
from bridge.sql.positions import POSITION_COLUMNS
from tests.sql.scripts import load

_TABLES = """
CREATE TABLE t (id INT, a INT, b INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 't');
CREATE TABLE u (id INT, c INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 'u');
CREATE TABLE k (id INT, a INT, b INT) WITH ('connector' = 'kafka', 'topic' = 'k',
  'properties.bootstrap.servers' = 'x:1', 'format' = 'json', 'scan.startup.mode' = 'earliest-offset');
CREATE TABLE o (x INT, y INT) WITH ('connector' = 'print');
CREATE TABLE p (x INT, y INT, PRIMARY KEY (x) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 'p');
CREATE VIEW v AS SELECT id, a / b AS q, 1 / a AS r FROM t;
"""


def _plan(query: str, way: str = "skip", sink: str = "o") -> InsertPlan:
    return load(f"SET 'bridge.bad-records' = '{way}';{_TABLES}INSERT INTO {sink} {query};").inserts[0]


@pytest.mark.parametrize(
    ("query", "reasons"),
    [
        ("SELECT id, a + b FROM t", []),
        ("SELECT id, a / 2 FROM t", []),
        ("SELECT id, a / NULLIF(b, 0) FROM t WHERE TRY_CAST('x' AS INT) = 1", ["a / NULLIF(b, 0)"]),
        ("SELECT id, a / b FROM t", ["a / b"]),
        ("SELECT id, q FROM v", ["a / b"]),
        ("SELECT id, r FROM v WHERE q > 1", ["a / b", "1 / a"]),
        ("SELECT id, 1 FROM v", []),
        ("SELECT id, 1 FROM (SELECT DISTINCT id, q FROM v) AS d", ["a / b"]),
        ("SELECT t.id, c FROM t JOIN u ON t.id = u.id AND t.a / t.b = 1", ["a / b"]),
        ("SELECT t.id, t.a / u.c FROM t JOIN u ON t.id = u.id", ["t.a / u.c"]),
    ],
)
def test_the_expressions_that_may_fail(query: str, reasons: list[str]) -> None:
    shown = " ".join(failing.spark_sql for failing in _plan(query).failing)
    assert all(f"division by zero in {reason}'" in shown for reason in reasons)
    assert bool(shown) == bool(reasons)


def test_a_query_that_stops_stays_as_it_is() -> None:
    query = "SELECT id, a / b FROM t"
    stopping, leaving = _plan(query, "fail"), _plan(query)
    assert "RAISE_ERROR" in stopping.spark_sql
    assert "RAISE_ERROR" not in leaving.spark_sql
    assert [f.stop for f in stopping.failing] == [True]
    assert [f.stop for f in leaving.failing] == [False]
    assert stopping.fingerprint == leaving.fingerprint


def test_a_query_that_cannot_fail_is_the_same_either_way() -> None:
    query = "SELECT id, a + b FROM t WHERE a > 1"
    assert _plan(query, "fail").spark_sql == _plan(query).spark_sql


def test_rows_are_known_by_their_keys() -> None:
    (joined,) = _plan("SELECT t.id, t.a / u.c FROM t JOIN u ON t.id = u.id").failing
    assert joined.columns == (("t", "id"), ("u", "id"))
    assert joined.sources == ("t", "u")
    (viewed,) = _plan("SELECT 1, x / y FROM (SELECT a AS x, b AS y FROM t) AS s").failing
    assert viewed.columns == (("t", "id"),)


def test_rows_without_a_key_are_known_by_the_positions_that_are_kept() -> None:
    (plain,) = _plan("SELECT id, a / b FROM k").failing
    assert plain.has_no_key
    ranked = "SELECT id, ROW_NUMBER() OVER (PARTITION BY id ORDER BY a / b) AS n FROM k"
    (placed,) = _plan(f"SELECT id, CAST(n AS INT) FROM ({ranked}) WHERE n <= 1", sink="p").failing
    assert placed.columns == tuple(("k", column.name) for column in POSITION_COLUMNS)
