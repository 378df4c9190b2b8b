"""Change semantics beside plain upserts and the MERGE of Delta's documentation, on small tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks import semantics
from benchmarks.found import Found
from benchmarks.ground import Ground
from benchmarks.scale import Scale
from bridge.embedded.broker import Broker


@pytest.mark.slow
def test_each_table_has_the_right_rows(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    ground, found = Ground(spark, broker, tmp_path, lambda _: None, float("inf")), Found()
    semantics.play(ground, Scale.of(3_000, full=False, rounds=1), found)
    assert [(entry.system.split(",")[0], entry.wrong) for entry in ground.entries] == [
        ("plain upserts", None),
        ("sequence-by", None),
        ("history: scd2", None),
        ("update-columns", None),
        ("recipe", None),
    ]
    assert [(row.name, row.goal) for row in found.outcomes] == [
        ("500 changes into 6,000 rows: sequence-by / plain upserts", 2.0),
        ("500 changes into 6,000 rows: history: scd2 / plain upserts", 2.0),
        ("500 changes into 6,000 rows: update-columns / plain upserts", 2.0),
        ("500 changes into 6,000 rows: history: scd2, beside the MERGE of Delta's documentation", 5.0),
    ]
