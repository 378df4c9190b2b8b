"""What other writers do to a MERGE of the engine `delta-rs`, and it to them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.delta import merge_delta_rs
from bridge.delta.ingest_progress import read_progress
from bridge.delta.merge_contract import MergeResult
from bridge.delta.table import Table
from bridge.errors import ConcurrentRunError, TableError
from tests.delta.tables import append, at, by_delta_rs, by_spark, content, frame, kinds, made


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Lets something happen between the reading of the table and the commit, once."""

    def arm(what: Callable[[], object]) -> None:
        real, waiting = merge_delta_rs.commit_merge, [what]

        def committed(*given: Any) -> MergeResult:
            while waiting:
                waiting.pop()()
            return real(*given)

        monkeypatch.setattr(merge_delta_rs, "commit_merge", committed)

    return arm


OTHERS: dict[str, Callable[[Table], object]] = {
    "an update": lambda t: t.delta().update("id = 2", {"v": "'user'"}),
    "rows of a key of the batch": lambda t: append(t, [(9, "user")]),
    "rows of a key that is null": lambda t: append(t, [(None, "user")]),
    "OPTIMIZE": lambda t: t.delta().optimize().executeCompaction(),
    "a property": lambda t: t.spark.sql(f"ALTER TABLE delta.`{t.target.path}` SET TBLPROPERTIES ('x' = 'y')"),
}


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(
            other,
            id=name,
            marks=() if name in ("OPTIMIZE", "rows of a key of the batch") else pytest.mark.slow,
        )
        for name, other in OTHERS.items()
    ],
)
def test_other_writers_in_between(
    spark: SparkSession,
    lake: Path,
    meanwhile: Callable[[Callable[[], object]], None],
    other: Callable[[Table], object],
) -> None:
    table = made(spark, lake / "t", rows=[(1, "a"), (2, "a")])
    append(table, [(3, "a")])
    meanwhile(lambda: other(table))
    changes = frame(table, [("+U", 1, "b"), ("+U", 9, "b"), ("+U", None, "b")])
    by_delta_rs(table, changes, key=["id"], progress=at(0))
    rows = {(k, v) for k, v in content(table) if k != 2}
    assert rows == {(1, "b"), (3, "a"), (9, "b"), (None, "b")}
    assert table.delta().toDF().count() == 5


def test_a_run_that_was_overtaken_has_no_effect(
    spark: SparkSession, lake: Path, meanwhile: Callable[[Callable[[], object]], None]
) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")])

    def other() -> None:
        by_spark(table, frame(table, [("+U", 1, "other")]), key=["id"], progress=at(0, run="run-2"))

    meanwhile(other)
    with pytest.raises(ConcurrentRunError, match="run 'run-2' has committed batch 0, this is run 'run-1'"):
        by_delta_rs(table, frame(table, [("+U", 1, "b")]), key=["id"], progress=at(0))
    assert content(table) == {(1, "other")}


def test_another_table_in_its_place(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t")
    made(spark, lake / "t2")
    (lake / "t").rename(lake / "gone")
    (lake / "t2").rename(lake / "t")
    with pytest.raises(TableError, match="was replaced by another one during this run"):
        by_delta_rs(table, frame(table, []), key=["id"], progress=at(0))


def test_spark_goes_on_from_checkpoints_of_delta_rs(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", properties={"delta.checkpointInterval": "3"})
    for number in range(8):
        by_delta_rs(table, frame(table, [("+U", number % 3, str(number))]), key=["id"], progress=at(number))
    assert list(lake.glob("t/_delta_log/*.checkpoint.parquet"))
    jvm = spark._jvm
    assert jvm is not None
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    assert content(table) == {(0, "6"), (1, "7"), (2, "5")}
    assert read_progress(table, "p") == (at(7), 8)
    feed = (
        spark.read.format("delta")
        .option("readChangeFeed", True)
        .option("startingVersion", 1)
        .load(str(lake / "t"))
    )
    assert feed.where("_change_type = 'insert'").count() == 3
    assert feed.where("_change_type like 'update%'").count() == 10
    with pytest.raises(ConcurrentRunError):
        by_spark(table, frame(table, []), key=["id"], progress=at(7, run="run-2"))
    assert kinds(table, 8) >= {"commitInfo", "txn"}
