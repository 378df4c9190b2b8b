"""Verify proves equality at fixed positions, and names what is not equal."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from bridge.errors import DefinitionError
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.operations.status import status
from bridge.pipelines.publish.run import publish
from tests.pipelines.world import Make, World, key, tombstone, upsert


@pytest.fixture
def world(make: Make, spark: SparkSession) -> World:
    made = make()
    made.send([upsert(n, f"n{n}") for n in range(20)] + [tombstone(3), upsert(4, "changed")])
    ingest(spark, made.definition())
    return made


@pytest.mark.versions
def test_topic_table_and_published_topic_are_equal(world: World, unique: Callable[[str], str]) -> None:
    out = unique("out")
    world.broker.create_topic(out, partitions=2)
    incoming = world.definition()
    # Without a guarantee a publish does not repair foreign writes (see test_foreign_writes.py).
    world.topic, world.options = out, {"sink.delivery-guarantee": "none"}
    outgoing = world.definition("out", {"checkpoint": "checkpoint-out"})
    publish(world.spark, outgoing)
    first, second = verify(world.spark, incoming), verify(world.spark, outgoing)
    assert (first.direction, second.direction) == ("ingest", "publish")
    assert first.equal and second.equal
    assert first.comparison.table_rows == 19
    assert first.comparison.table_checksum == second.comparison.topic_checksum

    # Both sides change: neither the new records nor the new version belong to the published version.
    world.send([upsert(1, "foreign"), tombstone(2)])
    world.spark.sql(f"DELETE FROM delta.`{world.folder}/table` WHERE id = 5")
    third = verify(world.spark, outgoing)
    assert third.equal and third.offsets == second.offsets
    publish(world.spark, outgoing)
    found = verify(world.spark, outgoing).comparison
    assert (found.different, found.missing_in_topic, found.missing_in_table) == (1, 1, 0)


@pytest.mark.slow
def test_records_after_the_last_batch_do_not_disturb(world: World) -> None:
    world.send([upsert(4, "later"), upsert(100, "later")])
    settings = {"bootstrap.servers": world.broker.bootstrap, "transactional.id": world.topic, "log_level": 0}
    producer = Producer(settings)
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(world.topic, b"x", key(5))
    assert producer.flush(20) == 0
    assert verify(world.spark, world.definition()).equal
    producer.abort_transaction(20)
    proof = verify(world.spark, world.definition())
    assert proof.equal and proof.comparison.topic_rows == 19
    found = status(world.spark, world.definition())
    assert found.pending_records is not None and found.pending_records >= 2  # and what the transaction left
    assert found.ingest_batch == 0


def test_a_change_behind_the_bridges_back_is_named_by_key(world: World) -> None:
    path = f"delta.`{world.folder}/table`"
    world.spark.sql(f"UPDATE {path} SET name = 'tampered' WHERE id = 7")
    world.spark.sql(f"DELETE FROM {path} WHERE id = 8")
    world.spark.sql(f"INSERT INTO {path} VALUES (500, 'foreign', 1)")
    seen = verify(world.spark, world.definition()).comparison
    world.send([upsert(1, "n1")])
    ingest(world.spark, world.definition())
    found = verify(world.spark, world.definition(), show_values=True).comparison
    assert (found.missing_in_table, found.missing_in_topic, found.different) == (1, 1, 1)
    assert (seen.missing_in_table, seen.missing_in_topic, seen.different) == (1, 1, 1)
    assert [(e.key, e.why) for e in found.examples] == [
        ('{"id":7}', "different"),
        ('{"id":8}', "missing_in_table"),
        ('{"id":500}', "missing_in_topic"),
    ]
    changed, gone, foreign = found.examples
    assert changed.topic_row == '{"id":7,"name":"n7","amount":1.00}'
    assert changed.table_row == '{"id":7,"name":"tampered","amount":1.00}'
    assert changed.topic_position and changed.topic_position.startswith(f"{world.topic}-")
    assert (gone.table_row, foreign.topic_row, foreign.topic_position) == (None, None, None)
    assert all(e.topic_row is None and e.table_row is None for e in seen.examples)
    assert 1 <= len(found.buckets) <= 3


def test_a_pipeline_that_has_not_run_has_nothing_to_verify(world: World) -> None:
    with pytest.raises(DefinitionError, match="neither ingested nor published"):
        verify(world.spark, world.definition("fresh"))
