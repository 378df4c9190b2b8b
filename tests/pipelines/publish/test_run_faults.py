"""Exactly-once when processes are killed, stopped and resumed, and when the broker stops; the ledger checks the
topic."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.embedded.broker import Broker
from bridge.metrics import Summary
from bridge.pipelines.publish.run import publish
from tests.ledger import committed
from tests.pipelines.processes import Arm, Prepare, Run, prepared, wait_beside
from tests.pipelines.world import World

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("small_arrow_batches")]


def sent(world: World) -> int:
    return sum(map(len, committed(world.broker.bootstrap, world.topic).values()))


@pytest.mark.parametrize("place", ["shard.after-commit", "shard.before-commit"])
def test_all_processes_are_killed(prepare: Prepare, tmp_path: Path, place: str) -> None:
    """Driver, JVM and workers at the same moment, in the middle of a range; with a commit just made, or just due."""
    world, ledger = prepare()
    ledger.insert(range(100), "a")
    with Run(world, tmp_path) as run:
        run.until(run.arm(place, "pause after 1"))
        run.kill()
    assert 0 < sent(world) < 100
    ledger.update(range(50), "b")
    publish(world.spark, world.definition())
    ledger.check(world.broker.bootstrap, world.topic)


@pytest.mark.parametrize(
    "place",
    ["shard.before-commit", "shard.after-commit", "publish.opened", "publish.sent"],
)
def test_a_zombie_wakes(prepare: Prepare, tmp_path: Path, place: str) -> None:
    """A run is stopped at a critical place, another run publishes everything and later changes; then the first
    resumes."""
    world, ledger = prepare()
    ledger.insert(range(60), "a")
    with Run(world, tmp_path) as zombie:
        hit = zombie.arm(place, "pause")
        zombie.until(hit)
        zombie.signal(signal.SIGSTOP)
        ledger.update(range(30), "b")
        publish(world.spark, world.definition())
        ledger.delete(range(10))
        publish(world.spark, world.definition())
        ledger.update(range(30), "c")
        hit.unlink()
        zombie.signal(signal.SIGCONT)
        assert zombie.ended(60) == 1, zombie.output
        # The fence ends it, or the log, where the other run's entry is in the place of its own.
        assert re.search(r"has taken over|recorded in \S+ by another run", zombie.output), zombie.output
        zombie.alone(10)
    publish(world.spark, world.definition())
    ledger.check(world.broker.bootstrap, world.topic)


@pytest.mark.slow
def test_the_broker_restarts_under_a_publish(
    spark: SparkSession, lake: Path, tmp_path: Path, unique: Callable[[str], str], arm: Arm
) -> None:
    """Killed as by a power cut while a transaction is open, it comes back seconds later: the run ends well."""
    with Broker(tmp_path / "broker") as broker:
        world, ledger = prepared(spark, broker, lake, unique)
        ledger.insert(range(60), "a")
        done: list[Summary] = []
        running = threading.Thread(target=lambda: done.append(publish(spark, world.definition())))
        hit = arm("shard.before-commit", "pause after 1")
        running.start()
        wait_beside(running, hit.exists)
        broker.kill()
        hit.unlink()
        time.sleep(1)
        broker.start()
        running.join(150)
        assert not running.is_alive() and [d.records_out for d in done] == [60]
        ledger.update(range(30), "b")
        publish(spark, world.definition())
        ledger.check(broker.bootstrap, world.topic)


def test_fewer_shards_after_a_kill(prepare: Prepare, arm: Arm) -> None:
    """Eight shards began the range, so eight end it; what comes after has two."""
    world, ledger = prepare(**{"sink.parallelism": "8"})
    ledger.insert(range(200), "a")
    arm("shard.before-commit", "kill after 3")
    with pytest.raises(Exception, match=r"crashed|exited unexpectedly"):
        publish(world.spark, world.definition())
    assert 0 < sent(world) < 200
    ledger.update(range(100), "b")
    ledger.move(range(50, 60), 1000)
    world.options = {**world.options, "sink.parallelism": "2"}
    publish(world.spark, world.definition())
    ledger.check(world.broker.bootstrap, world.topic)
    world.options = {**world.options, "sink.parallelism": "8"}
    ledger.update(range(100), "c")
    publish(world.spark, world.definition())
    ledger.check(world.broker.bootstrap, world.topic)
