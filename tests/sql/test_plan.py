"""The fingerprint of a plan changes with what changes its rows, and with nothing else.

Which scans a query has, and which of them never meet.
"""

from __future__ import annotations

import pytest
from sqlglot import exp, parse_one

from bridge.sql.plan import joined_rows
from tests.sql.scripts import SOURCES, load, sink

QUERY = "SELECT region, COUNT(*) FROM v WHERE region <> 'x' GROUP BY region"
SCRIPT = (
    f"{SOURCES}{sink('a STRING, b BIGINT', 'a')}CREATE VIEW v AS SELECT region, ok FROM views WHERE ok;\n"
    f"INSERT INTO s {QUERY};\n"
)


def fingerprint(text: str) -> str:
    return load(text).inserts[0].fingerprint


def test_it_stays_the_same_in_all_versions() -> None:
    assert fingerprint(SCRIPT) == "05e6b9e0ba5cf31f"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("GROUP BY", "\n  group /* here */ BY -- and there\n"),
        ("SELECT region, COUNT(*)", "SELECT `region`, count(*)"),
        ("'properties.bootstrap.servers' = 'b:1'", "'properties.bootstrap.servers' = 'c:2'"),
        ("user_id BIGINT", "user_id INT"),
        ("CREATE VIEW v", "SET 'parallelism.default' = '1';\nCREATE VIEW v"),
    ],
)
def test_what_changes_no_row(old: str, new: str) -> None:
    assert old in SCRIPT
    assert fingerprint(SCRIPT.replace(old, new)) == fingerprint(SCRIPT)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("'x'", "'X'"),
        ("'x'", "'${env:CITY:y}'"),
        ("COUNT(*)", "COUNT(region)"),
        ("WHERE ok", "WHERE NOT ok"),
        ("'topic' = 'views'", "'topic' = 'views2'"),
        ("region STRING", "region VARCHAR(5)"),
        ("b BIGINT", "b DECIMAL(20, 0)"),
    ],
)
def test_what_changes_rows(old: str, new: str) -> None:
    assert old in SCRIPT
    assert fingerprint(SCRIPT.replace(old, new)) != fingerprint(SCRIPT)


def parsed(sql: str) -> exp.Query:
    found = parse_one(sql, dialect="spark")
    assert isinstance(found, exp.Query)
    return found


def test_every_scan_has_a_name() -> None:
    query = parsed("SELECT a.x FROM e AS a JOIN (SELECT x FROM e) AS b ON a.x = b.x JOIN c ON c.x = a.x")
    found = joined_rows(query, {"e", "c"})
    assert [(scan.source, scan.apart) for scan in found.scans] == [
        ("e", frozenset()),
        ("e", frozenset()),
        ("c", frozenset()),
    ]
    assert [scan.name for scan in found.scans if f"FROM `{scan.name}`" in found.spark_sql] == [
        "__scan0_e",
        "__scan1_e",
    ]
    assert "FROM e AS a" in query.sql("spark"), "the query stays as it is"


def test_scans_of_different_queries_of_a_union_do_not_meet() -> None:
    query = parsed("SELECT a.x FROM a JOIN (SELECT x FROM b UNION ALL SELECT x FROM c) AS u ON a.x = u.x")
    apart = {
        scan.source: {name.split("_")[-1] for name in scan.apart} for scan in joined_rows(query, "abc").scans
    }
    assert apart == {"a": set(), "b": {"c"}, "c": {"b"}}


def test_no_table_of_another_name_is_a_scan() -> None:
    assert not joined_rows(parsed("SELECT x FROM (SELECT 1 AS x) AS e"), {"e"}).scans
