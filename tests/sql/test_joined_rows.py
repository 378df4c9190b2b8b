"""Which scans a query has, and which of them never meet."""

from __future__ import annotations

from sqlglot import exp, parse_one

from bridge.sql.joined_rows import joined_rows


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
