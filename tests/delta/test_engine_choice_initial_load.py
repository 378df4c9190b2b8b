"""An empty table is written without a MERGE, and only while it is empty."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from bridge.definition import Engine, MergeSettings
from bridge.delta.append import appended
from bridge.delta.engine_choice import Engines, initial_load
from bridge.delta.ingest_progress import read_progress
from bridge.delta.merge_contract import MergeResult
from bridge.delta.table import Table
from bridge.errors import ConcurrentRunError
from bridge.ingest_progress import IngestProgress
from bridge.ways import NotThisWay
from tests.delta.tables import append, at, content, frame, log_file, made
from tests.delta.test_merge_spark_concurrency import gated


def test_the_adds_are_the_table(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t")
    changes = frame(table, [("+U", 1, "a"), ("+I", None, None), ("-D", 3, None), ("-U", 4, "x")])
    assert initial_load(table, changes, rows=2, progress=at(0)) == MergeResult(1, inserted=2)
    assert content(table) == {(1, "a"), (None, None)}
    assert read_progress(table, "p") == (at(0), 1)
    feed = (
        spark.read.format("delta")
        .option("readChangeFeed", True)
        .option("startingVersion", 1)
        .load(str(lake / "t"))
    )
    assert {(r["id"], r["_change_type"]) for r in feed.collect()} == {(1, "insert"), (None, "insert")}


def test_a_table_whose_rows_are_all_gone_is_empty(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a"), (2, "b")])
    with pytest.raises(NotThisWay):
        initial_load(table, frame(table, [("+U", 1, "c")]), rows=1, progress=at(0))
    table.delta().delete("id = 1")
    with pytest.raises(NotThisWay):
        initial_load(table, frame(table, [("+U", 1, "c")]), rows=1, progress=at(0))
    table.delta().delete()
    assert initial_load(table, frame(table, [("+U", 1, "c")]), rows=1, progress=at(0)).inserted == 1
    assert content(table) == {(1, "c")}


def test_a_batch_that_is_known_is_not_written_again(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t")
    initial_load(table, frame(table, [("+U", 1, "c")]), rows=1, progress=at(0))
    table.delta().delete()
    with pytest.raises(ConcurrentRunError):
        initial_load(table, frame(table, [("+U", 1, "d")]), rows=1, progress=at(0, run="run-2"))
    assert content(table) == set()


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Calls a function after the table was seen to be empty, before it is written."""

    def arm(what: Callable[[], object]) -> None:
        def written(table: Table, changes: DataFrame, progress: IngestProgress, rows: int) -> MergeResult:
            what()
            return appended(table, changes, progress, rows)

        monkeypatch.setattr("bridge.delta.engine_choice.appended", written)

    return arm


def test_a_user_who_comes_first_is_not_overlooked(
    spark: SparkSession, lake: Path, meanwhile: Callable[[Callable[[], object]], None]
) -> None:
    table = made(spark, lake / "t")
    meanwhile(lambda: append(table, [(1, "user"), (7, "user")]))
    changes = frame(table, [("+U", 1, "a")]).persist()
    with pytest.raises(NotThisWay):
        initial_load(table, changes, rows=1, progress=at(0))
    assert not log_file(table, 2).exists()
    done = Engines(MergeSettings(Engine.SPARK)).merge(table, changes, key=["id"], adds=1, progress=at(0))
    assert done.updated == 1
    assert content(table) == {(1, "a"), (7, "user")}


@pytest.mark.slow
def test_a_user_who_comes_while_it_is_written_is_not_overlooked(spark: SparkSession, lake: Path) -> None:
    table, gate = made(spark, lake / "t"), lake / "gate"
    with ThreadPoolExecutor(1) as pool:
        own_session = table.on(spark.newSession())
        changes = gated(frame(table, [("+U", 1, "a")]), gate)
        running = pool.submit(lambda: initial_load(own_session, changes, rows=1, progress=at(0)))
        while not gate.with_suffix(".reached").exists():
            assert not running.done(), running.result()
        append(table, [(1, "user")])
        gate.touch()
        with pytest.raises(NotThisWay):
            running.result()
    assert content(table) == {(1, "user")}
