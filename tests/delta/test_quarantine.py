"""Rows that an INSERT leaves out take the place of those of an attempt before, and of no other INSERT's."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from bridge.definition import DeltaTarget
from bridge.delta.quarantine import ROW_KEY, quarantine_rows


def test_rows_of_an_insert_whose_name_has_a_quote(spark: SparkSession, lake: Path) -> None:
    target = DeltaTarget(str(lake / "q"))
    for pipeline, reasons in (("it's", ["a", "b"]), ("its", ["c"]), ("it's", ["d"])):
        rows = spark.createDataFrame(
            [(["t"], [("t", "id", "1")], reason) for reason in reasons],
            f"tables array<string>, row_key {ROW_KEY}, reason string",
        )
        quarantine_rows(spark, target, rows, pipeline=pipeline, batch=3, is_whole=False)
    found = spark.read.format("delta").load(str(target.path)).collect()
    assert sorted((row.pipeline, row.reason) for row in found) == [("it's", "d"), ("its", "c")]
