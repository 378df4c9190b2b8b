"""A broker that stops answering for a while: connections stay open, and no request is answered."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.embedded.broker import Broker
from bridge.metrics import BatchReport, Summary
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.publish.run import publish
from tests.pipelines.processes import Arm, prepared, wait_beside
from tests.pipelines.world import World, upsert

pytestmark = pytest.mark.slow
SECONDS = 25.0


@contextmanager
def cut(broker: Broker) -> Iterator[None]:
    """No packet is answered inside, as the broker's process is stopped; it comes back as it was."""
    pid = broker.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("place", ["shard.opened", "shard.before-commit", "shard.sent"])
def test_a_publish_waits_for_an_answer(
    spark: SparkSession, lake: Path, tmp_path: Path, unique: Callable[[str], str], arm: Arm, place: str
) -> None:
    """Before the first record, with a transaction open, and between its records and its commit."""
    with Broker(tmp_path / "broker") as broker:
        world, ledger = prepared(spark, broker, lake, unique)
        ledger.insert(range(60), "a")
        done: list[Summary] = []
        running = threading.Thread(target=lambda: done.append(publish(spark, world.definition())))
        hit = arm(place, "pause after 1")
        running.start()
        wait_beside(running, hit.exists)
        with cut(broker):
            hit.unlink()
            time.sleep(SECONDS)
        running.join(150)
        assert not running.is_alive() and [d.records_out for d in done] == [60]
        ledger.check(broker.bootstrap, world.topic)


def test_an_ingest_goes_on_where_it_was(
    spark: SparkSession, lake: Path, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    with Broker(tmp_path / "broker") as broker:
        world = World.make(spark, broker, lake, unique)
        world.send([upsert(n, "a") for n in range(20)])
        stop, reports, done = threading.Event(), list[BatchReport](), list[Summary]()

        def run() -> None:
            definition = world.definition(run={"trigger": "200 ms"})
            done.append(ingest(spark, definition, listener=reports.append, stop=stop))

        running = threading.Thread(target=run)
        running.start()
        wait_beside(running, lambda: len(reports) == 1, 120)
        with cut(broker):
            time.sleep(SECONDS)
        world.send([upsert(n, "b") for n in range(10, 30)])
        wait_beside(running, lambda: sum(r.records_in for r in reports) == 40, 120)
        stop.set()
        running.join(60)
        assert not running.is_alive() and [d.records_in for d in done] == [40]
        assert {row[0]: row[1] for row in world.rows()} == {n: "a" if n < 10 else "b" for n in range(30)}
