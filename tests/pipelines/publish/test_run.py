"""Publish: what reaches the topic, in which order, and where the next run continues.

At-least-once when a publish is stopped, taken over and resumed: what it then sends is stale, and is repaired.

What a publish does when sending a range fails.

A gate judges the rows of a range alike, whether the driver or tasks send it.

The topics of a publish: created, warned of, and with records that were lost.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from bridge.definition import Definition, DeliveryGuarantee, TopicCreation
from bridge.embedded.broker import Broker
from bridge.errors import ConcurrentRunError, GapError, KafkaError, OptionError, QualityError, TableError
from bridge.kafka.records import SendCounts
from bridge.metrics import BatchReport
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.operations.status import status
from bridge.pipelines.publish.run import produce_range, publish
from bridge.pipelines.resync.table_to_topic import resync
from bridge.publish_progress import PublishRange
from bridge.rows import Change, RowKind, replay
from tests.ledger import Ledger, committed
from tests.pipelines.processes import Run
from tests.pipelines.world import Make, World, key, making, tombstone, upsert, value

make = making(with_table=True)


def folded(world: World) -> dict[object, object]:
    """The topic's fold by the oracle."""
    changes = []
    for sent_key, sent_value in world.received():
        assert sent_key is not None
        row = None if sent_value is None else json.loads(sent_value)
        kind = RowKind.DELETE if sent_value is None else RowKind.UPDATE_AFTER
        changes.append(Change(kind, json.loads(sent_key)["id"], row))
    return dict(replay(changes))


def table(world: World) -> dict[object, object]:
    return {
        row["id"]: {"id": row["id"], "name": row["name"], "amount": float(row["amount"])}
        for row in world.table().collect()
    }


def test_a_snapshot_and_then_every_change(make: Make) -> None:
    world = make()
    world.sql("INSERT INTO t VALUES (1, 'a', 1.5), (2, 'b', 2.5)")
    first = publish(world.spark, world.definition())
    assert (first.records_out, first.tombstones) == (2, 0)
    assert folded(world) == table(world)

    world.sql("UPDATE t SET name = 'a2' WHERE id = 1")
    world.sql("DELETE FROM t WHERE id = 2")
    world.sql("INSERT INTO t VALUES (3, 'c', 3.5)")
    second = publish(world.spark, world.definition())
    assert (second.records_out, second.tombstones) == (3, 1)
    assert folded(world) == table(world) and set(table(world)) == {1, 3}

    nothing = publish(world.spark, world.definition())
    assert nothing.batches == 0 and len(world.received()) == 5


def test_a_range_without_changes_sends_nothing_and_moves_on(make: Make) -> None:
    """An empty snapshot, then commits that change no rows: Spark may plan such a read away altogether."""
    world = make()
    empty = publish(world.spark, world.definition())
    assert (empty.batches, empty.records_out) == (1, 0)
    world.sql("ALTER TABLE t SET TBLPROPERTIES ('note'='x')")
    moved = publish(world.spark, world.definition())
    assert (moved.records_out, moved.version) == (0, 1)
    assert world.received() == []


def test_every_commit_gives_its_own_record_in_order(make: Make) -> None:
    world = make(partitions=2)
    for n in range(5):
        world.sql(f"INSERT INTO t VALUES ({n}, 'v0', 0)")
    for version in range(1, 4):
        world.sql(f"UPDATE t SET name = 'v{version}' WHERE id < 3")
    world.sections = "publish: {start: 'version:1'}\n"
    publish(world.spark, world.definition())
    seen: dict[int, list[str]] = {}
    for sent_key, sent_value in world.received():
        assert sent_key is not None and sent_value is not None
        seen.setdefault(json.loads(sent_key)["id"], []).append(json.loads(sent_value)["name"])
    assert seen == {n: ["v0", "v1", "v2", "v3"] if n < 3 else ["v0"] for n in range(5)}


def test_a_changed_primary_key_is_a_tombstone_and_an_upsert(make: Make) -> None:
    world = make()
    world.sql("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)")
    publish(world.spark, world.definition())
    world.sql("UPDATE t SET id = id + 10 WHERE id = 1")
    moved = publish(world.spark, world.definition())
    assert (moved.records_out, moved.tombstones) == (2, 1)
    assert set(folded(world)) == {2, 11}


@pytest.mark.slow
def test_keys_that_swap_places_in_one_commit(make: Make) -> None:
    world = make(partitions=1)
    world.sql("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)")
    publish(world.spark, world.definition())
    world.sql("UPDATE t SET id = 3 - id")
    swapped = publish(world.spark, world.definition())
    assert (swapped.records_out, swapped.tombstones) == (2, 0)
    assert folded(world) == table(world)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("start", "ids"),
    [
        ("latest", {4}),
        pytest.param("version:3", {3, 4}, marks=pytest.mark.slow),
        pytest.param("snapshot", {2, 3, 4}, marks=pytest.mark.slow),
        pytest.param("version:2", {2, 3, 4}, marks=pytest.mark.slow),
    ],
)
def test_where_the_first_run_starts(make: Make, start: str, ids: set[int]) -> None:
    world = make(sections=f"publish: {{start: '{start}'}}\n")
    for statement in ("(1, 'a', 1)", "(2, 'b', 1)", "(3, 'c', 1)"):
        world.sql(f"INSERT INTO t VALUES {statement}")
    world.sql("DELETE FROM t WHERE id = 1")
    publish(world.spark, world.definition())
    world.sql("INSERT INTO t VALUES (4, 'd', 1)")
    publish(world.spark, world.definition())
    assert set(folded(world)) == ids


@pytest.mark.slow
def test_a_key_goes_where_a_java_producer_would_send_it(make: Make) -> None:
    world = make(partitions=7)
    world.sql("INSERT INTO t SELECT id, 'x', 1 FROM range(50)")
    publish(world.spark, world.definition())
    jvm = world.spark._jvm
    assert jvm is not None
    partitioner = jvm.org.apache.kafka.clients.producer.internals.BuiltInPartitioner
    rows = world.spark.read.format("kafka").option("kafka.bootstrap.servers", world.broker.bootstrap)
    placed = rows.option("subscribe", world.topic).load().select("key", "partition").collect()
    assert len(placed) == 50
    assert all(row["partition"] == partitioner.partitionForKey(bytes(row["key"]), 7) for row in placed)


def test_a_table_without_change_feed_is_refused_with_the_way_out(make: Make) -> None:
    world = make()
    world.sql("ALTER TABLE t SET TBLPROPERTIES ('delta.enableChangeDataFeed'='false')")
    with pytest.raises(TableError, match=r"(?s)change data feed.*enableChangeDataFeed"):
        publish(world.spark, world.definition())
    assert world.received() == []


def test_a_replaced_table_is_refused(make: Make) -> None:
    world = make()
    world.sql("INSERT INTO t VALUES (1, 'a', 1)")
    publish(world.spark, world.definition())
    shutil.rmtree(world.folder / "table")
    world.create_table()
    with pytest.raises(GapError, match="table"):
        publish(world.spark, world.definition())


@pytest.mark.slow
def test_rows_without_a_key_are_appended_and_nothing_else(make: Make) -> None:
    options = {"connector": "kafka", "key.format": None}
    world = make(options=options, columns="id BIGINT, name STRING, amount DECIMAL(10, 2)", cleanup="delete")
    world.sql("INSERT INTO t VALUES (1, 'a', 1), (1, 'a', 1)")
    publish(world.spark, world.definition())
    world.sql("INSERT INTO t VALUES (2, NULL, NULL)")
    publish(world.spark, world.definition())
    sent = sorted(value for _, value in world.received() if value is not None)
    assert [key for key, _ in world.received()] == [None] * 3
    assert sent == [b'{"id":1,"name":"a","amount":1}'] * 2 + [b'{"id":2,"name":null,"amount":null}']
    world.sql("INSERT INTO t VALUES (3, 'x', 1)")
    world.sql("UPDATE t SET name = 'b' WHERE id = 2")
    refusal = (
        r"version 4 updates or deletes rows, and a 'kafka' table with an insert-only format doesn't support"
    )
    with pytest.raises(TableError, match=refusal):
        publish(world.spark, world.definition())
    assert len(world.received()) == 3


@pytest.mark.slow
def test_each_row_goes_to_the_topic_it_names(make: Make) -> None:
    world = make(columns="id BIGINT, t STRING METADATA FROM 'topic', PRIMARY KEY (id) NOT ENFORCED")
    other = f"{world.topic}-other"
    world.broker.create_topic(other)
    world.spark.sql(f"ALTER TABLE delta.`{world.folder}/table` ADD COLUMNS (t STRING)")
    world.sql(f"INSERT INTO t VALUES (1, 'a', 1, '{world.topic}'), (2, 'b', 1, '{other}')")
    listed = replace(world, options={"topic": f"{world.topic};{other}"})
    publish(world.spark, listed.definition())
    assert world.received() == [(b'{"id":1}', b'{"id":1}')]
    assert world.received(other) == [(b'{"id":2}', b'{"id":2}')]
    world.sql("INSERT INTO t VALUES (3, 'c', 1, 'elsewhere')")
    with pytest.raises(
        KafkaError, match=r"The topic of the sink record is not valid\. .* but was: elsewhere"
    ):
        publish(world.spark, listed.definition())


def test_several_topics_need_a_column_that_says_which(make: Make) -> None:
    world = make()
    with pytest.raises(
        OptionError, match="with a list of topics the 'topic' metadata column must be specified"
    ):
        publish(world.spark, replace(world, options={"topic": f"{world.topic};other"}).definition())


def test_a_snapshot_goes_on_in_the_chunk_where_it_was_stopped(
    make: Make, arm: Callable[[str, str], Path]
) -> None:
    world = make(sections="publish: {snapshot-chunk-rows: 10}\n")
    world.sql("INSERT INTO t SELECT id, 'x', 1 FROM range(60)")
    arm("publish.sent", "raise after 3")
    with pytest.raises(RuntimeError, match=r"failpoint publish\.sent"):
        publish(world.spark, world.definition())
    before = len(world.received())
    rest = publish(world.spark, world.definition())
    assert folded(world) == table(world) and len(table(world)) == 60
    assert rest.batches == 3 and before + rest.records_out == len(world.received())
    assert 60 < len(world.received()) < 90  # one chunk twice: at least once
    assert publish(world.spark, world.definition()).batches == 0


@pytest.mark.parametrize("encoder", ["auto", "spark"])
def test_a_text_that_is_not_utf_8_is_not_sent(make: Make, encoder: str) -> None:
    """By the driver, and by Spark."""
    world = make(sections=f"publish: {{start: snapshot, encoder: {encoder}}}\n")
    publish(world.spark, world.definition())
    world.sql("INSERT INTO t VALUES (1, CAST(X'61ff' AS STRING), 1.5)")
    with pytest.raises(TableError) as refused:
        publish(world.spark, world.definition())
    assert str(refused.value).startswith(
        f"'{world.definition().name}': sending versions 1 to 1 failed, table {world.folder}/table: column 'name' "
        "of a row holds a text that is not valid UTF-8, which format 'json' cannot carry"
    )
    assert world.received() == []


@pytest.mark.usefixtures("small_arrow_batches")
def test_a_zombie_wakes(make: Make, spark: SparkSession, lake: Path, tmp_path: Path) -> None:
    """Stopped with a block of a snapshot in hand; another run sends all of it, and newer versions. Then the first goes
    on: its block, the last of its task, lands behind them. (Blocks after it would not be sent.)"""
    world = make()
    ledger = Ledger(spark, f"{lake}/table")
    ledger.create()
    ledger.insert(range(5), "a")
    with Run(world, tmp_path) as zombie:
        hit = zombie.arm("sink.sending", "pause")
        zombie.until(hit)
        zombie.signal(signal.SIGSTOP)
        publish(spark, world.definition())
        ledger.update(range(5), "b")
        ledger.delete(range(3))
        publish(spark, world.definition())
        assert _folded(world) == _table(world)
        written = len(world.received())
        hit.unlink()
        zombie.signal(signal.SIGCONT)
        assert zombie.ended(60) == 1, zombie.output
        # The lease ends it, or the log, where the other run's entry is in the place of its own.
        assert re.search(r"another run has taken over|recorded in \S+ by another run", zombie.output), (
            zombie.output
        )
        zombie.alone(10)
    stale = len(world.received()) - written
    assert 0 < stale <= 5 and _folded(world) != _table(world)
    repaired = publish(spark, world.definition())
    assert _folded(world) == _table(world)
    assert repaired.warning is not None and f"{stale} records in {world.topic}-" in repaired.warning
    ledger.update(range(5), "c")
    last = publish(spark, world.definition())
    assert _folded(world) == _table(world) and last.warning is None


def _folded(world: World) -> dict[int, str]:
    records = committed(world.broker.bootstrap, world.topic)
    return {id: values[-1] for id, values in records.items() if values[-1] is not None}


def _table(world: World) -> dict[int, str]:
    return {row["id"]: row["name"] for row in world.table().collect()}


STOPPED = ConcurrentRunError("a task was stopped for 7 s")
SENT = SendCounts(records=3)


def produce(
    outcomes: Sequence[Exception | SendCounts],
    guarantee: DeliveryGuarantee = DeliveryGuarantee.AT_LEAST_ONCE,
    taken_over: bool = False,
) -> tuple[SendCounts, int]:
    """Send versions 4 to 5 with these outcomes; the result, and how many outcomes are left."""
    left = list(outcomes)

    def send() -> SendCounts:
        outcome = left.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def refresh() -> None:
        if taken_over:
            raise ConcurrentRunError("another run has taken over")

    stand_ins: Any = SimpleNamespace(refresh=refresh, sink=SimpleNamespace(delivery_guarantee=guarantee))
    done = produce_range(send, PublishRange(4, 5), lease=stand_ins, topic=stand_ins, table=stand_ins)
    return done, len(left)


def test_a_range_is_sent_once() -> None:
    assert produce([SENT, SENT]) == (SENT, 1)


def test_a_range_whose_task_was_stopped_is_sent_again() -> None:
    assert produce([STOPPED, SENT]) == (SENT, 0)


def test_it_is_not_sent_again_when_another_run_took_over() -> None:
    with pytest.raises(ConcurrentRunError, match="another run has taken over"):
        produce([STOPPED, SENT], taken_over=True)


def test_exactly_once_does_not_send_again() -> None:
    """A ConcurrentRunError is a fence there."""
    with pytest.raises(ConcurrentRunError, match="stopped for 7 s"):
        produce([STOPPED, SENT], DeliveryGuarantee.EXACTLY_ONCE)


def test_a_refusal_names_the_versions() -> None:
    with pytest.raises(KafkaError, match=r"refused \(versions 4 to 5 of table "):
        produce([KafkaError("refused")])


SUITE = {
    "name": "s",
    "expectations": [{"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "name"}}],
}


@pytest.mark.parametrize("action", ["warn", "fail"])
def test_the_driver_judges_as_tasks_do(
    make: Make, spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str], action: str
) -> None:
    into = make(partitions=1)
    into.send([upsert(1, "a"), upsert(2, "b")])
    ingest(spark, into.definition())
    (lake / "suite.json").write_text(json.dumps(SUITE))
    outs = []
    for encoder in ("auto", "spark"):
        broker.create_topic(topic := unique("out"))
        sections = f"quality: {{suite: suite.json, gate: {action}}}\npublish: {{encoder: {encoder}}}\n"
        outs.append(World(spark, broker, lake, topic, sections=sections))

    def publish_all() -> list[BatchReport]:
        reports: list[BatchReport] = []
        for number, out in enumerate(outs):
            run = {"checkpoint": f"out{number}"}
            publish(spark, out.definition(f"out{number}", run=run), listener=reports.append)
        return reports

    publish_all()
    into.send([(key(2), '{"id": 2}'), upsert(3, "c"), tombstone(1)])
    ingest(spark, into.definition())
    if action == "warn":
        mine, theirs = publish_all()
        assert (mine.sender, theirs.sender) == ("driver", "tasks (publish.encoder is spark)")
        assert (mine.unexpected_rows, theirs.unexpected_rows) == (1, 1)
        told = [
            str(report.warning).replace(out.topic, "")
            for report, out in zip((mine, theirs), outs, strict=True)
        ]
        assert told[0].replace("out0", "out1") == told[1]
    else:
        errors = []
        for number, out in enumerate(outs):
            with pytest.raises(QualityError, match=r'for example \{"id":2\}') as caught:
                publish(spark, out.definition(f"out{number}", run={"checkpoint": f"out{number}"}))
            errors.append(str(caught.value).replace("out0", "out1"))
        assert errors[0] == errors[1]
    received = [sorted(map(str, out.received())) for out in outs]
    assert received[0] == received[1] and len(received[0]) == (5 if action == "warn" else 2)


def test_lost_records_are_reported_until_a_resync(
    make: Make, spark: SparkSession, broker: Broker, unique: Callable[[str], str]
) -> None:
    """`none` continues after a record that the broker refuses, and counts it: in the batch's report, the run's summary
    and the status, also after a later batch without losses."""
    world = make(options={"sink.delivery-guarantee": "none"})
    ingested = world.topic
    noise = "".join(random.Random(7).choices("abcdefghijklmnopqrstuvwxyz", k=9000))
    world.send([(key(1), value(1, noise))])
    ingest(spark, world.definition())
    world.topic = unique("limited")
    broker.create_topic(world.topic, config={"max.message.bytes": "2000", "cleanup.policy": "compact"})
    out = world.definition("out", run={"checkpoint": "out"})
    reports: list[BatchReport] = []
    done = publish(spark, out, listener=reports.append)
    assert ([r.lost for r in reports], done.lost, done.records_out) == ([1], 1, 1)
    assert status(spark, out).lost_records == 1
    world.topic, limited = ingested, world.topic
    world.send([(key(1), value(1, "a"))])
    ingest(spark, world.definition())
    assert publish(spark, out).lost == 0
    assert world.received(limited) == [(key(1).encode(), value(1, "a", "1").encode())]
    assert status(spark, out).lost_records == 1
    assert resync(spark, out).updated == 0
    assert status(spark, out).lost_records is None


def test_topics_are_created_and_unusual_ones_give_a_warning(
    make: Make, spark: SparkSession, broker: Broker, unique: Callable[[str], str]
) -> None:
    world = make()
    world.send([('{"id":1}', '{"id":1,"name":"a","amount":1}')])
    ingest(spark, world.definition())
    new, old = unique("new"), unique("old")
    broker.create_topic(old)
    reports: list[BatchReport] = []

    def out(name: str, create: TopicCreation | None) -> Definition:
        world.topic = name
        made = world.definition(name, run={"checkpoint": name})
        return replace(made, topic=replace(made.topic, create=create))

    first = publish(spark, out(new, TopicCreation(5)), listener=reports.append)
    assert (
        len(AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(new).topics[new].partitions) == 5
    )
    assert (first.records_out, first.warning) == (1, None)
    assert world.received(new) == [(b'{"id":1}', b'{"id":1,"name":"a","amount":1}')]
    second = publish(spark, out(old, None), listener=reports.append)
    assert second.warning is not None and f"topic '{old}' is not compacted" in second.warning
    assert [report.warning for report in reports] == [None, second.warning]
