"""What `--missing keep` keeps where records have expired: no row that the topic says is gone, and every newer one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from bridge.embedded.broker import Broker
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.resync.topic_to_table import resync
from tests.pipelines.world import World

COLUMNS = "id BIGINT, name STRING, n BIGINT, PRIMARY KEY (id) NOT ENFORCED"
DEBEZIUM = {
    "connector": "kafka",
    "scan.startup.mode": "earliest-offset",
    "key.format": None,
    "value.format": "debezium-json",
}


@pytest.fixture
def make(
    spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]
) -> Callable[[str], World]:
    def made(delta: str) -> World:
        more = {"columns": COLUMNS, "options": DEBEZIUM, "delta": f"path: table, {delta}"}
        return World.make(spark, broker, lake, unique, cleanup="delete", partitions=1, **more)

    return made


def send(world: World, *events: dict[str, Any]) -> None:
    world.send([(None, json.dumps(event)) for event in events])


def put(id: int, name: str, n: int) -> dict[str, Any]:
    return {"before": None, "after": {"id": id, "name": name, "n": n}, "op": "c"}


def delete(id: int, n: int) -> dict[str, Any]:
    return {"before": {"id": id, "name": None, "n": n}, "after": None, "op": "d"}


def expire(world: World, upto: int) -> None:
    place = TopicPartition(world.topic, 0, upto)
    admin = AdminClient({"bootstrap.servers": world.broker.bootstrap})
    admin.delete_records([place])[place].result(30)


def test_a_row_that_is_newer_than_what_the_topic_has_stays(make: Callable[[str], World]) -> None:
    """By `sequence-by`: its record has expired, and late ones came after it."""
    world = make("sequence-by: n")
    send(world, put(1, "new", 9), put(2, "new", 9), put(3, "old", 1), put(4, "old", 1))
    ingest(world.spark, world.definition())
    send(world, put(5, "lost", 1))
    expire(world, 5)
    send(world, delete(1, 4), put(2, "late", 3), delete(3, 2), put(4, "newer", 2))
    done = resync(world.spark, world.definition(), missing="keep")
    assert world.rows() == [(1, "new", 9), (2, "new", 9), (4, "newer", 2)]
    assert (done.inserted, done.updated, done.deleted, done.kept) == (0, 1, 1, 2)
    assert resync(world.spark, world.definition(), missing="delete").deleted == 1
    assert world.rows() == [(2, "late", 3), (4, "newer", 2)]


@pytest.mark.slow
def test_no_row_from_before_a_truncate_stays(make: Callable[[str], World]) -> None:
    world = make("truncate: apply")
    send(world, put(1, "a", 1), put(2, "b", 2))
    ingest(world.spark, world.definition())
    send(world, put(3, "lost", 3))
    expire(world, 3)
    send(world, {"op": "t"}, put(2, "c", 4))
    done = resync(world.spark, world.definition(), missing="keep")
    assert (world.rows(), done.kept, done.deleted) == ([(2, "c", 4)], 0, 1)
