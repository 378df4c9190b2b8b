"""At-least-once when a publish is stopped, taken over and resumed: what it then sends is stale, and is repaired."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.embedded.broker import Broker
from bridge.pipelines.publish.run import publish
from tests.ledger import Ledger, committed
from tests.pipelines.processes import Run
from tests.pipelines.world import World


@pytest.mark.usefixtures("small_arrow_batches")
def test_a_zombie_wakes(
    spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str], tmp_path: Path
) -> None:
    """Stopped with a block of a snapshot in hand; another run sends all of it, and newer versions. Then the first goes
    on: its block, the last of its task, lands behind them. (Blocks after it would not be sent.)"""
    world = World.make(spark, broker, lake, unique)
    ledger = Ledger(spark, f"{lake}/table")
    ledger.create()
    ledger.insert(range(5), "a")
    with Run(world, tmp_path) as zombie:
        hit = zombie.arm("sink.sending", "pause")
        zombie.until(hit)
        zombie.signal(signal.SIGSTOP)
        publish(spark, world.definition())
        ledger.update(range(5), "b")
        ledger.delete(range(3))
        publish(spark, world.definition())
        assert _folded(world) == _table(world)
        written = len(world.received())
        hit.unlink()
        zombie.signal(signal.SIGCONT)
        assert zombie.ended(60) == 1, zombie.output
        # The lease ends it, or the log, where the other run's entry is in the place of its own.
        assert re.search(r"another run has taken over|recorded in \S+ by another run", zombie.output), (
            zombie.output
        )
        zombie.alone(10)
    stale = len(world.received()) - written
    assert 0 < stale <= 5 and _folded(world) != _table(world)
    repaired = publish(spark, world.definition())
    assert _folded(world) == _table(world)
    assert repaired.warning is not None and f"{stale} records in {world.topic}-" in repaired.warning
    ledger.update(range(5), "c")
    last = publish(spark, world.definition())
    assert _folded(world) == _table(world) and last.warning is None


def _folded(world: World) -> dict[int, str]:
    records = committed(world.broker.bootstrap, world.topic)
    return {id: values[-1] for id, values in records.items() if values[-1] is not None}


def _table(world: World) -> dict[int, str]:
    return {row["id"]: row["name"] for row in world.table().collect()}
