"""Bad records and failing rows of a script over a real broker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

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
