"""A resync of topics that no longer have all records, or never had them."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from bridge.embedded.broker import Broker
from bridge.errors import DefinitionError, GapError
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.resync.topic_to_table import resync
from tests.pipelines.world import World, upsert

Make = Callable[..., World]
ONE = Decimal("1.00")


@pytest.fixture
def make(spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]) -> Make:
    return lambda **more: World.make(spark, broker, lake, unique, **more)


def test_a_topic_created_anew_takes_the_table_over(make: Make) -> None:
    """With more records than the saved offset: only the topic's id shows it."""
    world = make(partitions=1)
    world.send([upsert(1, "a"), upsert(2, "b")])
    ingest(world.spark, world.definition())
    world.recreate_topic()
    world.send([upsert(2, "b"), upsert(3, "c"), upsert(4, "d"), upsert(4, "e")])
    with pytest.raises(GapError, match=r"deleted and created anew.*run `bridge resync FILE`"):
        ingest(world.spark, world.definition())
    done = resync(world.spark, world.definition())
    assert (done.inserted, done.updated, done.deleted, done.unchanged) == (2, 0, 1, 1)
    assert world.rows() == [(2, "b", ONE), (3, "c", ONE), (4, "e", ONE)]
    world.send([upsert(5, "f")])
    assert ingest(world.spark, world.definition()).records_in == 1
    assert verify(world.spark, world.definition()).equal


def expire(world: World, upto: int) -> None:
    admin = AdminClient({"bootstrap.servers": world.broker.bootstrap})
    place = TopicPartition(world.topic, 0, upto)
    admin.delete_records([place])[place].result(30)


def test_rows_whose_records_may_have_expired_are_for_the_user_to_decide(make: Make) -> None:
    world = make(partitions=1, cleanup="delete")
    world.send([upsert(1, "a"), upsert(2, "b"), upsert(2, "c"), upsert(3, "d")])
    ingest(world.spark, world.definition())
    world.send([upsert(4, "lost"), upsert(3, "e")])
    expire(world, 5)
    with pytest.raises(GapError, match=r"begins at 5: 1 offsets have expired; run `bridge resync FILE`"):
        ingest(world.spark, world.definition())
    version = world.history()[0]["version"]
    with pytest.raises(DefinitionError, match=rf"{world.topic}-0 at 5.*--missing delete .*--missing keep"):
        resync(world.spark, world.definition())
    assert world.history()[0]["version"] == version
    done = resync(world.spark, world.definition(), missing="keep")
    assert (done.updated, done.kept, done.deleted) == (1, 2, 0)
    assert world.rows() == [(1, "a", ONE), (2, "c", ONE), (3, "e", ONE)]
    assert ingest(world.spark, world.definition()).records_in == 0
    assert resync(world.spark, world.definition(), missing="delete").deleted == 2
    assert world.rows() == [(3, "e", ONE)]


@pytest.mark.parametrize(
    ("more", "sections", "words"),
    [
        (
            {"options": {"connector": "kafka", "key.format": None}, "columns": "id BIGINT, name STRING"},
            "",
            "no PRIMARY KEY.*move it away",
        ),
        (
            {
                "options": {
                    "connector": "kafka",
                    "value.format": "debezium-json",
                    "key.format": None,
                    "scan.startup.mode": "latest-offset",
                }
            },
            "",
            "'scan.startup.mode' is 'latest-offset'.*RESTORE",
        ),
        ({}, "ingest: {base: existing}\n", "ingest.base is existing"),
    ],
    ids=["no key", "a later start", "an existing base"],
)
def test_tables_with_rows_from_elsewhere_are_not_resynced(
    spark: SparkSession, broker: Broker, lake: Path, more: dict[str, Any], sections: str, words: str
) -> None:
    world = World(spark, broker, lake, "nowhere", sections=sections, **more)
    with pytest.raises(DefinitionError, match=words):
        resync(spark, world.definition())
