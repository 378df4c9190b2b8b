"""What queries read, by Spark's metrics; unknown where Spark does not tell."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.quality.scan_cost import ScanMeter, metered
from tests.delta.tables import made
from tests.public_api import PublicApi

pytestmark = pytest.mark.versions


def test_scans_of_a_table_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    table = made(spark, tmp_path / "t", rows=[(1, "a"), (2, "b")])
    table.delta().toDF().where("v = 'a'").collect()
    with metered(spark, "a check") as meter:
        assert table.delta().toDF().where("v = 'a'").count() == 1
        cost = meter.read()
    assert cost is not None
    assert (cost.scans, cost.files) == (1, 1) and cost.bytes > 0


def test_without_sparks_metrics_there_is_no_cost(spark: SparkSession) -> None:
    assert ScanMeter(PublicApi(spark), "x").read() is None  # type: ignore[arg-type]
