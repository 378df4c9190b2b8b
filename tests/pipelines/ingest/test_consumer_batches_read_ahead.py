from __future__ import annotations

import pytest

from bridge.errors import GapError
from bridge.kafka import admin
from bridge.offsets import Offsets
from bridge.pipelines.ingest.consumer_batches import ReadAhead
from bridge.pipelines.ingest.consumer_reader import ConsumerReader, LatestBatch
from bridge.pipelines.runtime.preflight import ingest_table
from tests.pipelines.world import Make, World, upsert


@pytest.fixture
def world(make: Make) -> World:
    return make(partitions=1)


def reader(world: World) -> ConsumerReader:
    definition = world.definition()
    return ConsumerReader(world.spark, definition, definition.topic, ingest_table(world.spark, definition))


def ids(batch: LatestBatch) -> list[int]:
    assert isinstance(batch, LatestBatch)
    return sorted(batch.changes["id"].to_pylist())


def test_each_batch_is_returned_once_whether_it_was_read_ahead_or_not(world: World) -> None:
    world.send([upsert(n, "x") for n in range(10)])
    at = [Offsets({(world.topic, 0): n}) for n in (0, 3, 6, 10)]
    with ReadAhead(reader(world)) as ahead:
        assert ids(ahead.read(at[0], at[1])) == [0, 1, 2]
        ahead.read_ahead(at[1], at[2])
        assert ahead.end_after(at[1]) == at[2] and ahead.end_after(at[0]) is None
        assert ids(ahead.read(at[1], at[2])) == [3, 4, 5]
        assert ahead.end_after(at[1]) is None
        ahead.read_ahead(at[2], at[3])
        assert ids(ahead.read(at[1], at[3])) == [
            3,
            4,
            5,
            6,
            7,
            8,
            9,
        ]  # another one: what was read ahead is dropped
        ahead.read_ahead(at[3], at[3])
        assert ahead.end_after(at[3]) is None
        ahead.read_ahead(at[0], at[3])  # nobody asks for it


def test_what_reading_ahead_raises_is_raised_when_it_is_asked_for(world: World) -> None:
    world.send([upsert(1, "x")])
    start, end = Offsets({(world.topic, 0): 5}), Offsets({(world.topic, 0): 9})
    assert admin.describe(world.definition().topic).end.get(world.topic, 0) == 1
    with ReadAhead(reader(world)) as ahead:
        ahead.read_ahead(start, end)
        with pytest.raises(GapError, match=f"{world.topic}-0 from offset 5 on is no longer available"):
            ahead.read(start, end)
