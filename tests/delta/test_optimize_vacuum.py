"""OPTIMIZE follows the table's clustering; VACUUM counts in whole hours and does not delete feed consumers."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.delta.feed_consumers import FeedConsumers
from bridge.delta.optimize_vacuum import Optimized, maintenance_times, optimize, vacuum
from bridge.delta.table import open_table
from tests.delta.tables import FIELDS, actions, append, create_fed, target


@pytest.mark.slow
def test_a_clustered_table_is_clustered(spark: SparkSession, lake: Path) -> None:
    place = lake / "t"
    create_fed(spark, place, "id BIGINT, v STRING", "CLUSTER BY (id)")
    table = open_table(spark, target(place), FIELDS)
    assert maintenance_times(table) == {}
    for n in range(3):
        append(table, [(n, "a")])
    assert optimize(table) == Optimized(removed=3, added=1)
    (info,) = [a["commitInfo"] for a in actions(table, 4) if "commitInfo" in a]
    assert info["operationParameters"]["clusterBy"] == '["id"]'
    assert info["operationParameters"]["zOrderBy"] == "[]"
    consumers = FeedConsumers(table)
    consumers.register("p", 1, "x")
    assert vacuum(table, 167.5 * 3600) == 0  # a week, which Delta's own check lets pass
    assert [c.pipeline for c in consumers.all()] == ["p"]
    assert set(maintenance_times(table)) == {"OPTIMIZE", "VACUUM"}
