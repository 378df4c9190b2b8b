"""Verify proves equality at fixed positions, and names what is not equal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.errors import DefinitionError
from bridge.kafka.broker import Broker
from bridge.pipelines.ingest import ingest
from bridge.pipelines.publish import publish
from bridge.pipelines.status import status
from bridge.pipelines.verify import verify
from tests.pipelines.world import World, tombstone, upsert


@pytest.fixture
def world(spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]) -> World:
    made = World.make(spark, broker, lake, unique)
    made.send([upsert(n, f"n{n}") for n in range(20)] + [tombstone(3), upsert(4, "changed")])
    ingest(spark, made.definition())
    return made


def test_topic_table_and_published_topic_are_equal(world: World, unique: Callable[[str], str]) -> None:
    out = unique("out")
    world.broker.create_topic(out, partitions=2)
    incoming = world.definition()
    world.topic = out
    outgoing = world.definition("out", {"checkpoint": "checkpoint-out"})
    publish(world.spark, outgoing)
    first, second = verify(world.spark, incoming), verify(world.spark, outgoing)
    assert (first.direction, second.direction) == ("ingest", "publish")
    assert first.equal and second.equal
    assert first.comparison.table_rows == 19
    assert first.comparison.table_checksum == second.comparison.topic_checksum


def test_records_after_the_last_batch_do_not_disturb(world: World) -> None:
    world.send([upsert(4, "later"), upsert(100, "later")])
    proof = verify(world.spark, world.definition())
    assert proof.equal and proof.comparison.topic_rows == 19
    found = status(world.spark, world.definition())
    assert found.pending_records == 2 and found.ingest_batch == 0


def test_a_change_behind_the_bridges_back_is_named_by_key(world: World) -> None:
    path = f"delta.`{world.folder}/table`"
    world.spark.sql(f"UPDATE {path} SET name = 'tampered' WHERE id = 7")
    world.spark.sql(f"DELETE FROM {path} WHERE id = 8")
    world.spark.sql(f"INSERT INTO {path} VALUES (500, 'foreign', 1)")
    world.send([upsert(1, "n1")])
    ingest(world.spark, world.definition())
    found = verify(world.spark, world.definition()).comparison
    assert (found.missing_in_table, found.missing_in_topic, found.different) == (1, 1, 1)
    assert set(found.examples) == {'{"id":7}', '{"id":8}', '{"id":500}'}


def test_a_pipeline_that_has_not_run_has_nothing_to_verify(world: World) -> None:
    with pytest.raises(DefinitionError, match="neither ingested nor published"):
        verify(world.spark, world.definition("fresh"))
