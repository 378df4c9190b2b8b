"""What is in the topic where files are the shards, whichever process dies meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import types as T

from bridge.delta.table import Table
from bridge.errors import GapError
from bridge.kafka.exactly_once import produce_files
from bridge.pipelines.publish import delivery as exactly_once
from bridge.pipelines.publish.run import publish
from bridge.pipelines.publish.sharding import FileShardLimits
from tests.delta.tables import FIELDS, append, at, by_spark, frame, made
from tests.ledger import committed
from tests.pipelines.world import Make, World

pytestmark = pytest.mark.usefixtures("small_arrow_batches")

_NAME = T.StructField("name", T.StringType())

LIMITS = FileShardLimits(min_rows=10, min_rows_per_file=1, max_imbalance=10)
"""Versions of ten rows are large, and one file for two tasks is even enough."""


class Desk:
    """A pipeline whose every version is large, and how often a range went out file by file."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world, self.ranges = world, 0
        self.table: Table = made(world.spark, world.folder / "table", fields=(FIELDS[0], _NAME))

        def counted(*given: Any, **more: Any) -> Any:
            self.ranges += 1
            return produce_files(*given, **more)

        monkeypatch.setattr(exactly_once, "produce_files", counted)

    def insert(self, ids: Iterable[int], name: str) -> None:
        """As another writer does."""
        append(self.table, [(id, name) for id in ids])

    def ingest(self, batch: int, kind: str, ids: Iterable[int], name: str | None) -> None:
        """As a batch of the bridge's does."""
        changes = frame(self.table, [(kind, id, name) for id in ids])
        by_spark(self.table, changes, key=["id"], progress=at(batch))

    def publish(self) -> int:
        return publish(self.world.spark, self.world.definition(), file_shard_limits=LIMITS).records_out

    def committed(self) -> dict[int, list[str | None]]:
        return committed(self.world.broker.bootstrap, self.world.topic)


@pytest.fixture
def desk(make: Make, unique: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> Desk:
    options = {"sink.delivery-guarantee": "exactly-once", "sink.transactional-id-prefix": unique("tx")}
    columns = "id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED"
    world = make(options=options, columns=columns)
    world.sections = "publish: {transaction-rows: 10, snapshot-chunk-rows: 60}\n"
    return Desk(world, monkeypatch)


def test_a_run_dies_and_another_goes_on(desk: Desk, arm: Callable[[str, str], Path]) -> None:
    """In the first of two chunks of a snapshot, with a number of shards that the user sets by then; and in a version
    that an ingest wrote. Of what others write, rows of their own go by file, changed keys do not."""
    desk.insert(range(60), "a")
    desk.insert(range(60, 120), "a")
    hit = arm("shard.before-commit", "kill after 2")
    with pytest.raises(Exception, match=r"crashed|exited unexpectedly"):
        desk.publish()
    assert hit.exists()
    assert 0 < len(desk.committed()) < 60
    desk.world.options = {**desk.world.options, "sink.parallelism": "3"}
    desk.publish()
    assert desk.committed() == {id: ["a"] for id in range(120)}
    assert desk.ranges == 3

    desk.world.options = {**desk.world.options, "sink.parallelism": None}
    desk.ingest(0, "+U", range(60), "b")
    desk.insert(range(200, 220), "c")
    moved = "UPDATE delta.`{}` SET id = id + 1000 WHERE id BETWEEN 60 AND 79"
    desk.world.spark.sql(moved.format(desk.world.folder / "table"))
    desk.ingest(1, "-D", range(30), None)
    desk.ingest(2, "+U", range(3), "d")
    hit = arm("shard.after-commit", "raise")
    with pytest.raises(Exception, match=r"failpoint|RuntimeError"):
        desk.publish()
    assert hit.exists()
    desk.publish()
    expected: dict[int, list[str | None]] = {id: ["a"] for id in range(120)}
    expected.update({id: ["a", "b"] for id in range(60)})
    expected.update({id: ["a", "b", None] for id in range(30)})
    expected.update({id: ["a", "b", None, "d"] for id in range(3)})
    expected.update({id: ["c"] for id in range(200, 220)})
    expected.update({id: ["a", None] for id in range(60, 80)})
    expected.update({id: ["a"] for id in range(1060, 1080)})
    assert desk.committed() == expected
    assert desk.ranges == 3 + 1 + 3
    assert desk.publish() == 0


def test_a_range_whose_files_are_planned_in_another_way(
    desk: Desk, arm: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An open range is a gap then; with the former release of Spark it is finished."""
    desk.insert(range(60), "a")
    arm("shard.after-commit", "raise")
    with pytest.raises(Exception, match=r"failpoint|RuntimeError"):
        desk.publish()
    with monkeypatch.context() as another:
        another.setattr(exactly_once, "data_files", lambda _: ())
        with pytest.raises(
            GapError,
            match=r"version 1 was being sent file by file.*Finish it with the former release, or run `bridge res",
        ):
            desk.publish()
    desk.publish()
    assert desk.committed() == {id: ["a"] for id in range(60)}
