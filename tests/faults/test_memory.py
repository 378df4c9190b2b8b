"""A million records with little memory: the run succeeds, or stops with advice; there is no partial state."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bridge.embedded.broker import Broker
from tests.faults.measured_run import MeasuredRun
from tests.pipelines.world import Record, World, tombstone, upsert

MILLION = 1_000_000
SECONDS = 900
SMALL = {"driver_memory": "400m", "testing_reservedMemory": str(64 << 20)}
"""Spark reserves 300 MB of a heap, and needs at least 450 to start; the second setting is for Spark's tests."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2 * SECONDS)]


def send(world: World, records: Iterable[Record]) -> None:
    producer = Producer({"bootstrap.servers": world.broker.bootstrap, "linger.ms": 50, "acks": 1})
    for n, (k, v) in enumerate(records):
        producer.produce(world.topic, key=k, value=v)
        if n % 10_000 == 0:
            producer.poll(0)
            while len(producer) > 50_000:
                producer.poll(0.05)
    assert producer.flush(120) == 0


@pytest.fixture
def world(spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]) -> World:
    return World.make(spark, broker, lake, unique, partitions=2)


def count_and_sum(world: World) -> tuple[int, int]:
    row = world.table().agg(F.count("*"), F.coalesce(F.sum("id"), F.lit(0))).first()
    assert row is not None
    return row[0], row[1]


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        pytest.param(lambda n: upsert(1, f"v{n}"), (1, 1), id="one-key"),
        pytest.param(
            lambda n: tombstone(n) if n else upsert(-5, "a"), (1, -5), id="tombstones-of-unknown-keys"
        ),
        pytest.param(lambda n: upsert(n % 200_000, f"v{n}"), (200_000, 19_999_900_000), id="many-keys"),
    ],
)
def test_a_million_records_in_one_batch_with_400_megabytes(
    world: World, records: Callable[[int], Record], expected: tuple[int, int]
) -> None:
    send(world, (records(n) for n in range(MILLION)))
    world.definition()
    with MeasuredRun(world, **SMALL) as job:
        code = job.ended(SECONDS)
    print(f"exit {code}, peak {job.peak_mb}: {job.output[-300:]}")
    if code:
        assert code == 1 and "max-offsets-per-batch" in job.output
        world.definition(run={"max-offsets-per-batch": 100_000})
        with MeasuredRun(world, **SMALL) as job:
            assert job.ended(SECONDS) == 0, job.output
        print(f"in batches: peak {job.peak_mb}")
    assert job.peak_mb["driver"] < 1200
    assert count_and_sum(world) == expected
    if expected[0] == 1 and expected[1] == 1:
        assert world.rows()[0][1] == f"v{MILLION - 1}"


def test_a_heap_that_is_far_too_small_stops_the_run_and_a_larger_one_goes_on(world: World) -> None:
    send(world, (upsert(n, "x" * 20_000) for n in range(10_000)))
    world.definition()
    with MeasuredRun(world, driver_memory="400m") as job:
        assert job.ended(SECONDS) == 1
    assert "so little memory: set spark.driver.memory to 500m or more" in job.output
    with MeasuredRun(world, driver_memory="160m", testing_reservedMemory=str(16 << 20)) as job:
        code = job.ended(SECONDS)
    print(f"exit {code}, peak {job.peak_mb}: {job.output[-600:]}")
    assert code == 1 and "out of memory" in job.output.lower().replace("outofmemory", "out of memory")
    assert "max-offsets-per-batch" in job.output
    with MeasuredRun(world, driver_memory="1g") as job:
        assert job.ended(SECONDS) == 0, job.output
    assert count_and_sum(world) == (10_000, 49_995_000)


def test_an_executor_is_killed_in_a_batch(world: World) -> None:
    send(world, (upsert(n % 50_000, f"v{n}") for n in range(300_000)))
    world.definition(run={"max-offsets-per-batch": 60_000})
    killed: list[int] = []
    seen = [0.0]

    def kill() -> None:
        there = job.executors()
        seen[0] = seen[0] or (time.monotonic() if len(there) == 2 else 0.0)
        if seen[0] and len(killed) < 2 and there and time.monotonic() - seen[0] > 15 + 15 * len(killed):
            os.kill(there[0], signal.SIGKILL)
            killed.append(there[0])

    with MeasuredRun(world, master="local-cluster[2,1,1024]") as job:
        assert job.ended(SECONDS, kill) == 0, job.output
    print(f"killed {killed}, peak {job.peak_mb}: {job.output[-300:]}")
    assert killed
    names = {row[0]: row[1] for row in world.table().select("id", "name").collect()}
    assert names == {n: f"v{250_000 + n}" for n in range(50_000)}
    commits = [c for c in world.history() if c["operation"] == "MERGE"]
    assert len(commits) == 5
