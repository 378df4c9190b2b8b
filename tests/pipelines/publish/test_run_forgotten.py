"""Exactly-once where Kafka has lost the progress of a publish: nothing is sent twice, and what is unknown is a gap."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from bridge.embedded.broker import Broker
from bridge.errors import GapError
from bridge.pipelines.publish.run import publish
from bridge.pipelines.resync.table_to_topic import resync
from tests.ledger import committed
from tests.pipelines.processes import Arm, Prepare, prepared
from tests.pipelines.world import World

pytestmark = pytest.mark.usefixtures("small_arrow_batches")


def forget(world: World, more: str = "") -> None:
    """Delete the groups of a prefix, as Kafka does after offsets.retention.minutes."""
    admin = AdminClient({"bootstrap.servers": world.broker.bootstrap})
    prefix = f"{world.options['sink.transactional-id-prefix']}{more}"
    groups = [
        g.group_id for g in admin.list_consumer_groups().result(10).valid if g.group_id.startswith(prefix)
    ]
    for future in admin.delete_consumer_groups(groups).values():
        future.result(10)


@pytest.mark.slow
def test_kafka_forgets_a_finished_publish(prepare: Prepare) -> None:
    world, ledger = prepare()
    ledger.insert(range(10), "a")
    publish(world.spark, world.definition())
    forget(world)
    ledger.update(range(5), "b")
    publish(world.spark, world.definition())
    ledger.check(world.broker.bootstrap, world.topic)


def test_kafka_forgets_a_publish_that_was_under_way(prepare: Prepare, arm: Arm) -> None:
    world, ledger = prepare()
    ledger.insert(range(10), "a")
    publish(world.spark, world.definition())
    ledger.update(range(10), "b")
    arm("publish.opened", "raise")
    with pytest.raises(RuntimeError, match="failpoint"):
        publish(world.spark, world.definition())
    forget(world)
    with pytest.raises(
        GapError, match=r"versions 2 to 2 were under way: what of them was sent is not known;"
    ):
        publish(world.spark, world.definition())


def die(world: World, arm: Arm, place: str) -> None:
    """A run that ends in the middle of a range. Its other tasks have ended, too: they meet no later failpoint."""
    hit = arm(place, "kill")
    with pytest.raises(Exception, match=r"crashed|exited unexpectedly"):
        publish(world.spark, world.definition())
    assert hit.exists()
    context = world.spark.sparkContext._jsc.sc()
    while any(executor.numRunningTasks() for executor in context.statusTracker().getExecutorInfos()):
        time.sleep(0.05)


def test_kafka_forgets_shards_of_a_publish_that_was_under_way(prepare: Prepare, arm: Arm) -> None:
    """But not the control id's group, which each later run writes again. What the shards sent is not sent again; a
    resync compares the topic with the table."""
    world, ledger = prepare()
    ledger.insert(range(100), "a")
    die(world, arm, "shard.after-commit")
    assert 0 < len(committed(world.broker.bootstrap, world.topic)) < 100
    forget(world, "-")
    for _ in range(2):
        with pytest.raises(GapError, match=r"has no cursor for the range from version 1 on"):
            publish(world.spark, world.definition())
    assert resync(world.spark, world.definition()).inserted > 0
    ledger.check(world.broker.bootstrap, world.topic)
    ledger.update(range(50), "b")
    publish(world.spark, world.definition())
    ledger.check(world.broker.bootstrap, world.topic)


@pytest.mark.slow
def test_shards_that_have_sent_nothing_yet(prepare: Prepare, arm: Arm) -> None:
    """A run that opened a range and died has written a cursor for each shard, also where an earlier run had fewer
    shards. Cursors of shards without a row in the range are not read."""
    world, ledger = prepare()
    ledger.insert(range(3), "a")
    publish(world.spark, world.definition())
    world.options = {**world.options, "sink.parallelism": "6"}
    for place in ("publish.logged", "publish.opened"):
        ledger.update(range(1), place)
        hit = arm(place, "raise")
        with pytest.raises(RuntimeError, match="failpoint"):
            publish(world.spark, world.definition())
        assert hit.exists()
    ledger.update(range(3), "c")
    publish(world.spark, world.definition())
    ledger.check(world.broker.bootstrap, world.topic)


@pytest.mark.slow
def test_a_broker_that_forgets_after_a_minute(
    spark: SparkSession, lake: Path, tmp_path: Path, unique: Callable[[str], str], arm: Arm
) -> None:
    """A publish is restarted again and again and dies before its shards send: the control id's group is written each
    time, those of shards that had sent are not."""
    forgetful = {"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "500"}
    with Broker(tmp_path / "broker", settings=forgetful) as broker:
        world, ledger = prepared(spark, broker, lake, unique)
        ledger.insert(range(100), "a")
        die(world, arm, "shard.after-commit")
        since = time.monotonic()
        while time.monotonic() - since < 45:  # the broker has not forgotten yet
            die(world, arm, "shard.opened")
        time.sleep(max(0.0, since + 75 - time.monotonic()))
        with pytest.raises(GapError, match="has no cursor for the range"):
            publish(world.spark, world.definition())
        resync(world.spark, world.definition())
        ledger.check(broker.bootstrap, world.topic)
