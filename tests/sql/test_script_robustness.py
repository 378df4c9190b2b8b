"""A script with any mistake loads or is refused with a position; it never ends in another exception."""

from __future__ import annotations

import random

import pytest

from bridge.ddl.tokens import Source, tokenize
from bridge.errors import DefinitionError
from tests.sql.scripts import SOURCES, load, sink

HEAD = f"{SOURCES}{sink('a STRING, b BIGINT', 'a')}"
QUERIES = {
    "aggregate": "SELECT region, COUNT(DISTINCT page) FILTER (WHERE ok) FROM views AS v WHERE v.page > 3 AND price / 2 "
    "< 1.5 GROUP BY region HAVING AVG(page) > 1",
    "join": "SELECT COALESCE(u.name, 'x') AS n, o.id FROM orders o LEFT JOIN users AS u ON o.user_id = u.id AND u.city "
    "LIKE 'a%' FULL JOIN (SELECT DISTINCT region FROM views) USING (region)",
    "top-n": "SELECT region, rn FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY region ORDER BY ts DESC, page) AS rn "
    "FROM views) AS t WHERE rn <= 3",
    "union": "WITH w AS (SELECT city AS k, id FROM users) SELECT k, id FROM w UNION ALL SELECT place.b.c, tags['x'] "
    "FROM views WHERE region IN ('a', 'b') OR NOT ok",
    "values": "VALUES ('x', 1), (NULL, CAST('2' AS BIGINT)), (CASE WHEN 1 = 1 THEN 'y' ELSE 'z' END, -2)",
}
WORDS = "SELECT FROM WHERE GROUP BY ( ) , . * 1 'x' `q` NULL AND ON AS OVER ; = views region CASE END INTERVAL".split()


def message(text: str) -> str:
    try:
        load(text)
    except DefinitionError as error:
        return str(error)
    return "t.sql: accepted"


def check(text: str) -> None:
    assert message(text).startswith("t.sql:")


@pytest.mark.parametrize("name", QUERIES)
def test_one_token_is_missing_twice_there_or_another_one(name: str) -> None:
    text = f"INSERT INTO s {QUERIES[name]};"
    chosen = random.Random(name)
    for token in tokenize(Source(text, "t.sql"))[:-1]:
        before, own, after = text[: token.start], text[token.start : token.end], text[token.end :]
        for changed in ("", f"{own} {own}", chosen.choice(WORDS), f"{own} {chosen.choice(WORDS)}"):
            check(f"{HEAD}{before} {changed} {after}")


@pytest.mark.parametrize("name", QUERIES)
def test_the_script_ends_at_any_token(name: str) -> None:
    text = f"BEGIN STATEMENT SET; INSERT INTO s (b, a) {QUERIES[name]}; END;"
    for token in tokenize(Source(text, "t.sql")):
        check(f"{HEAD}{text[: token.start]}")
