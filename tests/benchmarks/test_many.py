"""Progress and logs that are made up, small ones: each cost is measured, and the right file is found."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks import many
from tests.benchmarks.made_up import Ground


def test_progress_of_more_partitions_is_larger() -> None:
    small, large = many.progress_costs(10), many.progress_costs(100)
    assert set(small.of) == {"offsets of a batch", "progress in a commit"}
    assert 5 < large.of["progress in a commit"][0] / small.of["progress in a commit"][0] < 10


def test_a_log_alone_is_planned_by_both_engines(spark: SparkSession, tmp_path: Path) -> None:
    ground = Ground()
    ground.spark = spark  # type: ignore[attr-defined]
    costs = many.log_costs(ground, tmp_path / "table", 40)  # type: ignore[arg-type]
    units = {name: unit for name, (_, unit) in costs.of.items()}
    assert units == {
        "opening": "ms",
        "files of a batch, driver": "ms",
        "files of a batch, Spark": "ms",
        "memory of the driver": "MB",
    }
    assert not [file for file in (tmp_path / "table").iterdir() if file.suffix == ".parquet"]


@pytest.mark.parametrize(("cost", "is_met"), [(20.0, False), (10.0, True)])
def test_ten_times_as_many_may_cost_fifteen_times_as_much(cost: float, is_met: bool) -> None:
    few, large = many.Costs({"time": (1.0, "ms")}), many.Costs({"time": (cost, "ms")})
    (outcome,) = many.compared("files", few, large)
    assert (outcome.name, outcome.held) == ("files: time", is_met)
