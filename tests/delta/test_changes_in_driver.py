"""Changes come into the driver with the columns that engines ask for."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bridge.delta.changes_in_driver import collect_changes
from bridge.delta.merge_semantics import KEPT, kept_column
from tests.delta.tables import frame, made


def test_columns(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t")
    changes = (
        frame(table, [("+U", 1, "a"), ("-D", 2, None)])
        .withColumn("more", F.lit(5))
        .withColumn("else", F.lit(6))
    )
    assert collect_changes(table, changes, ["more"]).to_pylist() == [
        {"id": 1, "v": "a", "more": 5, "__kind": "+U"},
        {"id": 2, "v": None, "more": 5, "__kind": "-D"},
    ]
    kept = changes.withColumn(KEPT, F.when(F.col("id") == 1, F.array(F.lit("v"))))
    found = collect_changes(table, kept)
    assert found[kept_column("v")].to_pylist() == [True, False]
    assert found[kept_column("id")].to_pylist() == [False, False]
    assert isinstance(found, pa.Table)
