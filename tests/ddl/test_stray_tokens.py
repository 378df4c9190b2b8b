"""Tokens without a meaning are refused, where sqlglot would skip them."""

from __future__ import annotations

import pytest

from tests.sql.scripts import plan, refusal


@pytest.mark.parametrize(
    ("query", "column", "token"),
    [
        ("SELECT region,, page FROM views", 14, "','"),
        ("SELECT , region, page FROM views", 8, "','"),
        ("SELECT region, page, FROM views", 20, "','"),
        ("SELECT region, page FROM . views", 26, "'.'"),
        ("SELECT region, page FROM views ?", 32, "'?'"),
        ("SELECT region, page FROM views * AS v", 32, "'*'"),
        ("SELECT region, page FROM views * v", 32, "'*'"),
        ("SELECT region, page AS FROM views", 21, "'AS'"),
        ("SELECT AS region, page FROM views", 8, "'AS'"),
        ("SELECT region, @page FROM views", 16, "'@'"),
        ("SELECT region, page::INT FROM views", 20, "':'"),
        ("SELECT region, page ! 2 FROM views", 21, "'!'"),
        ("SELECT region, page | 2 FROM views", 21, "'|'"),
        ("SELECT region, page + FROM views", 21, "'+'"),
        ("SELECT region, COUNT(*) FILTER (ok) FROM views GROUP BY region", 32, "'('"),
        ("SELECT region, COUNT(DISTINCT , page) FROM views GROUP BY region", 31, "','"),
        ("SELECT region, COUNT(*) FROM views GROUP BY region,", 51, "','"),
        ("WITH w AS (SELECT 1 AS a) AS SELECT region, page FROM views", 27, "'AS'"),
    ],
)
def test_refused(query: str, column: int, token: str) -> None:
    assert refusal(query) == (
        f"t.sql:6:{column}: unexpected {token}; remove it, or quote names that are keywords with `...`"
    )


def test_case_without_then() -> None:
    assert refusal("SELECT region, CASE WHEN ok 1 ELSE 2 END FROM views") == (
        "t.sql:6:21: each WHEN of CASE has one THEN"
    )


@pytest.mark.parametrize(
    "query",
    [
        "SELECT v.*  FROM (SELECT region, page FROM views) AS v",
        "SELECT region, page * -2 + (3) FROM views WHERE page <> 1 AND page != 2 AND page >= 3 AND region || 'x' = 'y'",
        "SELECT region, COUNT ( * ) FROM views GROUP BY region",
        "SELECT ALL region, page FROM views",
        "SELECT region, tags ['x'] FROM views",
    ],
)
def test_legal(query: str) -> None:
    assert plan(query).key == ("a",)
