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
CREATE TABLE d (id INT, a INT, b INT) WITH ('connector' = 'delta', 'path' = 'd');
CREATE TABLE o (x INT, y INT) WITH ('connector' = 'print');
CREATE TABLE p (x INT, y INT, PRIMARY KEY (x) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 'p');
CREATE TABLE q (x INT, y INT, z INT, PRIMARY KEY (x, z) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 'q');
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
        ("SELECT t.id, c FROM t JOIN u ON t.id = u.id AND t.a / u.c = 1", ["t.a / u.c"]),
        ("SELECT t.id, c FROM t JOIN u ON t.id = u.id AND t.a / t.b = u.c AND t.a < u.c", ["a / b"]),
        ("SELECT t.id, u.c FROM t JOIN u ON t.id = u.id JOIN k ON t.a / u.c = k.id", []),
    ],
)
def test_the_expressions_that_may_fail(query: str, reasons: list[str]) -> None:
    shown = " ".join(failing.spark_sql for failing in _plan(query).failing)
    assert all(f"division by zero in {reason}'" in shown for reason in reasons)
    assert bool(shown) == bool(reasons)


@pytest.mark.parametrize(
    ("query", "reasons"),
    [
        ("SELECT a, CAST(SUM(b) / COUNT(b) AS INT) FROM t GROUP BY a", ["SUM(b) / COUNT(b)"]),
        ("SELECT a, 1 FROM t GROUP BY a HAVING 1 / COUNT(b) > 0", ["1 / COUNT(b)"]),
        (
            "SELECT a / b, CAST(SUM(1 / b) / SUM(b) AS INT) FROM t GROUP BY a / b",
            ["a / b", "SUM(1 / b) / SUM(b)"],
        ),
        (
            "SELECT x, CAST(10 / n AS INT) FROM (SELECT a AS x, COUNT(b) AS n FROM t GROUP BY a) AS g",
            ["10 / n"],
        ),
        ("SELECT x, 1 FROM (SELECT a AS x, SUM(b) / COUNT(b) AS n FROM t GROUP BY a) AS g", []),
    ],
)
def test_what_is_computed_of_groups_may_fail(query: str, reasons: list[str]) -> None:
    found = _plan(query, sink="p").failing
    shown = " ".join(failing.spark_sql for failing in found)
    assert all(f"division by zero in {reason}'" in shown for reason in reasons)
    assert bool(shown) == bool(reasons)
    # Spark does not compute a column that no query reads.
    assert "RAISE_ERROR" not in shown + (_plan(query, sink="p").spark_sql if reasons else "")
    assert _plan(query, "fail", "p").fingerprint == _plan(query, sink="p").fingerprint


def test_groups_are_known_by_what_they_are_grouped_by() -> None:
    (group,) = _plan(
        "SELECT a + 1, CAST(SUM(b) / COUNT(b) AS INT), b FROM t GROUP BY a + 1, b", sink="q"
    ).failing
    assert group.columns == (("", "a + 1"), ("", "b"))
    assert group.of_several and not group.has_no_key
    (above,) = _plan(
        "SELECT x, CAST(10 / n AS INT) FROM (SELECT a AS x, COUNT(b) AS n FROM t GROUP BY a) AS g", sink="p"
    ).failing
    assert above.columns == (("", "a"),) and above.of_several
    (all_rows,) = _plan("SELECT 1, CAST(SUM(a) / COUNT(b) AS INT) FROM t", sink="p").failing
    assert all_rows.columns == () and all_rows.of_several


def test_pairs_are_known_by_the_keys_of_both_rows() -> None:
    (pair,) = _plan("SELECT t.id, c FROM t LEFT JOIN u ON t.id = u.id AND t.a / u.c = 1").failing
    assert pair.columns == (("t", "id"), ("u", "id"))
    assert not pair.of_several and " LEFT JOIN " not in pair.spark_sql


def test_a_row_that_an_outer_join_fills_depends_on_all_rows() -> None:
    (filled,) = _plan("SELECT t.id, t.a / u.c FROM t LEFT JOIN u ON t.id = u.id").failing
    assert filled.of_several


@pytest.mark.parametrize(
    ("value", "type", "reason"),
    [
        ("f", "DECIMAL(5, 2)", "NaN or infinity in column x of the sink"),
        ("twice", "INT", "a value that is no INT in column x of the sink"),
        ("d", "DECIMAL(5, 2)", None),
        ("twice", "STRING", None),
        ("id", "DECIMAL(5, 2)", None),
    ],
)
def test_a_value_that_the_type_of_the_sink_does_not_hold(value: str, type: str, reason: str | None) -> None:
    text = (
        "SET 'bridge.bad-records' = 'skip';CREATE TABLE m (id INT, f DOUBLE, d DECIMAL(9, 2), twice AS id * 2) "
        "WITH ('connector' = 'kafka', 'topic' = 'k', 'properties.bootstrap.servers' = 'x:1', 'format' = 'json', "
        f"'scan.startup.mode' = 'earliest-offset');CREATE TABLE o (x {type}) WITH ('connector' = 'print');"
        f"INSERT INTO o SELECT {value} FROM m;"
    )
    (plan,) = load(text).inserts
    assert [reason in failing.spark_sql for failing in plan.failing if reason] == [True] * bool(reason)
    assert bool(plan.failing) == bool(reason)
    assert "RAISE_ERROR" not in plan.spark_sql


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


def test_rows_without_a_key_are_known_by_the_positions_of_their_records() -> None:
    ranked = "SELECT id, ROW_NUMBER() OVER (PARTITION BY id ORDER BY a / b) AS n FROM k"
    for query in ("SELECT id, a / b FROM k", f"SELECT id, CAST(n AS INT) FROM ({ranked}) WHERE n <= 1"):
        (found,) = _plan(query, sink="p").failing
        assert found.columns == tuple(("k", column.name) for column in POSITION_COLUMNS)
        assert found.positioned == {"k"} and not found.has_no_key
    (pair,) = _plan("SELECT t.id, t.a / k.b FROM t JOIN k ON t.id = k.id").failing
    assert pair.columns[:2] == (("t", "id"), ("k", "__topic")) and pair.positioned == {"k"}
    (delta,) = _plan("SELECT id, a / b FROM d").failing
    assert delta.columns == () and delta.has_no_key


def test_rows_of_windows_are_known_by_their_positions_too() -> None:
    """The states keep these for the watermark."""
    text = (
        "CREATE TABLE e (id INT, a INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts, PRIMARY KEY (id) NOT ENFORCED) "
        "WITH ('connector' = 'upsert-kafka', 'topic' = 'e', 'properties.bootstrap.servers' = 'x:1', "
        "'key.format' = 'json', 'value.format' = 'json');CREATE TABLE o (e TIMESTAMP(3), n INT, "
        "PRIMARY KEY (e) NOT ENFORCED) WITH ('connector' = 'blackhole');INSERT INTO o SELECT window_end, SUM(1 / a) "
        "FROM TABLE(TUMBLE(TABLE e, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end;"
    )
    (found,) = load(text).inserts[0].failing
    assert found.columns == (("e", "id"), *(("e", column.name) for column in POSITION_COLUMNS))
