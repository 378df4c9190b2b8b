"""What the engine `driver` writes, what others read of it, and what other writers do to it.

The contract that all engines share is tested in test_merge_spark and test_merge_spark_histories.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from bridge.delta.changes_in_driver import Limits
from bridge.delta.driver_merge.rewrites import files_to_rewrite
from bridge.delta.ingest_progress import read_progress
from bridge.delta.merge_contract import MergeResult
from bridge.delta.merge_driver import DriverEngine
from bridge.delta.table import Table
from bridge.errors import ConcurrentRunError, TableError
from bridge.ways import NotThisWay
from tests.delta.tables import (
    FIELDS,
    actions,
    append,
    at,
    by_marks,
    by_spark,
    content,
    frame,
    kinds,
    log_file,
    made,
)


def feed(table: Table, first: int, last: int) -> set[tuple[Any, ...]]:
    reader = table.spark.read.format("delta").option("readChangeFeed", True)
    rows = reader.option("startingVersion", first).option("endingVersion", last).load(table.target.path)
    return {tuple(row) for row in rows.select("id", "v", "_change_type", "_commit_version").collect()}


def seen_by_rust(table: Table) -> set[tuple[Any, ...]]:
    queries = QueryBuilder().register("t", DeltaTable(str(table.target.path)))
    rows = pa.table(queries.execute("SELECT id, v FROM t").read_all())
    return {tuple(row.values()) for row in rows.to_pylist()}


def test_rows_are_marked_and_added(spark: SparkSession, lake: Path) -> None:
    """No file is copied, and the feed is that of Spark's MERGE."""
    rows, changes = [(i, "a") for i in range(100)], [("+U", 3, "b"), ("-D", 5, None), ("+I", 200, "n")]
    tables = [made(spark, lake / name, rows=rows) for name in ("vectors", "spark")]
    done = [
        merge(table, frame(table, changes), key=["id"], progress=at(0))
        for merge, table in zip((by_marks, by_spark), tables, strict=True)
    ]
    assert done == [MergeResult(2, 1, 1, 1)] * 2
    one, other = tables
    assert feed(one, 2, 2) == feed(other, 2, 2) and len(feed(one, 2, 2)) == 4
    assert content(one) == content(other) == seen_by_rust(one)
    by_kind = [next(iter(action)) for action in actions(one, 2)]
    assert by_kind == ["commitInfo", "txn", "remove", "add", "add", "cdc"]
    metrics, of_spark = (actions(t, 2)[0]["commitInfo"]["operationMetrics"] for t in tables)
    assert set(metrics) <= set(of_spark) and int(metrics["executionTimeMs"]) >= 0
    (before,) = (a["remove"]["path"] for a in actions(one, 2) if "remove" in a)
    kept, new = (a["add"] for a in actions(one, 2) if "add" in a)
    assert (kept["path"], kept["deletionVector"]["cardinality"]) == (before, 2)
    assert "deletionVector" not in new and '"numRecords":2' in new["stats"]


def test_inserts_alone_need_no_file_of_the_feed(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t")
    by_marks(table, frame(table, [("+I", 1, "a"), ("+U", 2, "b")]), key=["id"], progress=at(0))
    assert kinds(table, 1) == {"commitInfo", "txn", "add"}
    assert feed(table, 1, 1) == {(1, "a", "insert", 1), (2, "b", "insert", 1)}


def test_many_small_batches(spark: SparkSession, lake: Path) -> None:
    """Files are few, the log has checkpoints, every reader sees the same rows, and the feed has each change once."""
    table = made(
        spark, lake / "t", rows=[(i, "0") for i in range(300)], properties={"delta.checkpointInterval": "7"}
    )
    dice, expected = random.Random(3), {i: "0" for i in range(300)}
    engine = DriverEngine(min_rows_a_change=0)
    for number in range(60):
        keys = dice.sample(range(400), 9)
        changes = [("-D", k, None) if dice.random() < 0.3 else ("+U", k, str(number)) for k in keys]
        for kind, key, value in changes:
            if kind == "-D":
                expected.pop(key, None)
            else:
                expected[key] = str(value)
        data = pa.table(
            {
                "id": [key for _, key, _ in changes],
                "v": pa.array([value for *_, value in changes], pa.string()),
                "__kind": [kind for kind, *_ in changes],
            }
        )
        engine.merge(table, data, key=["id"], progress=at(number))
        if number == 30:
            table.delta().optimize().executeCompaction()
    jvm: Any = spark._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    assert content(table) == set(expected.items()) == seen_by_rust(table)
    assert len(table.delta().toDF().inputFiles()) < 20
    checkpoints = sorted(lake.glob("t/_delta_log/*.checkpoint.parquet"))
    assert len(checkpoints) > 5
    assert read_progress(table, "p") == (at(59), 62)
    # The feed leads from the first version to the newest one.
    rows: dict[int, str] = {i: "0" for i in range(300)}
    ordered = sorted(feed(table, 2, 62), key=lambda row: (row[3], row[2] in ("insert", "update_postimage")))
    for key, value, kind, _ in ordered:
        if kind in ("delete", "update_preimage"):
            assert rows.pop(key) == value
        else:
            assert key not in rows
            rows[key] = value
    assert rows == expected
    # An engine that reads the log anew, from a checkpoint, goes on with the same rows.
    last = frame(table, [("-D", key, None) for key in expected])
    assert by_marks(table, last, key=["id"], progress=at(60)).deleted == len(expected)
    assert content(table) == set() == seen_by_rust(table)


def test_columns_that_the_definition_lacks_keep_their_values(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a"), (2, "a"), (3, "a")])
    spark.sql(f"ALTER TABLE delta.`{lake}/t` ADD COLUMN w STRING")
    table.delta().update("id = 1", {"w": "'user'"})
    changes = frame(table, [("+U", 1, "b"), ("+U", 2, "b"), ("+U", 9, "b")])
    by_marks(table, changes, key=["id"], progress=at(0))
    assert content(table) == {(1, "b", "user"), (2, "b", None), (3, "a", None), (9, "b", None)}


def test_several_rows_of_a_key(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a"), (2, "a"), (3, "a")])
    append(table, [(1, "b"), (2, "c")])
    changes = frame(table, [("+U", 1, "b"), ("-D", 2, None)])
    assert by_marks(table, changes, key=["id"], progress=at(0)) == MergeResult(3, 0, 1, 2)
    assert sorted(map(tuple, table.delta().toDF().collect())) == [(1, "b"), (1, "b"), (3, "a")]


class Meanwhile(DriverEngine):
    """Lets something happen between the reading of the table and the commit, once."""

    def __init__(self, what: Callable[[], object], min_rows_a_change: int = 0) -> None:
        def chosen(files: Mapping[str, Any], marked: Mapping[str, int], rows: int) -> list[str]:
            while waiting:
                waiting.pop()()
            return files_to_rewrite(files, marked, rows)

        waiting = [what]
        super().__init__(min_rows_a_change=min_rows_a_change, choose_rewrites=chosen)


OTHERS: dict[str, Callable[[Table], object]] = {
    "an update": lambda t: t.delta().update("id = 2", {"v": "'user'"}),
    "a delete of the same row": lambda t: t.delta().delete("id = 1"),
    "rows of a key of the batch": lambda t: append(t, [(9, "user")]),
    "OPTIMIZE": lambda t: t.delta().optimize().executeCompaction(),
}


@pytest.mark.parametrize(
    "min_rows", [0, pytest.param(1 << 60, marks=pytest.mark.slow)], ids=["marks", "copies"]
)
@pytest.mark.parametrize("other", [pytest.param(other, id=name) for name, other in OTHERS.items()])
def test_other_writers_in_between(
    spark: SparkSession, lake: Path, other: Callable[[Table], object], min_rows: int
) -> None:
    table = made(spark, lake / "t", rows=[(1, "a"), (2, "a")])
    append(table, [(3, "a")])
    changes = frame(table, [("+U", 1, "b"), ("+U", 9, "b"), ("+U", None, "b")])
    Meanwhile(lambda: other(table), min_rows).merge(table, changes, key=["id"], progress=at(0))
    assert {(k, v) for k, v in content(table) if k != 2} == {(1, "b"), (3, "a"), (9, "b"), (None, "b")}
    assert table.delta().toDF().count() == 5


def test_a_run_that_was_overtaken_has_no_effect(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")])

    def other() -> None:
        by_spark(table, frame(table, [("+U", 1, "other")]), key=["id"], progress=at(0, run="run-2"))

    with pytest.raises(ConcurrentRunError, match="run 'run-2' has committed batch 0, this is run 'run-1'"):
        Meanwhile(other).merge(table, frame(table, [("+U", 1, "b")]), key=["id"], progress=at(0))
    assert content(table) == {(1, "other")}


def test_another_table_in_its_place(spark: SparkSession, lake: Path) -> None:
    table, engine = made(spark, lake / "t"), DriverEngine()
    engine.merge(table, frame(table, [("+U", 1, "a")]), key=["id"], progress=at(0))
    made(spark, lake / "t2")
    (lake / "t").rename(lake / "gone")
    (lake / "t2").rename(lake / "t")
    with pytest.raises(TableError, match="was replaced by another one during this run"):
        engine.merge(table, frame(table, [("+U", 1, "b")]), key=["id"], progress=at(1))
    assert not log_file(table, 1).exists()


def field(name: str, type: T.DataType) -> T.StructField:
    return T.StructField(name, type)


ROWS_IN_AN_ARRAY = T.ArrayType(T.StructType([field("x", T.LongType())]))
REFUSED: list[tuple[Sequence[T.StructField], dict[str, str], str]] = [
    (FIELDS, {"delta.enableRowTracking": "true"}, "the table has the feature 'rowTracking'"),
    ([*FIELDS, field("a", ROWS_IN_AN_ARRAY)], {}, "column 'a' is ARRAY<STRUCT<X:BIGINT>>"),
    ([field("id", T.DoubleType()), *FIELDS[1:]], {}, "the key column 'id' is DOUBLE"),
]


@pytest.mark.parametrize(("fields", "properties", "reason"), REFUSED, ids=[r[2] for r in REFUSED])
def test_tables_that_are_left_to_others(
    spark: SparkSession, lake: Path, fields: Sequence[T.StructField], properties: dict[str, str], reason: str
) -> None:
    table = made(spark, lake / "t", fields=fields, properties=properties)
    with pytest.raises(NotThisWay) as caught:
        by_marks(table, frame(table, []), key=["id"], progress=at(0))
    assert str(caught.value) == reason
    assert not log_file(table, 1).exists()


def test_batches_that_are_left_to_others(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(i, "a") for i in range(20)])
    three = frame(table, [("+U", i, "b") for i in range(3)])
    arrow = three.toArrow()
    for limits, reason in (
        (Limits(10, 1 << 30), "the batch has 0 MiB, more than 0 MiB"),
        (Limits(1 << 30, 10), "the batch touches files of 0 MiB, more than 0 MiB"),
    ):
        with pytest.raises(NotThisWay, match=f"^{reason}$"):
            DriverEngine(limits).merge(table, arrow, key=["id"], progress=at(0))
    elsewhere = replace(table, location="hdfs://host/t")
    with pytest.raises(NotThisWay, match=r"^the table is stored in hdfs, which only Spark reaches$"):
        by_marks(elsewhere, three, key=["id"], progress=at(0))
    assert not log_file(table, 2).exists()


def test_a_large_batch_does_not_come_into_the_driver(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")])
    changes = frame(table, [("+U", i, "b") for i in range(50)]).persist()
    changes.count()
    engine, context = DriverEngine(Limits(10, 1 << 30)), spark.sparkContext
    context.setJobGroup("large", "a large batch")
    try:
        for refused in (
            lambda: engine.merge(table, changes, key=["id"], progress=at(0)),
            lambda: engine.refuse(table, changes, key=["id"]),
        ):
            with pytest.raises(NotThisWay, match=r"^the batch has 0 MiB, more than 0 MiB$"):
                refused()
        assert list(context.statusTracker().getJobIdsForGroup("large")) == []
    finally:
        changes.unpersist()
        context._jsc.clearJobGroup()


def test_a_missing_file_is_left_to_an_engine_that_names_it(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")])
    next((lake / "t").glob("*.parquet")).unlink()
    with pytest.raises(NotThisWay, match=r"^a file of the table is missing or cannot be read$"):
        by_marks(table, frame(table, [("+U", 1, "b")]), key=["id"], progress=at(0))
