"""Parts of queries that are not supported are refused by name, before the query is parsed.

Tokens without a meaning are refused, where sqlglot would skip them.
"""

from __future__ import annotations

import pytest

from bridge.errors import UnsupportedError
from tests.sql.scripts import plan, refusal

LIMIT = "a result that is kept up to date has no limit; use ROW_NUMBER() OVER (...) <= n"
WINDOWS = (
    "group by window_start and window_end of a window table function: FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(time), "
    "INTERVAL '10' MINUTES))"
)
SESSION = "its windows have no fixed bounds; use TUMBLE, HOP or CUMULATE"


@pytest.mark.parametrize(
    ("rest", "column", "what", "way_out"),
    [
        ("TABLE(SESSION(TABLE views, DESCRIPTOR(ts), INTERVAL '1' MINUTE))", 18, "the window table function SESSION",
         SESSION),
        ("views GROUP BY SESSION(ts, INTERVAL '1' HOUR)", 33, "the window SESSION", SESSION),
        ("TABLE(f(1))", 18, "a table function", "expand or compute the rows before they come into the topic"),
        ("views GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)", 33, "the window TUMBLE outside of FROM", WINDOWS),
        ("views MATCH_RECOGNIZE (ORDER BY ts)", 24, "MATCH_RECOGNIZE", "match the rows before they come into "
         "the topic"),
        ("views, LATERAL TABLE(f(page))", 25, "LATERAL", "write a join with an equality"),
        ("views CROSS JOIN UNNEST(tags)", 35, "UNNEST", "expand the array before it comes into the topic"),
        ("views, UNNEST(tags) AS t(k, v)", 25, "UNNEST", "expand the array before it comes into the topic"),
        ("views JOIN users FOR SYSTEM_TIME AS OF views.ts ON page = id", 35, "a temporal join (FOR SYSTEM_TIME AS OF)",
         "join the tables as they are now: JOIN ... ON"),
        ("views NATURAL JOIN users", 24, "NATURAL JOIN", "name the columns: JOIN ... USING (...)"),
        ("views INTERSECT SELECT id FROM users", 24, "INTERSECT", "compute it with a join, or with GROUP BY and "
         "HAVING"),
        ("views EXCEPT SELECT id FROM users", 24, "EXCEPT", "compute it with a join, or with GROUP BY and HAVING"),
        ("views GROUP BY GROUPING SETS ((page))", 33, "GROUPING SETS", "group by one set of columns per INSERT"),
        ("views GROUP BY ROLLUP (page)", 33, "ROLLUP", "group by one set of columns per INSERT"),
        ("views WHERE EXISTS (SELECT 1 FROM users)", 30, "a subquery in an expression (EXISTS)", "write a join"),
        ("views LIMIT 5", 24, "LIMIT", LIMIT),
        ("views FETCH FIRST 5 ROWS ONLY", 24, "FETCH FIRST", LIMIT),
        ("views ON CONFLICT DO NOTHING", 24, "ON CONFLICT", "the PRIMARY KEY of the sink is the key of the query; "
         "keep one row of each with ROW_NUMBER() OVER (...) = 1"),
        ("views WHERE region SIMILAR TO 'x'", 37, "SIMILAR TO", "write REGEXP(text, pattern)"),
    ],
)  # fmt: skip
def test_refused(rest: str, column: int, what: str, way_out: str) -> None:
    with pytest.raises(UnsupportedError) as error:
        plan(f"SELECT page FROM {rest}", "a INT", "a")
    assert str(error.value) == f"t.sql:6:{column}: {what} is not supported in this version: {way_out}"
    assert error.value.what == what


@pytest.mark.parametrize("call", ["NOW()", "CURRENT_TIMESTAMP", "RAND()", "UUID()", "PROCTIME()"])
def test_functions_that_are_not_deterministic(call: str) -> None:
    assert refusal(f"SELECT region, {call} FROM views") == (
        f"t.sql:6:16: {call.removesuffix('()')} is not deterministic, but a row that is computed again must be "
        "the same; use a column of the source, such as the time of the record (METADATA FROM 'timestamp')"
    )


def test_names_are_no_keywords() -> None:
    """Quoted names, and names after a dot, may be the words of a part."""
    query = "SELECT t.limit, `now` FROM (SELECT region AS `limit`, page AS `now` FROM views) AS t"
    assert plan(query).key == ("a",)


def test_references_outside_of_strings() -> None:
    assert refusal("SELECT region, ${env:X} FROM views") == (
        "t.sql:6:16: ${...} is replaced in the values of WITH and SET and in strings only, not in the text of a query"
    )


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
def test_refused_stray_tokens(query: str, column: int, token: str) -> None:
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
