"""Exhausted resources: the run stops with the location and without partial state, and the next run continues."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from bridge.embedded.broker import Broker
from bridge.errors import BridgeError, KafkaError
from bridge.metrics import BatchReport
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.publish.run import publish
from tests.faults.disks import Disk, mounted
from tests.pipelines.world import World, key, upsert

MB = 1 << 20


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with mounted(tmp_path / "disk", 24) as made:
        yield made


@pytest.fixture
def world(spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]) -> World:
    return World.make(spark, broker, lake, unique, partitions=1)


def names(world: World) -> dict[int, str]:
    return {row[0]: row[1] for row in world.rows()}


def noise(draw: random.Random, bytes: int) -> str:
    """Text that hardly compresses."""
    return draw.randbytes(bytes // 2).hex()


def test_the_disk_of_the_table_is_full(world: World, disk: Disk) -> None:
    (world.folder / "table").symlink_to(disk.folder)
    world.send([upsert(1, "a")])
    ingest(world.spark, world.definition())
    disk.fill(leave=MB)
    draw = random.Random(7)
    large = {n: noise(draw, 500_000) for n in range(10)}
    world.send([upsert(n, name) for n, name in large.items()])
    with pytest.raises(BridgeError) as stopped:
        ingest(world.spark, world.definition())
    assert str(stopped.value) == (
        f"'orders': batch 1 ({world.topic}-0 offsets 1 to 10) failed, as there is no space left on the device: "
        f"delta.path {world.folder}/table. All commits are complete; free some space, then start it "
        "again: it continues there"
    )
    assert names(world) == {1: "a"}
    disk.free()
    assert ingest(world.spark, world.definition()).records_in == 10
    assert names(world) == large


@pytest.mark.slow
def test_the_disk_of_the_checkpoint_is_full(world: World, disk: Disk) -> None:
    """Spark's reader writes to it at each batch; consumers write only the lease."""
    world.sections = "ingest: {reader: spark}\n"
    run: dict[str, object] = {"checkpoint": disk.folder / "checkpoint"}
    disk.fill()
    world.send([upsert(1, "a")])
    with pytest.raises(BridgeError, match=r"run.checkpoint: .* cannot be written: .*No space left on device"):
        ingest(world.spark, world.definition(run=run))
    disk.free()

    def fill(report: BatchReport) -> None:
        disk.fill()
        world.send([upsert(2, "b")])

    definition = world.definition(run={**run, "trigger": "200 ms"})
    with pytest.raises(BridgeError) as stopped:
        ingest(world.spark, definition, listener=fill)
    assert "no space left on the device: run.checkpoint" in str(stopped.value)
    disk.free()
    ingest(world.spark, world.definition(run=run))
    assert names(world) == {1: "a", 2: "b"}


@pytest.mark.slow
@pytest.mark.parametrize("guarantee", ["at-least-once", "exactly-once"])
def test_the_disk_of_the_broker_is_full(
    spark: SparkSession, lake: Path, tmp_path: Path, unique: Callable[[str], str], guarantee: str
) -> None:
    """Kafka shuts down when its only log folder fails. Unacknowledged records do not count as sent."""
    draw = random.Random(7)
    large = {n: noise(draw, 500_000) for n in range(40)}
    rows = [(n, name, None) for n, name in large.items()]
    frame = spark.createDataFrame(rows, "id bigint, name string, amount decimal(10, 2)")
    frame.write.format("delta").option("delta.enableChangeDataFeed", "true").save(str(lake / "table"))
    with mounted(tmp_path / "disk", 96) as disk, Broker(disk.folder / "broker") as own:
        world = World.make(spark, own, lake, unique, partitions=1)
        world.options = {
            "properties.delivery.timeout.ms": "10000",
            "properties.request.timeout.ms": "5000",
            "sink.delivery-guarantee": guarantee,
            "sink.transactional-id-prefix": "full" if guarantee == "exactly-once" else None,
        }
        disk.fill(leave=6 * MB)
        with pytest.raises(KafkaError) as stopped:
            publish(spark, world.definition())
        said = str(stopped.value)
        assert world.topic in said and "(versions 0 to 0 of table" in said, said
        assert guarantee == "at-least-once" or "could be sent for 120 s" in said, said
        disk.free()
        own.stop()
        own.start()
        assert publish(spark, world.definition()).records_out >= 1
        received = world.received()
        told = {json.loads(k or b"")["id"]: json.loads(v or b"")["name"] for k, v in received}
        assert told == large
        assert guarantee == "at-least-once" or len(received) == len(large)


def test_a_batch_that_fails_each_time_ends_the_run_with_its_offsets(world: World) -> None:
    world.spark.sql("CREATE OR REPLACE TEMPORARY FUNCTION share_of(x BIGINT) RETURNS BIGINT RETURN 10 DIV x")
    world.columns = "id BIGINT, name STRING, share AS share_of(id), PRIMARY KEY (id) NOT ENFORCED"
    world.send([(key(n), json.dumps({"id": n, "name": "secret"})) for n in (1, 2, 0, 3)])
    with pytest.raises(BridgeError) as stopped:
        ingest(world.spark, world.definition())
    said = str(stopped.value)
    assert said.startswith(f"'orders': batch 0 ({world.topic}-0 offsets 0 to 3) failed: ")
    assert "DIVIDE_BY_ZERO" in said and "`run.max-offsets-per-batch`" in said and "secret" not in said
    assert world.rows() == []


def _send_large(world: World, records: list[tuple[Any, Any]]) -> None:
    producer = Producer({"bootstrap.servers": world.broker.bootstrap, "message.max.bytes": 40 * MB})
    for k, v in records:
        producer.produce(world.topic, key=k, value=v)
    assert producer.flush(60) == 0


@pytest.mark.slow
def test_a_record_and_a_key_of_ten_megabytes(
    spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]
) -> None:
    topic = unique("large")
    limits = {"max.message.bytes": str(40 * MB), "cleanup.policy": "compact"}
    broker.create_topic(topic, partitions=1, config=limits)
    columns = "id STRING, name STRING, PRIMARY KEY (id) NOT ENFORCED"
    world = World(spark, broker, lake, topic, columns=columns)
    large = "x" * (10 * MB)
    told = {"value": ("1", large), "key": (large, "b")}
    _send_large(world, [(f'{{"id":"{k}"}}', json.dumps({"id": k, "name": v})) for k, v in told.values()])
    assert ingest(spark, world.definition()).inserted == 2
    assert {(row[0], row[1]) for row in world.rows()} == set(told.values())
    world.topic = unique("small")
    broker.create_topic(world.topic, partitions=1, config={"cleanup.policy": "compact"})
    with pytest.raises(KafkaError) as refused:
        publish(spark, world.definition("out", run={"checkpoint": "out"}))
    said = str(refused.value)
    assert "key's SHA-256 begins " in said and "(versions 1 to 1 of table" in said and len(said) < 600
    assert "raise 'properties.max.request.size' and the topic's max.message.bytes" in said
    assert world.received() == []
    world.topic = unique("as-large")
    broker.create_topic(world.topic, partitions=1, config=limits)
    world.options = {"properties.max.request.size": str(40 * MB)}
    # A range was opened for the first topic, so a checkpoint of its own is needed for another one.
    assert publish(spark, world.definition("out", run={"checkpoint": "out-large"})).records_out == 2
