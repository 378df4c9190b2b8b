"""Rows of a join that no column of theirs tells apart, into sinks without a key (see `sql.row_key`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.embedded.broker import Broker
from tests.pipelines.scripts.scripts import ScriptRun

SOURCES = """
CREATE TABLE visits (user_id BIGINT, page INT) WITH ({kafka}, 'topic' = '{prefix}-visits');
CREATE TABLE users (id BIGINT, region STRING, PRIMARY KEY (id) NOT ENFORCED)
  WITH ({upsert}, 'topic' = '{prefix}-users');
"""
SHOWN = """
CREATE TABLE shown (page INT, region STRING) WITH ('connector' = 'print');
INSERT INTO shown SELECT v.page, u.region FROM visits AS v LEFT JOIN users AS u ON v.user_id = u.id;
"""
SENT = """
CREATE TABLE sent (region STRING) WITH ('connector' = 'kafka', {servers}, 'format' = 'debezium-json',
  'topic' = '{prefix}-sent');
INSERT INTO sent SELECT u.region FROM visits AS v JOIN users AS u ON v.user_id = u.id;
"""


def visit(user: int | None, page: int) -> tuple[None, dict[str, Any]]:
    return None, {"user_id": user, "page": page}


def user(id: int, region: str | None) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"id": id}, {"id": id, "region": region}


Make = Callable[[str], ScriptRun]


@pytest.fixture
def make(spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]) -> Make:
    def made(insert: str) -> ScriptRun:
        text = SOURCES + insert.replace("{servers}", f"'properties.bootstrap.servers' = '{broker.bootstrap}'")
        script = ScriptRun(spark, broker, lake, unique("k"), text)
        script.create("visits", "users")
        return script

    return made


def send_first(script: ScriptRun) -> None:
    script.send("visits", [visit(1, 7), visit(1, 7), visit(2, 8), visit(None, 9)])
    script.send("users", [user(1, "a")])


def send_updates(script: ScriptRun) -> None:
    script.send("users", [user(1, "b"), user(2, "a")])
    script.send("visits", [visit(2, 8)])


def test_equal_rows_are_updated_one_by_one(make: Make) -> None:
    script = make(SHOWN)
    send_first(script)
    script.run()
    assert sorted(script.printed) == ["+I[7, a]", "+I[7, a]", "+I[8, null]", "+I[9, null]"]

    send_updates(script)
    script.run()
    updates = ["+U[7, b]", "+U[7, b]", "-U[7, a]", "-U[7, a]"]
    assert sorted(script.printed) == sorted([*updates, "+I[8, a]", "+I[8, a]", "-D[8, null]"]), (
        "as Flink's join does"
    )

    script.send("users", [({"id": 1}, None)])
    script.run()
    assert sorted(script.printed) == ["+I[7, null]", "+I[7, null]", "-D[7, b]", "-D[7, b]"]


@pytest.mark.slow
def test_a_topic_has_a_message_of_each_equal_row(make: Make) -> None:
    script = make(SENT)
    send_first(script)
    script.run()
    assert changes(script) == [("c", None, "a"), ("c", None, "a")]

    send_updates(script)
    script.run()
    assert sorted(changes(script), key=str) == [
        ("c", None, "a"),
        ("c", None, "a"),
        ("c", None, "b"),
        ("c", None, "b"),
        ("d", "a", None),
        ("d", "a", None),
    ]

    script.send("users", [({"id": 1}, None)])
    script.run()
    assert changes(script) == [("d", "b", None), ("d", "b", None)]


def changes(script: ScriptRun) -> list[tuple[str, Any, Any]]:
    """The operation, and the region before and after, of what was sent."""

    def region(row: dict[str, Any] | None) -> Any:
        return None if row is None else row["region"]

    return [(v["op"], region(v["before"]), region(v["after"])) for _, v in script.received("sent")]
