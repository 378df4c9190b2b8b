"""What a publish does about the topics it writes to before it writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from bridge.definition import Definition, TopicCreation
from bridge.kafka.broker import Broker
from bridge.metrics import BatchReport
from bridge.pipelines.ingest import ingest
from bridge.pipelines.publish import publish
from tests.pipelines.world import World


def test_topics_are_created_and_odd_ones_are_told(
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
