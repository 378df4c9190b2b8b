"""No process continues to write when its driver is gone, and a driver whose JVM is gone reports it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.embedded.broker import Broker
from bridge.errors import ConcurrentRunError
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.publish.run import publish
from tests.ledger import committed
from tests.pipelines.processes import Prepare, Process, Run
from tests.pipelines.world import Make, World, upsert


@pytest.fixture
def world(make: Make) -> World:
    made = make(partitions=1)
    made.send([upsert(n, "a") for n in range(20)])
    return made


@pytest.mark.slow
def test_one_at_a_time_and_none_after_its_driver(world: World, tmp_path: Path) -> None:
    """The second run is refused and names the first; the first's JVM follows its Python; then the way is free."""
    with Run(world, tmp_path / "first", "ingest") as first:
        first.until(first.arm("ingest.before-merge", "pause"))
        with pytest.raises(
            ConcurrentRunError, match=rf"another run is at work, `ingest` .* in process {first.pid} on "
        ):
            ingest(world.spark, world.definition())
        os.kill(first.pid, signal.SIGKILL)
        began = time.monotonic()
        done = ingest(world.spark, world.definition())
        assert done.warning is None and done.records_in == 20
        first.alone(max(0.1, 10 - (time.monotonic() - began)))
    merges = [commit for commit in world.history() if commit["operation"] == "MERGE"]
    assert len(merges) == 1 and len(world.rows()) == 20


@pytest.mark.slow
def test_a_stopped_ingest_is_taken_over_and_ends_when_it_wakes(world: World, tmp_path: Path) -> None:
    with Run(world, tmp_path / "first", "ingest") as zombie:
        hit = zombie.arm("ingest.before-merge", "pause")
        zombie.until(hit)
        zombie.signal(signal.SIGSTOP)
        done = ingest(world.spark, world.definition())
        assert done.warning and f"in process {zombie.pid} on " in done.warning and done.records_in == 20
        world.send([upsert(1, "b")])
        hit.unlink()
        zombie.signal(signal.SIGCONT)
        assert zombie.ended(60) == 1, zombie.output
        # Delta's guard ends the batch that was under way; without one it would be the lease.
        assert "was not applied" in zombie.output or "has taken over" in zombie.output, zombie.output
        zombie.alone(10)
    ingest(world.spark, world.definition())
    assert dict(row[:2] for row in world.rows())[1] == "b" and len(world.rows()) == 20


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["ingest", "publish"])
def test_a_driver_whose_jvm_is_gone_says_so(
    world: World, spark: SparkSession, tmp_path: Path, verb: str
) -> None:
    place = {"ingest": "ingest.before-merge", "publish": "publish.opened"}[verb]
    # The other engines need no JVM from here on: a batch that has been read is committed, and the run ends well.
    world.sections = "merge: {engine: spark}\n"
    if verb == "publish":
        ingest(spark, world.definition())
    with Run(world, tmp_path / "first", verb) as run:
        hit = run.arm(place, "pause")
        run.until(hit)
        jvm = run.jvm()
        assert jvm is not None
        os.kill(jvm, signal.SIGKILL)
        hit.unlink()
        assert run.ended(30) == 1, run.output
        assert "Spark's Java process has ended" in run.output, run.output
        run.alone(10)
    again = {"ingest": ingest, "publish": publish}[verb](spark, world.definition())
    assert again.warning is None and again.batches >= 1


@pytest.mark.slow
@pytest.mark.parametrize("master", ["local[2]", "local-cluster[2,1,1024]"])
@pytest.mark.parametrize("who", ["Python", "JVM"])
def test_slots_end_with_their_driver(
    prepare: Prepare, spark: SparkSession, broker: Broker, tmp_path: Path, master: str, who: str
) -> None:
    """In the middle of a transaction, in a worker of the driver's own JVM or of an executor."""
    world, ledger = prepare()
    ledger.insert(range(100), "a")
    world.definition()
    with Process("publish", world.folder / "orders.yaml", tmp_path / "run", master=master) as run:
        hit = run.arm("shard.sent", "pause after 1")
        run.until(hit)
        jvm = run.jvm()
        assert jvm is not None
        os.kill(run.pid if who == "Python" else jvm, signal.SIGKILL)
        run.alone(10 if master == "local[2]" else 20)
        hit.unlink()
    before = sum(map(len, committed(broker.bootstrap, world.topic).values()))
    time.sleep(3)
    assert sum(map(len, committed(broker.bootstrap, world.topic).values())) == before
    publish(spark, world.definition())
    ledger.check(broker.bootstrap, world.topic)
