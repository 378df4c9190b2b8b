"""Lags that near a retention time are reported with numbers and the way out, once per level."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.embedded.broker import Broker
from bridge.kafka import admin
from bridge.offsets import Offsets
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.operations.status import status
from bridge.pipelines.publish.run import publish
from bridge.pipelines.runtime.preflight import open_whole_table
from bridge.pipelines.runtime.retention_warnings import TopicRetention, log_retention_warning
from tests.delta.tables import made
from tests.kafka.topics import Fresh
from tests.pipelines.world import Make, World, upsert

DAY = 86_400.0


@pytest.mark.parametrize(("days", "fraction"), [(14.9, None), (15.1, "50%"), (24, "80%"), (31, "103%")])
def test_the_log_s_retention(spark: SparkSession, lake: Path, days: float, fraction: str | None) -> None:
    table = replace(made(spark, lake / "t"), properties={})
    warning = log_retention_warning(table, "publish 'p'", days * DAY)
    assert (warning is None) == (fraction is None)
    if warning is not None:
        assert f"{fraction} of delta.logRetentionDuration (30 d 0 h) of table {lake}/t: after that" in warning


@pytest.mark.slow
def test_a_publish_says_that_the_log_s_end_is_near(make: Make, spark: SparkSession, lake: Path) -> None:
    world = make()
    world.send([upsert(1, "a")])
    ingest(spark, world.definition())
    publish(spark, world.definition("out", run={"checkpoint": "out"}))
    world.send([upsert(2, "b")])
    ingest(spark, world.definition())
    old = time.time() - 25 * DAY
    for version in (1, 2):
        os.utime(lake / "table" / "_delta_log" / f"{version:020}.json", (old, old))
    late = status(spark, world.definition()).warning
    assert late and late.startswith("publish 'out' has been behind for 25 d 0 h, 83% of delta.logRetention")
    summary = publish(spark, world.definition("out", run={"checkpoint": "out"}))
    assert summary.warning and summary.warning.count("has been behind for 25 d 0 h, 83% of") == 1
    assert publish(spark, world.definition("out", run={"checkpoint": "out"})).warning is None


def _lag(world: World, age_days: float = 365.0) -> Callable[[Offsets], str | None]:
    topic = world.definition().topic
    table = open_whole_table(world.spark, world.definition())
    table = replace(table, created_ms=int((time.time() - age_days * DAY) * 1000))
    lag = TopicRetention(topic, table)
    end = admin.describe(topic).end
    return lambda position: lag.warning(position, end)


def test_a_topic_s_retention(make: Make, spark: SparkSession) -> None:
    world = make(partitions=2)
    ingest(spark, world.definition())
    now = time.time()
    hours = (30, 20, 13, 1)
    for id, old in enumerate(hours):
        world.send([upsert(id, "x")], partition=0, timestamp=int((now - old * 3600) * 1000))

    def at(first: int) -> Offsets:
        return Offsets({(world.topic, 0): first, (world.topic, 1): 0})

    warning = _lag(world)
    assert warning(at(4)) is None and warning(at(3)) is None
    half = warning(at(2))
    assert half and half.startswith(
        f"topic '{world.topic}': in 1 of its partitions records older than 12 h 0 min are not applied yet, 50% of "
        "delete.retention.ms = 86400000: after that Kafka removes tombstones"
    )
    assert warning(at(2)) is None  # reported already
    more = warning(at(1))
    assert more and "older than 19 h 12 min are not applied yet, 80% of" in more
    gone = warning(at(0))
    assert gone and "100% of" in gone and "`bridge resync` deletes them" in gone
    # A reader that has just begun meets old records, and can have missed no delete.
    assert _lag(world, age_days=0.4)(at(0)) is None
    summary = ingest(spark, world.definition())
    assert summary.records_in == 4 and summary.warning is None


def test_a_topic_that_deletes_old_records(
    spark: SparkSession, fresh: Fresh, broker: Broker, lake: Path
) -> None:
    topic = fresh("topic", partitions=1, config={"cleanup.policy": "delete", "retention.ms": "604800000"})
    world = World(spark, broker, lake, topic)
    ingest(spark, world.definition())
    world.send([upsert(1, "x")], timestamp=int((time.time() - 6 * DAY) * 1000))
    late = _lag(world)(Offsets({(world.topic, 0): 0}))
    assert late and "older than 5 d 14 h are not applied yet, 80% of retention.ms = 604800000" in late
    assert "after that Kafka deletes records that were not read" in late
