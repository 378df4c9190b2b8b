"""Wrong statistics of wide decimals, which delta-rs wrote for older bridges, are found and removed."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from bridge.columns import col
from bridge.delta import file_statistics
from bridge.delta.file_statistics import repair_statistics
from bridge.delta.table import Table
from bridge.errors import TableError
from tests.delta.tables import (
    actions,
    at,
    by_copies,
    by_spark,
    content,
    frame,
    log_file,
    made,
    merged_by_delta_rs,
)

WRONG = 1234567890123456789
"""As a double it is 1234567890123456768."""
DECIMALS = [T.StructField("k", T.DecimalType(38, 0)), T.StructField("v", T.StringType())]


@pytest.fixture
def old(spark: SparkSession, lake: Path) -> Table:
    """A table as older bridges left it: two keys in files of delta-rs, a third one deleted by a deletion vector."""
    table = made(spark, lake / "old", fields=DECIMALS)
    for batch, keys in enumerate(((0,), (1, 2))):
        merged_by_delta_rs(table, [(Decimal(WRONG + i), "a") for i in keys], at(batch))
    table.delta().delete("cast(k as string) = '1234567890123456791'")
    return table


@pytest.mark.versions
def test_wrong_statistics_are_removed_and_no_key_is_doubled(spark: SparkSession, old: Table) -> None:
    one, two = Decimal(WRONG), Decimal(WRONG + 1)
    asked = old.delta().toDF().where(col("k").isin(one, two))
    assert asked.count() < 2, "the fault is not there"
    warning = repair_statistics(old)
    assert warning is not None and "2 files had wrong statistics of k, written by delta-rs" in warning
    assert repair_statistics(old) is None
    assert old.delta().toDF().where(col("k").isin(one, two)).count() == 2
    assert content(old) == {(one, "a"), (two, "a")}, "a deleted row stays deleted"
    version = old.delta().history(1).collect()[0]["version"]
    (info, *adds) = actions(old, version)
    assert info["commitInfo"]["operation"] == "COMPUTE STATS"
    assert [sorted(json.loads(a["add"]["stats"])["minValues"]) for a in adds] == [["v"], ["v"]]
    assert not any(a["add"]["dataChange"] for a in adds)
    feed = spark.read.format("delta").option("readChangeFeed", True).option("startingVersion", version)
    assert feed.load(str(old.target.path)).isEmpty()
    for batch, merge in ((2, by_spark), (3, by_copies)):
        changes = frame(old, [("+U", one, str(batch)), ("+U", two, str(batch))])
        assert merge(old, changes, key=["k"], progress=at(batch)).updated == 2
    assert content(old) == {(one, "3"), (two, "3")}


def test_a_file_that_is_removed_meanwhile_does_not_come_back(
    old: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, waiting = file_statistics.without_bounds, [f"cast(k as string) = '{WRONG}'"]

    def without(text: str, columns: Collection[str]) -> str:
        while waiting:
            old.delta().delete(waiting.pop())
        return real(text, columns)

    monkeypatch.setattr(file_statistics, "without_bounds", without)
    warning = repair_statistics(old)
    assert warning is not None and "1 files had wrong statistics" in warning
    assert content(old) == {(Decimal(WRONG + 1), "a")}


def test_a_table_without_wide_decimals_is_not_scanned(spark: SparkSession, lake: Path) -> None:
    fields = [T.StructField("k", T.DecimalType(15, 5)), T.StructField("v", T.StringType())]
    table = made(spark, lake / "t", fields=fields)
    log_file(table, 0).unlink()
    assert repair_statistics(table) is None


def test_a_delta_without_the_methods_is_an_error(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", fields=DECIMALS)
    nowhere: dict[str, Any] = {"location": 5}
    with pytest.raises(TableError, match="has no way to find them"):
        repair_statistics(replace(table, **nowhere))
