"""Files that tasks have written are appended in one commit, with the progress, once."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from bridge.delta.append import append_batch
from bridge.delta.append_files import AppendTarget, FileAppends
from bridge.delta.change_counts import count_changes
from bridge.delta.ingest_progress import read_progress
from bridge.delta.merge_contract import MergeResult
from bridge.delta.table import Table
from bridge.errors import ConcurrentRunError, TableError
from bridge.ingest_progress import IngestProgress
from bridge.lake.new_files import write_data_file
from bridge.lake.snapshot import Action, Snapshot
from bridge.ways import NotThisWay
from tests.delta.tables import FIELDS, actions, append, at, content, frame, log_file, made


def written(target: AppendTarget, *rows: tuple[Any, ...]) -> Action:
    columns = dict(zip(target.schema.names, zip(*rows, strict=True), strict=True))
    table = pa.table({f.name: pa.array(columns[f.name], f.type) for f in target.schema})
    return write_data_file(target.store, table, target.columns_with_statistics)


def appended(appends: FileAppends, progress: IngestProgress, *rows: tuple[Any, ...]) -> MergeResult:
    target = appends.target()
    return appends.commit(target, [written(target, *rows)] if rows else [], rows=len(rows), progress=progress)


def feed(table: Table, version: int) -> set[tuple[Any, ...]]:
    options = {"readChangeFeed": "true", "startingVersion": str(version), "endingVersion": str(version)}
    return {(r["_change_type"], r["id"], r["v"]) for r in table.read(options).collect()}


def test_rows_and_progress_are_one_commit_as_spark_s(spark: SparkSession, lake: Path) -> None:
    """What readers, the change feed, the history and the counts show is what an append of Spark shows."""
    ours, theirs = made(spark, lake / "ours"), made(spark, lake / "theirs")
    rows = [(1, "a"), (1, "a"), (None, None)]
    result = appended(FileAppends(ours), at(0), *rows)
    append_batch(theirs, frame(theirs, [("+I", *row) for row in rows]), rows=3, progress=at(0))
    assert result == MergeResult(version=1, inserted=3)
    for table in (ours, theirs):
        assert table.delta().toDF().count() == 3 and content(table) == set(rows)
        assert feed(table, 1) == {("insert", *row) for row in rows}
        assert read_progress(table, "p") == (replace(at(0), key=()), 1)
        assert next(a["txn"] for a in actions(table, 1) if "txn" in a)["appId"] == "bridge/p"
        assert count_changes(table, 0, 1).inserted == 3
    names = ("operation", "operationParameters", "isBlindAppend", "isolationLevel")
    one, other = ((t.delta().history(1).collect()[0]).asDict() for t in (ours, theirs))
    assert {n: one[n] for n in names[:3]} == {n: other[n] for n in names[:3]}
    assert one["operationMetrics"].keys() == other["operationMetrics"].keys()


def test_a_batch_without_rows_commits_its_progress(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t")
    assert appended(FileAppends(table), at(0)) == MergeResult(version=1)
    assert read_progress(table, "p") == (at(0), 1)


def test_a_batch_that_is_there_already_adds_nothing(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t")
    appends = FileAppends(table)
    appended(appends, at(0), (1, "a"))
    assert appended(appends, at(0), (1, "a")) == MergeResult(version=1, skipped=True)
    assert appended(FileAppends(table), at(0), (1, "a")) == MergeResult(version=1, skipped=True)
    with pytest.raises(ConcurrentRunError, match="run 'run-1' has committed batch 0, this is run 'run-2'"):
        appended(appends, at(0, run="run-2"), (2, "b"))
    assert content(table) == {(1, "a")} and not log_file(table, 2).exists()


OTHERS: dict[str, Callable[[Table], object]] = {
    "an append": lambda t: append(t, [(9, "user")]),
    "a delete": lambda t: t.delta().delete("id = 1"),
    "OPTIMIZE": lambda t: t.delta().optimize().executeCompaction(),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS.keys())
def test_other_writers_in_between(spark: SparkSession, lake: Path, other: Callable[[Table], object]) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")])
    append(table, [(2, "a")])
    appends = FileAppends(table)
    target = appends.target()
    add = written(target, (3, "a"))
    other(table)
    appends.commit(target, [add], rows=1, progress=at(0))
    assert {(2, "a"), (3, "a")} <= content(table)


def test_many_batches_with_checkpoints(spark: SparkSession, lake: Path) -> None:
    """Spark reads the log that the appends and their checkpoints make, and so does a run that begins anew."""
    table = made(spark, lake / "t", properties={"delta.checkpointInterval": "4"})
    appends = FileAppends(table)
    for n in range(11):
        appended(appends, at(n), (n, "x"))
        appends = FileAppends(table) if n % 5 == 4 else appends
    assert content(table) == {(n, "x") for n in range(11)}
    assert sorted(p.name[:20] for p in (lake / "t/_delta_log").glob("*.checkpoint.parquet")) == [
        f"{v:020}" for v in (4, 8)
    ]
    assert read_progress(table, "p") == (at(10), 11)


def test_threads_may_share_it(spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One reads ahead while another one commits. Without the lock both count a commit, and the next one leaves a gap
    in the log."""
    table = made(spark, lake / "t")
    appends, apply = FileAppends(table), Snapshot.apply
    over = threading.Event()

    def slowly(self: Snapshot, actions: Any) -> None:
        apply(self, actions)
        time.sleep(0.02)

    def read_ahead() -> None:
        while not over.is_set():
            appends.target()

    monkeypatch.setattr(Snapshot, "apply", slowly)
    reader = threading.Thread(target=read_ahead)
    reader.start()
    try:
        for n in range(9):
            appended(appends, at(n), (n, "x"))
    finally:
        over.set()
        reader.join()
    assert sorted(path.name for path in log_file(table, 0).parent.glob("*.json")) == [
        f"{version:020}.json" for version in range(10)
    ]
    assert content(table) == {(n, "x") for n in range(9)}


def test_files_for_other_columns_are_not_committed(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t")
    appends = FileAppends(table)
    target = appends.target()
    add = written(target, (1, "a"))
    spark.sql(f"ALTER TABLE delta.`{table.target.path}` ADD COLUMN more STRING")
    with pytest.raises(NotThisWay, match=r"^the columns or properties of the table have changed"):
        appends.commit(target, [add], rows=1, progress=at(0))
    newer = appends.target()
    assert newer.schema.names == ["id", "v", "more"]
    appends.commit(newer, [written(newer, (1, "a", None))], rows=1, progress=at(0))
    assert content(table) == {(1, "a", None)}


def test_another_table_in_its_place(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t")
    appends = FileAppends(table)
    made(spark, lake / "t2")
    (lake / "t").rename(lake / "gone")
    (lake / "t2").rename(lake / "t")
    with pytest.raises(TableError, match="was replaced by another one during this run"):
        appended(appends, at(0), (1, "a"))


def test_statistics_prune_files_and_count_rows(spark: SparkSession, lake: Path) -> None:
    """Of the columns that the table's property asks for."""
    table = made(spark, lake / "t", properties={"delta.dataSkippingNumIndexedCols": "1"})
    appends = FileAppends(table)
    appended(appends, at(0), (1, "a"), (5, "b"))
    appended(appends, at(1), (7, "c"))
    (stats,) = (json.loads(a["add"]["stats"]) for a in actions(table, 1) if "add" in a)
    assert (stats["numRecords"], stats["minValues"], stats["maxValues"]) == (2, {"id": 1}, {"id": 5})
    assert table.delta().toDF().where("id = 7 AND v = 'c'").count() == 1


NESTED = [*FIELDS, T.StructField("a", T.MapType(T.StringType(), T.LongType()))]
REFUSED: list[tuple[Sequence[T.StructField], dict[str, str], str]] = [
    (NESTED, {}, "column 'a' is MAP<STRING,BIGINT>"),
    (FIELDS, {"delta.enableRowTracking": "true"}, "the table has the feature 'rowTracking'"),
    (FIELDS, {"delta.columnMapping.mode": "name"}, "the table has the feature 'columnMapping'"),
]


@pytest.mark.parametrize(("fields", "properties", "reason"), REFUSED, ids=[r[2] for r in REFUSED])
def test_tables_that_are_left_to_spark(
    spark: SparkSession, lake: Path, fields: Sequence[T.StructField], properties: dict[str, str], reason: str
) -> None:
    table = made(spark, lake / "t", fields=fields, properties=properties)
    with pytest.raises(NotThisWay) as caught:
        FileAppends(table)
    assert str(caught.value) == reason


def test_tables_elsewhere_or_with_partitions_are_left_to_spark(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t")
    with pytest.raises(NotThisWay, match=r"^the table is stored in hdfs, which only Spark reaches$"):
        FileAppends(replace(table, location="hdfs://host/t"))
    path = lake / "parts"
    spark.sql(f"CREATE TABLE delta.`{path}` (id BIGINT, v STRING) USING delta PARTITIONED BY (v)")
    detail = spark.sql(f"DESCRIBE DETAIL delta.`{path}`").collect()[0]
    with pytest.raises(NotThisWay, match=r"^the table is partitioned by v$"):
        FileAppends(replace(table, location=detail["location"], id=detail["id"]))
