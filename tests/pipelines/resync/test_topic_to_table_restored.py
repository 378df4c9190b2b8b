"""Another writer restores the table while a resync compares it with its topic."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from bridge import failpoints
from bridge.delta.rows_taken_back import RowsTakenBack
from bridge.embedded.broker import Broker
from bridge.kafka.offset_availability import check_offsets_available
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.publish.run import publish
from bridge.pipelines.resync import table_to_topic, topic_to_table
from tests.pipelines.world import World, upsert

ONE = Decimal("1.00")


@pytest.fixture
def world(spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]) -> World:
    """The rows of two batches: versions 1 and 2."""
    made = World.make(spark, broker, lake, unique, partitions=1)
    for id in (1, 2):
        made.send([upsert(id, "a")])
        ingest(spark, made.definition())
    return made


def restore(world: World, version: int) -> None:
    DeltaTable(str(world.folder / "table")).restore(version, protocol_downgrade_allowed=True)


@pytest.mark.slow
@pytest.mark.parametrize("damaged", [True, False])
def test_nothing_is_written_after_a_restore(
    world: World, monkeypatch: pytest.MonkeyPatch, damaged: bool
) -> None:
    """Also where the restored version has the offsets to which the resync has compared, and nothing differed then."""
    place = f"delta.`{world.folder}/table`"
    world.spark.sql(f"UPDATE {place} SET name = 'wrong' WHERE id = 1")
    if not damaged:
        world.spark.sql(f"UPDATE {place} SET name = 'a' WHERE id = 1")

    def checked(*given: Any) -> None:
        check_offsets_available(*given)
        restore(world, 1 if damaged else 3)

    with monkeypatch.context() as patched:
        patched.setattr("bridge.pipelines.resync.topic_to_table.check_offsets_available", checked)
        with pytest.raises(
            RowsTakenBack,
            match=r"\(RESTORE\) took rows back or .* while this run was at work; start it again: it continues",
        ):
            topic_to_table.resync(world.spark, world.definition())
    assert world.history()[0]["operation"] == "RESTORE"
    done = topic_to_table.resync(world.spark, world.definition())
    assert (done.inserted, done.updated) == ((1, 0) if damaged else (0, 1))
    assert world.rows() == [(1, "a", ONE), (2, "a", ONE)]


@pytest.mark.slow
def test_what_a_restore_changes_is_published_after_a_resync_of_the_topic(
    world: World, unique: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The resync sends the version that it has read; the next publish goes on from there."""
    spark, pending, hit = world.spark, [1], failpoints.hit
    out = World(spark, world.broker, world.folder, unique("out"))
    world.broker.create_topic(out.topic, partitions=1)
    definition = out.definition("out", {"checkpoint": "out"})

    def restored(name: str) -> None:
        hit(name)
        if name == "resync.opened" and pending:
            restore(world, pending.pop())

    with monkeypatch.context() as patched:
        patched.setattr(failpoints, "hit", restored)
        assert table_to_topic.resync(spark, definition).inserted == 2
    assert len(out.received()) == 2
    publish(spark, definition)
    assert out.received()[2:] == [(b'{"id":2}', None)]
    assert verify(spark, definition, direction="publish").equal
