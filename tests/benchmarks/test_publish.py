"""The benchmark of publishing runs whole; what it finds is for `make bench-publish` to say."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.publish import Bench
from bridge.embedded.broker import Broker


@pytest.mark.slow
def test_every_way_sends_every_row(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """The bench itself asserts how many records a publish sent."""
    bench = Bench(spark, broker, tmp_path, rows=7)
    lines = bench.lines(rounds=1, warm=0)
    assert [line.goal for line in lines] == [0.0, 0.0, *([0.8, 0.0, 0.0] * 2)]
    assert all(line.held == (line.ratio >= line.goal) for line in lines)
