"""Many pipelines in one Spark leave nothing behind: threads, files, clients, frames and memory stay as they are."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.definition import Definition
from bridge.metrics import Summary
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.publish.run import publish
from bridge.pipelines.runtime.rounds import RoundsSummary, run_rounds
from tests.kafka.topics import Fresh
from tests.pipelines.resources import Resources
from tests.pipelines.world import Make, World, upsert

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

WARM = 70
"""Runs after which caches of Spark and Delta hold what they hold: Spark keeps 64 consumers for some minutes."""
PATIENCE_SECONDS = 120.0
"""Spark's pools let idle threads go after a minute."""


def pipelines(make: Make, count: int, **settings: str) -> list[World]:
    made = [make(folder=f"{number:03}", partitions=1, **settings) for number in range(count)]
    for world in made:
        world.send([upsert(id, "a") for id in range(20)])
    return made


def run_all(
    spark: SparkSession,
    definitions: list[Definition],
    run: Callable[[SparkSession, Definition], Summary] = ingest,
    parallel: int = 2,
) -> RoundsSummary:
    total = run_rounds(
        spark,
        definitions,
        run,
        parallel=parallel,
        stop=threading.Event(),
        failed=lambda definition, failure: print(definition.name, failure),
        sessions=lambda spark: spark.newSession(),
    )
    assert not total.failed
    return total


def stays_flat(spark: SparkSession, before: Resources, runs: int) -> None:
    """Nothing grows with the number of runs, once idle threads are gone; a few more are pools that have grown."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while more := too_much(grown := Resources.of(spark).grown(before), runs):
        if time.monotonic() > deadline:
            break
        time.sleep(5)
    print(f"{runs} runs: {before} -> {grown}")
    assert more == {}


def too_much(grown: dict[str, float], runs: int) -> dict[str, float]:
    most = {
        "python_threads": 2,
        "java_threads": 10,
        "python_files": 8,
        "java_files": 20,
        "java_objects": runs,  # PySpark's own frames wait for the next collection
        "persisted": 0,
        "listeners": 2,  # one for each thread of the rounds
        "temp_views": 0,
        "queries": 0,
        "heap_mb": 1.0 * runs,  # Delta keeps the snapshot of each table for an hour
        "resident_mb": 0.5 * runs,
    }
    return {name: more for name, more in grown.items() if more > most[name]}


@pytest.mark.parametrize("reader", ["spark", "consumer"])
def test_fifty_small_ingests(make: Make, spark: SparkSession, reader: str) -> None:
    made = pipelines(make, WARM + 50, sections=f"ingest: {{reader: {reader}}}\n")
    definitions = [world.definition(f"p{number}") for number, world in enumerate(made)]
    run_all(spark, definitions[:WARM])
    scratch, before = scratch_folders(), Resources.of(spark)
    assert run_all(spark, definitions[WARM:]).records_in == 50 * 20
    stays_flat(spark, before, 50)
    assert scratch_folders() == scratch
    left = {
        path.name for world in made for path in (world.folder / "checkpoint").rglob("*") if path.is_file()
    }
    assert not {name for name in left if "offsets" in name or name.startswith("metadata")}


def test_fifty_small_publishes(make: Make, spark: SparkSession, fresh: Fresh) -> None:
    made = pipelines(make, WARM + 50)
    run_all(spark, [world.definition(f"p{number}") for number, world in enumerate(made)])
    for world in made:
        world.topic = fresh("out")
    definitions = [world.definition(f"out{number}") for number, world in enumerate(made)]
    run_all(spark, definitions[:WARM], publish)
    before = Resources.of(spark)
    assert run_all(spark, definitions[WARM:], publish).records_out == 50 * 20
    stays_flat(spark, before, 50)


def test_a_thousand_runs_with_nothing_to_do(make: Make, spark: SparkSession) -> None:
    made = pipelines(make, 20)
    definitions = [world.definition(f"p{number}") for number, world in enumerate(made)]
    run_all(spark, definitions)
    run_all(spark, definitions * 5)
    before = Resources.of(spark)
    assert run_all(spark, definitions * 50).batches == 0
    stays_flat(spark, before, 20)


def scratch_folders() -> set[str]:
    """Of this process's temporary folder, what the bridge made."""
    return {path.name for path in Path(tempfile.gettempdir()).iterdir() if path.name.startswith("bridge-")}
