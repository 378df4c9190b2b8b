"""Progress is in the table: whatever happens to checkpoints, and whichever others write, a batch is applied once."""

from __future__ import annotations

import json
import shutil
import threading
import time
from dataclasses import replace
from decimal import Decimal

import pytest

from bridge.errors import TableError
from bridge.metrics import BatchReport
from bridge.pipelines.ingest.run import ingest
from tests.pipelines.world import ONE, Make, World, tombstone, upsert


def batches(world: World) -> list[int]:
    """The numbers of the batches in the table's log, newest first."""
    texts = [commit["userMetadata"] for commit in world.history()]
    return [json.loads(text)["bridge"]["batch"] for text in texts if text]


def test_an_old_checkpoint_is_put_back(make: Make) -> None:
    """Spark's, as it was in the middle of an earlier run; and one that belongs to another pipeline and table."""
    world = make(partitions=1, sections="ingest: {reader: spark}\n")
    world.send([upsert(1, "old"), upsert(2, "b")])
    copy = world.folder / "copy"

    def copy_checkpoint(report: BatchReport) -> None:
        if not copy.exists():
            shutil.copytree(world.folder / "checkpoint", copy)

    ingest(world.spark, world.definition(), listener=copy_checkpoint)
    assert list((copy / "ingest").iterdir()), "nothing of Spark's was copied"
    world.send([upsert(1, "new"), tombstone(2)])
    ingest(world.spark, world.definition())
    shutil.rmtree(world.folder / "checkpoint")
    shutil.copytree(copy, world.folder / "checkpoint")
    lease = world.folder / "checkpoint" / "ingest.lease.json"
    lease.write_text(
        lease.read_text().replace('"released": false', '"released": true').replace("orders", "other")
    )
    world.send([upsert(3, "c")])
    assert ingest(world.spark, world.definition()).records_in == 1
    assert world.rows() == [(1, "new", ONE), (3, "c", ONE)]
    assert batches(world) == [2, 1, 0]


@pytest.mark.slow
def test_a_checkpoint_shared_with_another_pipeline_is_no_progress(make: Make) -> None:
    """Copied to a second job with a table of its own, it neither makes that job skip nor the first one repeat."""
    world = make(partitions=1)
    world.send([upsert(1, "a")])
    ingest(world.spark, world.definition())
    second = replace(world, folder=world.folder / "second")
    second.folder.mkdir()
    shutil.copytree(world.folder / "checkpoint", second.folder / "checkpoint")
    assert ingest(world.spark, second.definition("others")).records_in == 1
    assert second.rows() == world.rows()
    assert ingest(world.spark, world.definition()).batches == 0


def test_two_pipelines_cannot_keep_one_table(make: Make) -> None:
    world = make(partitions=1)
    world.send([upsert(1, "a")])
    ingest(world.spark, world.definition())
    with pytest.raises(TableError, match="'orders'") as refused:
        ingest(world.spark, world.definition("others", run={"checkpoint": "elsewhere"}))
    assert "pipeline" in str(refused.value)
    assert batches(world) == [0]


@pytest.mark.slow
def test_other_writers_at_the_same_time(make: Make) -> None:
    """OPTIMIZE and a user's UPDATE all the time: every batch is there once, and no rows are lost."""
    world = make(partitions=1)
    world.send([upsert(n % 7, f"v{n}") for n in range(30)])
    ingest(world.spark, world.definition(run={"max-offsets-per-batch": 5}))
    path = f"delta.`{world.folder}/table`"
    world.spark.sql(f"INSERT INTO {path} VALUES (100, 'mine', 0), (101, 'mine', 0)")
    over = threading.Event()
    wins: list[str] = []
    unexpected: list[Exception] = []

    def is_update(statement: str) -> bool:
        return statement.startswith("UPDATE")

    def others() -> None:
        own = world.spark.newSession()
        while not over.is_set():
            for statement in (
                f"OPTIMIZE {path}",
                f"UPDATE {path} SET amount = amount + 1 WHERE id >= 100",
            ):
                try:
                    own.sql(statement).collect()
                    wins.append(statement)
                except Exception as lost:
                    if "oncurrent" not in str(lost) and "DELTA_CONCURRENT" not in str(lost):
                        unexpected.append(lost)

    user = threading.Thread(target=others)
    user.start()
    try:
        for round in range(4):
            world.send([upsert(n % 7, f"r{round}-{n}") for n in range(20)])
            ingest(world.spark, world.definition(run={"max-offsets-per-batch": 5}))
        deadline = time.monotonic() + 60  # on a busy machine the other writer has lost until now
        while not any(map(is_update, wins)) and time.monotonic() < deadline:
            time.sleep(0.1)
    finally:
        over.set()
        user.join()
    assert not unexpected
    rows = {row[0]: row for row in world.rows()}
    assert {n: rows[n][1] for n in range(7)} == {n % 7: f"r3-{n}" for n in range(13, 20)}
    updates = sum(map(is_update, wins))
    assert updates and rows[100] == (100, "mine", Decimal(updates)) and rows[101][2] == Decimal(updates)
    assert batches(world) == list(reversed(range(22)))
