"""The benchmark of the gate runs whole; what it finds is for `make bench-quality` to say."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.quality import GOAL, Bench
from bridge.embedded.broker import Broker


@pytest.mark.slow
def test_every_way_writes_every_row(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """The bench itself asserts how many rows each way has read and sent, and that all of them pass."""
    bench = Bench(spark, broker, tmp_path, rows=9, batch=4)
    lines = bench.lines(rounds=1)
    assert [line.goal for line in lines] == [GOAL, GOAL, 0.0, 1.0, 0.0, GOAL]
    assert all(line.held == (line.ratio >= line.goal) for line in lines)
