"""Row counts of commits, added up."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from bridge.definition import DeltaTarget
from bridge.delta.change_counts import ChangeCounts, count_changes
from bridge.delta.table import create_table

FIELDS = [T.StructField("id", T.LongType()), T.StructField("n", T.IntegerType())]


@pytest.mark.slow
def test_inserts_updates_and_deletes_are_counted_whoever_made_them(spark: SparkSession, lake: Path) -> None:
    path = str(lake / "table")
    table = create_table(spark, DeltaTarget(path=path), FIELDS, pipeline="orders")
    rows = spark.range(10).selectExpr("id", "cast(0 AS int) AS n")
    rows.write.format("delta").mode("append").save(path)  # version 1
    spark.sql(f"UPDATE delta.`{path}` SET n = 1 WHERE id < 4")  # 2
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 9")  # 3
    spark.range(8, 12).createOrReplaceTempView("changed")
    spark.sql(
        f"MERGE INTO delta.`{path}` t USING changed s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = 5 "
        "WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, 0)"
    )  # 4: updates 8, inserts 9, 10, 11
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES (a = 'b')")  # 5
    counts = count_changes(table, 0, 5)
    assert (counts.inserted, counts.updated, counts.deleted) == (13, 5, 1)
    assert counts.arrival is not None
    assert timedelta(0) <= datetime.now(timezone.utc) - counts.arrival < timedelta(minutes=5)
    assert (count_changes(table, 2, 3).deleted, count_changes(table, 2, 3).inserted) == (1, 0)
    assert count_changes(table, 4, 5) == ChangeCounts(0, 0, 0, None)
    assert count_changes(table, 5, 5) == ChangeCounts(0, 0, 0, None)

    first = count_changes(table, None, 5)
    assert (first.inserted, first.arrival) == (None, counts.arrival)
    rows.write.format("delta").mode("overwrite").save(path)  # 6: has no count of the rows that it removed
    silent = count_changes(table, 4, 6)
    assert (silent.inserted, silent.updated, silent.deleted) == (None, None, None)
    assert silent.arrival is not None and silent.arrival > counts.arrival
