"""The most important faults of an ingest, injected deterministically and checked by the checker of the rounds.

README.md lists the tests for the other faults.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.embedded.broker import Broker
from bridge.errors import BridgeError
from bridge.pipelines.ingest.run import ingest
from tests.faults.checked_ingest import CheckedIngest
from tests.pipelines.world import World, tombstone, upsert

Arm = Callable[[str, str], Path]


@pytest.fixture
def judged(spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]) -> CheckedIngest:
    return CheckedIngest(spark, broker, lake, unique)


@pytest.mark.parametrize(
    "place", [pytest.param("ingest.before-merge", marks=pytest.mark.slow), "ingest.after-merge"]
)
def test_a_run_dies_beside_its_commit(judged: CheckedIngest, arm: Arm, place: str) -> None:
    """Before the commit nothing is written; after it, before Spark's own log has it, the batch is not applied again."""
    judged.write(10)
    hit = arm(place, "raise")
    with pytest.raises(RuntimeError, match=f"failpoint {place}"):
        judged.ingest()
    assert hit.exists()
    done, noise = judged.check().commits, judged.feed_rows()
    assert done == (place == "ingest.after-merge")
    assert judged.ingest().batches == 1 - done
    assert judged.check().commits == 1
    if done:
        assert judged.feed_rows() == noise
    judged.write(5)
    judged.ingest()
    verdict = judged.check()
    assert verdict.clean and verdict.commits == 2, verdict.examples


def test_a_checkpoint_of_an_hour_ago_or_of_another_job(judged: CheckedIngest) -> None:
    """Restored, it repeats nothing; copied to another pipeline, it is not progress of that pipeline."""
    judged.write(10)
    judged.ingest()
    folder = judged.world.folder
    shutil.copytree(folder / "checkpoint", folder / "kept")
    judged.write(10)
    judged.ingest()
    shutil.rmtree(folder / "checkpoint")
    shutil.copytree(folder / "kept", folder / "checkpoint")
    judged.write(3)
    judged.ingest()
    verdict = judged.check()
    assert verdict.clean and verdict.commits == 3, verdict.examples
    with pytest.raises(BridgeError, match=r"pipeline 'orders'.*'others'|'others'.*'orders'"):
        judged.ingest("others")
    assert judged.check().commits == 3


def test_one_key_many_times_and_tombstones_of_unknown_keys(
    spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]
) -> None:
    world = World.make(spark, broker, lake, unique)
    world.send(upsert(1, f"v{n}") for n in range(20_000))
    world.send(tombstone(n) for n in range(2, 10_002))
    done = ingest(spark, world.definition())
    assert (done.records_in, done.inserted, done.unchanged, done.batches) == (30_000, 1, 10_000, 1)
    assert [row[1] for row in world.rows()] == ["v19999"]
    world.send(tombstone(n) for n in range(2, 10_002))
    again = ingest(spark, world.definition())
    assert (again.unchanged, again.inserted + again.updated + again.deleted) == (10_000, 0)
