"""No reader wrongly skips a file by its statistics, whichever engine wrote them, at the limits of every type.

Wrong statistics of wide decimals, which delta-rs wrote for older bridges, are found and removed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as T

from bridge.columns import KIND, col
from bridge.delta import file_statistics
from bridge.delta.file_statistics import repair_statistics
from bridge.delta.merge_driver import DriverEngine
from bridge.delta.table import Table
from bridge.errors import TableError
from tests.delta.limits import KINDS
from tests.delta.tables import (
    actions,
    at,
    by_copies,
    by_marks,
    by_spark,
    content,
    frame,
    log_file,
    made,
    merged_by_delta_rs,
)

FIELDS = [T.StructField("id", T.LongType()), *(T.StructField(n, k.type) for n, k in KINDS.items())]
FIELDS.append(T.StructField("v", T.LongType()))
KEY = [n for n in KINDS if n != "float"]
ROWS = max(len(kind.limits) for kind in KINDS.values())
ARROW = pa.schema(
    [("id", pa.int64()), *((n, k.arrow) for n, k in KINDS.items()), ("v", pa.int64()), (KIND, pa.string())]
)

Row = dict[str, Any]


LIMITS: list[Row] = [
    {"id": i, **{n: k.limits[i % len(k.limits)] for n, k in KINDS.items()}} for i in range(ROWS)
]


@st.composite
def tables(draw: st.DrawFn) -> list[Row]:
    rows = [{"id": i, **{n: draw(k.drawn) for n, k in KINDS.items()}} for i in range(ROWS)]
    assume(len({tuple(row[n] for n in KEY) for row in rows}) == ROWS)
    return rows


def arrow(rows: Sequence[Row], v: int) -> pa.Table:
    return pa.Table.from_pylist([{**row, "v": v, KIND: "+U"} for row in rows], ARROW)


def rows_of(spark: SparkSession, rows: Sequence[Row], v: int) -> DataFrame:
    shape = T.StructType([*FIELDS, T.StructField(KIND, T.StringType())])
    cached = spark.createDataFrame(arrow(rows, v), shape).persist()
    cached.count()
    return cached


def seen_by_spark(table: Table, rows: Sequence[Row], names: Sequence[str]) -> set[int]:
    """The ids of rows that a filter on all their values returns. One scan for all: a file of two rows is read only
    where its statistics allow all values of one of them."""
    same = (reduce(Column.__and__, (col(n) == KINDS[n].spark(row[n]) for n in names)) for row in rows)
    return {row[0] for row in table.delta().toDF().where(reduce(Column.__or__, same)).select("id").collect()}


def seen_by_rust(table: Table, rows: Sequence[Row], names: Sequence[str]) -> set[int]:
    queries = QueryBuilder().register("t", DeltaTable(str(table.target.path)))
    conditions = (" AND ".join(f'"{n}" = {KINDS[n].rust(row[n])}' for n in names) for row in rows)
    results = (pa.table(queries.execute(f"SELECT id FROM t WHERE {text}").read_all()) for text in conditions)
    return {id for ids in results for id in ids["id"].to_pylist()}


def missed(
    seen: Callable[[Table, Sequence[Row], Sequence[str]], set[int]], table: Table, rows: Sequence[Row]
) -> list[tuple[str, Any]]:
    """The column and value of each row that a filter does not return; each column of these rows is filtered alone."""
    found = seen(table, rows, KEY)
    lost = [row for row in rows if row["id"] not in found]
    return [(n, row[n]) for row in lost[:2] for n in KEY if row["id"] not in seen(table, [row], [n])] or [
        ("all", row["id"]) for row in lost
    ]


def no_row_is_missed(spark: SparkSession, place: Path, rows: Sequence[Row]) -> None:
    spark_table, driver_table = (made(spark, place / name, fields=FIELDS) for name in ("spark", "driver"))
    in_two_rows = DriverEngine(choose_rewrites=lambda *_: [])
    for number in range(0, len(rows), 2):  # so that each value is the least or the greatest of its file
        two = arrow(rows[number : number + 2], 0)
        in_two_rows.merge(driver_table, two, key=["id"], progress=at(number))
    changes = rows_of(spark, rows, 0)
    plain = changes.drop(KIND).repartitionByRange(len(rows) // 2, "id")
    plain.write.format("delta").mode("append").save(spark_table.target.path)
    for table in (spark_table, driver_table):
        assert table.delta().toDF().count() == len(rows)
        for seen in (seen_by_spark, seen_by_rust):
            assert not missed(seen, table, rows), f"{seen.__name__} in files of {table}"
        nan = table.delta().toDF().where("float = CAST('NaN' AS DOUBLE)").count()
        assert nan == sum(math.isnan(row["float"]) for row in rows)
    for table, engines in (
        (spark_table, (by_marks, by_copies, by_spark)),
        (driver_table, (by_copies, by_marks, by_spark)),
    ):
        for v, merge in enumerate(engines, 1):
            changes = rows_of(spark, rows, v)
            done = merge(table, changes, key=KEY, progress=at(len(rows) + v))
            assert (done.inserted, done.updated) == (0, len(rows)), f"{merge} into {table}"
        assert table.delta().toDF().count() == len(rows)


def test_values_at_the_limits_are_found_by_every_reader(spark: SparkSession, lake: Path) -> None:
    no_row_is_missed(spark, lake, LIMITS)


@pytest.mark.slow
@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],  # an example takes seconds, and `missed` names the column
)
@given(rows=tables())
def test_many_values_are_found_by_every_reader(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, rows: list[Row]
) -> None:
    no_row_is_missed(spark, tmp_path_factory.mktemp("many"), rows)


@pytest.mark.parametrize("type", [T.StringType(), T.BinaryType()], ids=["string", "binary"])
def test_commits_do_not_grow_with_the_values(spark: SparkSession, lake: Path, type: T.DataType) -> None:
    table = made(spark, lake / "t", fields=[T.StructField("k", type), T.StructField("v", T.StringType())])
    for batch, (first, second) in enumerate((("a", "b"), ("b", "c"))):
        keys = [
            c * 100_000 if isinstance(type, T.StringType) else c.encode() * 100_000 for c in (first, second)
        ]
        changes = frame(table, [("+U", key, str(batch) * 100_000) for key in keys])
        by_copies(table, changes, key=["k"], progress=at(batch))
        assert log_file(table, batch + 1).stat().st_size < 5000
    assert table.delta().toDF().count() == 3


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
