"""The gate: the rules that the rows of a batch must keep before they are written or sent."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.embedded.broker import Broker
from bridge.errors import BadRecordError, DefinitionError, QualityError
from bridge.metrics import BatchReport
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest.replay import replay
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.publish.run import publish
from bridge.pipelines.resync import table_to_topic, topic_to_table
from bridge.pipelines.resync.report import Resync
from tests.pipelines.world import World, key, tombstone, upsert, value

Make = Callable[..., World]
ONE = Decimal("1.00")
NAMED = {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "name"}}
POSITIVE = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "amount", "min_value": 0}}
UNIQUE = {"type": "expect_key_to_be_unique", "kwargs": {"column_list": ["id"]}}


def gate(action: str, ingest: str = "") -> str:
    """The sections of a pipeline file."""
    return f"quality: {{suite: suite.json, gate: {action}}}\n{ingest}"


def stored_results(world: World) -> list[tuple[Any, ...]]:
    """The results of the gate in the results table."""
    frame = world.spark.read.format("delta").load(f"{world.folder}/table_quality").sort("started", "number")
    of_each = ("trigger", "title", "success", "unexpected_count", "changed_rows", "severity")
    return [tuple(row) for row in frame.select(*of_each).collect()]


@pytest.fixture
def make(spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]) -> Make:
    def made(*expectations: dict[str, Any], **more: Any) -> World:
        suite = {"name": "gate", "expectations": expectations or (NAMED, POSITIVE, UNIQUE)}
        (lake / "suite.json").write_text(json.dumps(suite))
        return World.make(spark, broker, lake, unique, **{"partitions": 1, "cleanup": "delete", **more})

    return made


def test_fail_stops_before_anything_is_written(make: Make) -> None:
    world = make(sections=gate("fail"))
    world.send([upsert(1, "a"), upsert(2, "b")])
    ingest(world.spark, world.definition())
    world.send([upsert(1, None), upsert(3, "c", "-5.00"), upsert(4, None), upsert(4, "later"), tombstone(2)])
    with pytest.raises(QualityError) as stopped:
        ingest(world.spark, world.definition())
    message = str(stopped.value)
    assert "name values must never be null. (1 of 3 rows are not so)" in message
    assert 'for example {"id":1}, {"id":3}. Nothing of this batch was written' in message
    assert "-5" not in message.replace(str(world.folder), "")  # pytest numbers its folders
    assert world.rows() == [(1, "a", ONE), (2, "b", ONE)]
    assert stored_results(world) == [
        ("gate", "name values must never be null.", False, 1, 3, "critical"),
        ("gate", "amount values must be greater than or equal to 0.", False, 1, 3, "critical"),
    ]
    world.send([upsert(1, "corrected"), upsert(3, "c")])
    done = ingest(world.spark, world.definition())
    assert (done.unexpected_rows, world.rows()) == (
        0,
        [(1, "corrected", ONE), (3, "c", ONE), (4, "later", ONE)],
    )


@pytest.mark.slow
def test_quarantine_keeps_the_fold_of_the_rows_that_pass(make: Make) -> None:
    world = make(sections=gate("quarantine"))
    world.send(
        [
            upsert(1, "a"),
            upsert(1, None),  # 1: the row before counts
            upsert(2, None, "-1.00"),  # 2: deleted later
            tombstone(2),
            upsert(3, None),  # 4: set again later
            upsert(3, "c"),
        ]
    )
    done = ingest(world.spark, world.definition())
    assert (done.unexpected_rows, done.bad_records) == (3, 0)
    assert "the gate leaves 1 of its suite's expectations to `bridge check`: id is unique" in str(
        done.warning
    )
    assert world.rows() == [(1, "a", ONE), (3, "c", ONE)]
    assert verify(world.spark, world.definition()).equal
    quarantine = world.spark.read.format("delta").load(f"{world.folder}/table_quarantine")
    reasons = {row["offset"]: row["reason"] for row in quarantine.collect()}
    null, low = "name values must never be null.", "amount values must be greater than or equal to 0."
    assert reasons == {1: f"quality: {null}", 2: f"quality: {null}; {low}", 4: f"quality: {null}"}

    world.spark.sql(
        f"UPDATE delta.`{world.folder}/table_quarantine` SET value = CAST('{value(1, 'corrected')}' AS BINARY) "
        "WHERE offset = 1"
    )
    back = replay(world.spark, world.definition())
    assert (back.replayed, back.still_bad) == (1, 2)
    assert world.rows() == [(1, "corrected", ONE), (3, "c", ONE)]
    (world.folder / "suite.json").write_text(json.dumps({"name": "gate", "expectations": [POSITIVE]}))
    assert replay(world.spark, world.definition()).overtaken == 1
    assert world.rows() == [(1, "corrected", ONE), (3, "c", ONE)]


@pytest.mark.slow
def test_quarantine_of_rows_leaves_bad_records_to_their_own_rule(make: Make) -> None:
    world = make(sections=gate("quarantine", "ingest: {bad-records: skip}\n"))
    world.send([upsert(1, None), (key(2), "{"), upsert(3, "c")])
    done = ingest(world.spark, world.definition())
    assert (done.unexpected_rows, done.bad_records, world.rows()) == (1, 1, [(3, "c", ONE)])
    quarantine = world.spark.read.format("delta").load(f"{world.folder}/table_quarantine")
    assert [row["offset"] for row in quarantine.collect()] == [0]
    world.sections = gate("quarantine")
    world.send([(key(4), "{")])
    with pytest.raises(BadRecordError, match="at offset 3"):
        ingest(world.spark, world.definition())


def test_warn_counts_and_tells_once(make: Make) -> None:
    half = {"type": NAMED["type"], "kwargs": {"column": "name", "mostly": 0.5}}
    world = make(half, POSITIVE, sections=gate("warn"))
    world.send([upsert(1, None), upsert(2, "b", "-1.00"), upsert(3, "c")])
    reports: list[BatchReport] = []
    ingest(world.spark, world.definition(run={"max-offsets-per-batch": 3}), listener=reports.append)
    assert [r.unexpected_rows for r in reports] == [1]
    assert "'orders': not all rows pass the gate: amount values must be" in str(reports[0].warning)
    assert len(world.rows()) == 3
    assert [found[1:5] for found in stored_results(world)] == [
        ("name values must not be null, at least 50 % of the time.", True, 1, 3),
        ("amount values must be greater than or equal to 0.", False, 1, 3),
    ]
    world.send([upsert(4, "d")])
    ingest(world.spark, world.definition())
    assert len(stored_results(world)) == 2


@pytest.mark.slow
def test_results_that_cannot_be_kept_stop_no_batch(make: Make) -> None:
    world = make(NAMED, sections=gate("warn"))
    (world.folder / "table_quality").mkdir()
    world.spark.range(1).write.format("delta").mode("overwrite").save(str(world.folder / "table_quality"))
    world.send([upsert(1, None)])
    done = ingest(world.spark, world.definition())
    assert "table_quality is not a table of quality results" in str(done.warning)
    assert len(world.rows()) == 1
    world.sections = gate("fail")
    world.send([upsert(2, None)])
    with pytest.raises(QualityError, match="table_quality is not a table of quality results"):
        ingest(world.spark, world.definition())


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["ingest", "publish"])
def test_a_resync_passes_the_gate_too(make: Make, direction: str) -> None:
    world = make(NAMED, cleanup="compact", sections=gate("fail"))
    if direction == "ingest":
        world.send([upsert(1, "a")])
        ingest(world.spark, world.definition())
        world.send([upsert(2, None)])
        resync: Callable[..., Resync] = topic_to_table.resync
    else:
        rows = [(1, "a", ONE), (2, None, ONE)]
        frame = world.spark.createDataFrame(rows, "id bigint, name string, amount decimal(10, 2)")
        frame.write.format("delta").option("delta.enableChangeDataFeed", "true").save(
            str(world.folder / "table")
        )
        resync = table_to_topic.resync
    with pytest.raises(QualityError, match=r'example {"id":2}'):
        resync(world.spark, world.definition())
    world.sections = gate("warn")
    done = resync(world.spark, world.definition())
    assert "not all rows pass the gate: name values must never be null" in str(done.warning)
    assert len(stored_results(world)) == 2


def test_a_publish_stops_before_it_sends_or_warns(make: Make) -> None:
    world = make(sections=gate("fail"))
    rows = [(1, "a", ONE), (2, None, ONE), (3, "c", ONE)]
    frame = world.spark.createDataFrame(rows, "id bigint, name string, amount decimal(10, 2)")
    frame.write.format("delta").option("delta.enableChangeDataFeed", "true").save(str(world.folder / "table"))
    with pytest.raises(
        QualityError, match=r'example {"id":2}\. Nothing of it was sent; correct the rows in the table'
    ):
        publish(world.spark, world.definition())
    assert world.received() == []
    world.sections = gate("warn")
    done = publish(world.spark, world.definition())
    assert (done.records_out, done.unexpected_rows) == (3, 1)
    world.sections = gate("fail")
    table = f"delta.`{world.folder}/table`"
    world.spark.sql(f"UPDATE {table} SET name = NULL WHERE id = 3")
    with pytest.raises(QualityError, match="1 of 1 rows are not so"):
        publish(world.spark, world.definition())
    world.spark.sql(f"DELETE FROM {table} WHERE id = 2")
    assert len(world.received()) == 3


def test_a_publish_puts_no_rows_aside(make: Make) -> None:
    world = make(sections=gate("quarantine"))
    with pytest.raises(DefinitionError, match="leave the topic behind the table on that key"):
        publish(world.spark, world.definition())


def test_the_file_says_what_the_gate_is(make: Make) -> None:
    world = make(sections=gate("off"))
    assert world.definition().gate is None
    world.sections = "quality: {suite: suite.json, gate: fail, gate-suite: missing.json}\n"
    with pytest.raises(DefinitionError, match=r"missing\.json: the suite of quality\.gate cannot be read"):
        world.definition()
    world.sections = "quality: {suite: suite.json, gate-suite: suite.json}\n"
    with pytest.raises(DefinitionError, match="gate-suite has no effect with gate: off"):
        world.definition()
    (world.folder / "own.json").write_text(json.dumps({"name": "own", "expectations": [NAMED, UNIQUE]}))
    world.sections = "quality: {suite: suite.json, gate: fail, gate-suite: own.json}\n"
    with pytest.raises(DefinitionError, match=r"expectation 2 .* a gate cannot evaluate it"):
        ingest(world.spark, world.definition())
