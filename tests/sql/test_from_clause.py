"""FROM: what it may hold."""

from __future__ import annotations

import pytest

from tests.sql.scripts import KAFKA, SOURCES, plan, refusal, script_refusal, sink

NAMES = "name the columns with AS"


def test_a_subquery_without_an_alias() -> None:
    assert plan("SELECT k, n FROM (SELECT city AS k, id AS n FROM users)", key="b").spark_sql == (
        "SELECT `subquery1`.`k` AS `a`, `subquery1`.`n` AS `b` FROM (SELECT `users`.`city` AS `k`, `users`.`id` AS `n` "
        "FROM `users` AS `users`) AS `subquery1`"
    )


def test_no_from_is_one_row() -> None:
    found = plan("SELECT 'x', 1")
    assert (found.sources, found.is_updating) == ((), False)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "SELECT a, b FROM views AS v(a, b)",
            f"18: a list of columns after the alias of a table is not supported in this version: {NAMES}",
        ),
        (
            "SELECT region, 1 FROM (users JOIN orders ON users.id = orders.id)",
            "24: a join in parentheses is not supported in this version: write the joins one after another",
        ),
    ],
)
def test_refused(query: str, message: str) -> None:
    assert refusal(query) == f"t.sql:6:{message}"


def test_a_sink_cannot_be_read() -> None:
    text = f"{SOURCES}{sink('a INT', connector='print')}{sink('a INT', connector='blackhole', name='t')}"
    assert script_refusal(f"{text}INSERT INTO t\nSELECT a FROM s") == (
        "t.sql:7:15: connector 'print' is for sinks only"
    )


def test_updates_without_a_key_cannot_be_read() -> None:
    options = f"'connector' = 'kafka', 'topic' = 'c', {KAFKA}, 'format' = 'debezium-json'"
    source = f"CREATE TABLE c (a INT) WITH ({options});\n"
    assert script_refusal(f"{source}{sink('a INT', connector='print')}INSERT INTO s SELECT a FROM c") == (
        "t.sql:3:29: table `c` has updates and deletes but no PRIMARY KEY, so the row that a change is about cannot be "
        "found; declare PRIMARY KEY (...) NOT ENFORCED"
    )
