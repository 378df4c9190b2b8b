"""Bad records and failing rows of a script over a real broker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.embedded.broker import Broker
from bridge.errors import BadRecordError
from bridge.pipelines.ingest.replay import replay
from bridge.pipelines.scripts.state import ScriptState
from tests.pipelines.scripts.scripts import ScriptRun

_TEXT = """
CREATE TABLE t (id INT, a INT, b INT, PRIMARY KEY (id) NOT ENFORCED) WITH ({upsert}, 'topic' = '{prefix}-in');
CREATE TABLE o (id INT, q INT, PRIMARY KEY (id) NOT ENFORCED) WITH ({upsert}, 'topic' = '{prefix}-out');
INSERT INTO o SELECT id, a / b FROM t;
"""


@pytest.mark.slow
def test_bad_records_and_failing_rows(
    spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]
) -> None:
    """A row that gets bad is deleted from the topic, once: not again when it is deleted while it is bad."""
    script = ScriptRun(spark, broker, lake, unique("s"), _TEXT)
    script.create("in", "out", partitions=1)

    def run(way: str, *rows: tuple[int, object, object] | int) -> list[tuple[object, object]]:
        documents = [
            ({"id": row}, None)
            if isinstance(row, int)
            else ({"id": row[0]}, dict(zip(("id", "a", "b"), row, strict=True)))
            for row in rows
        ]
        script.send("in", documents)
        script.text = f"SET 'bridge.bad-records' = '{way}';{_TEXT}"
        script.run()
        return sorted((key["id"], value and value["q"]) for key, value in script.received("out"))

    def bad(verb: str) -> int:
        return sum(report.bad_records for report in script.reports if report.verb == verb)

    with pytest.raises(BadRecordError) as stopped:
        run("fail", (1, 4, 2), (2, "secret", 1))
    assert (
        "SET 'bridge.bad-records' = 'quarantine' to continue and quarantine such records, or 'skip' to"
        in str(stopped.value)
    )
    assert "pipeline file" not in str(stopped.value) and "secret" not in str(stopped.value)
    assert run("skip") == [(1, 2)]
    assert (bad("ingest"), bad("insert")) == (1, 0)
    assert run("quarantine", (1, 4, 0), (3, "secret", 1), (4, 8, 2)) == [(1, None), (4, 4)]
    assert (bad("ingest"), bad("insert")) == (1, 1)
    assert run("quarantine", 1) == []
    assert (bad("ingest"), bad("insert")) == (0, 0)
    state = lake / "bridge-state" / "script"
    records = spark.read.format("delta").load(str(state / "sources" / "t_quarantine")).collect()
    assert [(r.pipeline, r.offset, bytes(r.key), r.row_key) for r in records] == [
        ("script.sources-t", 3, b'{"id": 3}', None)
    ]
    rows = spark.read.format("delta").load(str(state / "results" / "o_quarantine")).collect()
    assert [(r.pipeline, r.tables, [tuple(k) for k in r.row_key], r.offset, r.reason) for r in rows] == [
        ("script.o", ["t"], [("t", "id", "1")], None, "division by zero in a / b")
    ]

    spark.sql(f'UPDATE delta.`{state}/sources/t_quarantine` SET value = \'{{"id": 3, "a": 3, "b": 1}}\'')
    pipelines = ScriptState(script.script())
    ingest = pipelines.ingest(pipelines.tables["t"])
    assert ingest is not None
    assert replay(spark, ingest).replayed == 1
    assert run("quarantine") == [(3, 3)]


_EVENTS = "CREATE TABLE e (g INT, a INT, b INT) WITH ({kafka}, 'topic' = '{prefix}-in');\n"
_SINKS = """
CREATE TABLE o (g INT, q INT) WITH ('connector' = 'blackhole');
CREATE TABLE n (g INT, q INT, PRIMARY KEY (g) NOT ENFORCED) WITH ('connector' = 'blackhole');
CREATE TABLE w (a INT, b INT) WITH ('connector' = 'blackhole');
"""
_PLAIN = (
    f"{_EVENTS}{_SINKS}INSERT INTO o SELECT g, a FROM e;\nINSERT INTO n SELECT g, SUM(a) FROM e GROUP BY g;\n"
)
_DIVIDED = _PLAIN.replace("g, a FROM", "g, a / b FROM").replace("SUM(a)", "SUM(a / b)")
_PAIRS = "INSERT INTO w SELECT l.a, l.a / r.b FROM e AS l JOIN e AS r ON l.g = r.g AND l.b > 0;\n"


def _event(g: int, a: int, b: int) -> tuple[None, dict[str, object]]:
    return None, {"g": g, "a": a, "b": b}


def _quarantined(spark: SparkSession, lake: Path, name: str) -> list[tuple[Any, ...]]:
    rows = spark.read.format("delta").load(
        str(lake / "bridge-state" / "script" / "results" / f"{name}_quarantine")
    )
    chosen = rows.select("topic", "partition", "offset", "row_key", "reason", "timestamp").collect()
    assert all((row.timestamp is None) == (row.topic is None) for row in chosen)
    return sorted((*row[:3], [tuple(key[1:]) for key in row[3]], row[4]) for row in chosen)


@pytest.mark.slow
def test_rows_of_a_topic_without_a_key_are_named_by_their_records(
    spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]
) -> None:
    script = ScriptRun(spark, broker, lake, unique("s"), _DIVIDED + _PAIRS)
    script.create("in", partitions=1)
    topic, reason = script.topic("in"), "division by zero in a / b"
    script.send("in", [_event(1, 4, 2), _event(1, 5, 0)])
    with pytest.raises(
        BadRecordError, match=rf"INSERT script\.o: {topic}-0 at offset 1: {reason}\. Nothing of"
    ):
        script.run()

    script.text = f"SET 'bridge.bad-records' = 'quarantine';{_DIVIDED}{_PAIRS}"
    script.run()
    assert {r.pipeline: r.bad_records for r in script.reports if r.verb == "insert"} == {
        "script.o": 1,
        "script.n": 1,
        "script.w": 1,
    }
    script.send("in", [_event(2, 6, 0), _event(2, 7, 0), _event(2, 7, 0), _event(2, 8, 1)])
    script.run()
    of_rows: list[tuple[object, ...]] = [(topic, 0, offset, [], reason) for offset in (1, 2, 3, 4)]
    assert _quarantined(spark, lake, "o") == _quarantined(spark, lake, "n") == of_rows
    pairs = [
        (left, {name: value for name, value in key}) for _, _, left, key, _ in _quarantined(spark, lake, "w")
    ]
    assert [(left, right["topic"], right["partition"], right["offset"]) for left, right in pairs] == [
        (0, topic, "0", "1"),
        *((5, topic, "0", str(offset)) for offset in (2, 3, 4)),
    ], "each pair once"


@pytest.mark.slow
def test_a_state_goes_on_as_it_was_made(
    spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]
) -> None:
    """One that keeps no positions gets none; one that keeps them does so while no query asks for them, too."""
    insert = "INSERT INTO n SELECT g, SUM(a) FROM e GROUP BY g;"
    summed = f"SET 'bridge.bad-records' = 'quarantine';{_EVENTS}{_SINKS}{insert}"
    divided = summed.replace("SUM(a)", "SUM(a / b)")
    made = []
    for texts, places in (((summed, divided), [None] * 4), ((divided, summed, divided), [0, 1, 2, 3, 4, 5])):
        script = ScriptRun(spark, broker, lake / f"of-{len(texts)}", unique("s"), "")
        made.append(script)
        script.folder.mkdir()
        script.create("in", partitions=1)
        for number, script.text in enumerate(texts):
            script.send("in", [_event(1, 5, 0), _event(1, 5, 0)])
            script.run(rebuild=number > 0)
        found = _quarantined(spark, script.folder, "n")
        assert [(offset, key) for _, _, offset, key, _ in found] == [(place, []) for place in places]
        script.text = divided.replace("quarantine", "fail")
    for script, place in zip(made, ("kafka {}", "{}-0 at offset 0"), strict=True):
        with pytest.raises(
            BadRecordError, match=f"n: {place.format(script.topic('in'))}: division by zero in a / b"
        ):
            script.run(rebuild=True)
