"""What a batch pays for being watched is measured over drawn shapes, with everything on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.monitoring_cost import Shape, added
from bridge.embedded.broker import Broker
from bridge.metrics import BatchReport, Step
from bridge.metrics.monitoring import Monitoring
from tests.pipelines.world import World


def test_shapes_are_those_of_their_seed() -> None:
    shapes = [Shape.drawn(seed) for seed in range(1, 6)]
    assert shapes == [Shape.drawn(seed) for seed in range(1, 6)] and len({*shapes}) == 5
    assert all(s.partitions >= 1 and s.rows >= 1000 and s.batch >= 20 for s in shapes)


def test_each_report_is_told_and_timed(
    spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]
) -> None:
    world = World(spark, broker, lake, unique("watched"))
    reports = [BatchReport("orders", "ingest", n, steps=(Step("merge", 1, 0.1),)) for n in range(3)]
    file = lake / "events"
    seconds = added(reports, Monitoring.of(None, str(file), None), world.definition())
    assert len(seconds) == 3 and all(s > 0 for s in seconds)
    assert len(file.read_text().splitlines()) == 5  # and its start and end
