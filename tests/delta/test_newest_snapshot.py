"""Delta's own snapshot of the newest version."""

from __future__ import annotations

from pathlib import Path

import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from bridge.delta.newest_snapshot import newest_snapshot


@pytest.mark.versions
def test_it_is_that_of_the_newest_commit(spark: SparkSession, lake: Path) -> None:
    place = str(lake / "t")
    for _ in range(2):
        spark.range(1).write.format("delta").mode("append").save(place)
    table = DeltaTable.forPath(spark, place)
    snapshot = newest_snapshot(spark, table)
    assert (snapshot.version(), snapshot.metadata().id()) == (1, table.detail().collect()[0]["id"])
