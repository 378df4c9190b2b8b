"""The topics of a publish: created, warned of, and with records that were lost."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from bridge.definition import Definition, TopicCreation
from bridge.embedded.broker import Broker
from bridge.metrics import BatchReport
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.operations.status import status
from bridge.pipelines.publish.run import publish
from bridge.pipelines.resync.table_to_topic import resync
from tests.pipelines.world import World, key, value


def test_lost_records_are_reported_until_a_resync(
    spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]
) -> None:
    """`none` continues after a record that the broker refuses, and counts it: in the batch's report, the run's summary
    and the status, also after a later batch without losses."""
    world = World.make(spark, broker, lake, unique, options={"sink.delivery-guarantee": "none"})
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
    spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]
) -> None:
    world = World.make(spark, broker, lake, unique)
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
