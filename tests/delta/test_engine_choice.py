"""The choice of an engine for a batch, and the reason that is recorded."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from bridge.definition import Engine, MergeSettings
from bridge.delta.engine_choice import Engines
from bridge.delta.ingest_progress import read_progress
from bridge.delta.merge_contract import MergeResult
from bridge.delta.merge_semantics import kept_column
from bridge.delta.table import Table
from bridge.errors import TableError
from tests.delta.tables import FIELDS, actions, at, content, frame, made

SMALL = MergeSettings(max_batch_bytes=1)
NARROW = MergeSettings(max_touched_bytes=1)


def batch(table: Table, *changes: tuple[object, ...]) -> DataFrame:
    cached = frame(table, changes).persist()
    cached.count()
    return cached


def operation(table: Table, version: int) -> str:
    return str(next(a["commitInfo"] for a in actions(table, version) if "commitInfo" in a)["operation"])


def recorded_engine(table: Table) -> str:
    progress = read_progress(table, "p")
    assert progress is not None
    return progress[0].engine


def test_auto_chooses_the_driver_and_records_it(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t")
    done = Engines(MergeSettings()).merge(
        table, batch(table, ("+U", 1, "a")), key=["id"], adds=1, progress=at(0)
    )
    assert done == MergeResult(1, inserted=1)
    assert recorded_engine(table) == done.engine == "driver"


def test_rows_are_marked_where_the_batch_is_small_for_the_files(spark: SparkSession, lake: Path) -> None:
    table, engines = made(spark, lake / "t", rows=[(i, "a") for i in range(31)]), Engines(MergeSettings())
    few, more = batch(table, ("+U", 1, "b"), ("-D", 2, None)), [("+U", i, "c") for i in range(3, 7)]
    done = engines.merge(table, few, key=["id"], adds=1, progress=at(0))
    assert done == MergeResult(2, updated=1, deleted=1)
    assert any("deletionVector" in a["add"] for a in actions(table, 2) if "add" in a)
    assert engines.describe_choice(table, few, key=["id"]) == "driver"
    done = engines.merge(table, batch(table, *more), key=["id"], adds=4, progress=at(1))
    assert (done, done.engine) == (MergeResult(3, updated=4), "driver")
    assert not any("deletionVector" in a["add"] for a in actions(table, 3) if "add" in a)
    assert content(table) == {
        (1, "b"),
        (0, "a"),
        *((i, "c") for i in range(3, 7)),
        *((i, "a") for i in range(7, 31)),
    }


@pytest.mark.versions
def test_a_batch_that_is_too_large_fills_an_empty_table_and_is_merged_by_spark_later(
    spark: SparkSession, lake: Path
) -> None:
    table, engines = made(spark, lake / "t"), Engines(SMALL)
    first = batch(table, ("+U", 1, "a"), ("+I", 2, "a"), ("-D", 3, None))
    done = engines.merge(table, first, key=["id"], adds=2, progress=at(0))
    assert done == MergeResult(1, inserted=2)
    assert done.engine == recorded_engine(table)
    assert done.engine == (
        "spark (the batch has 0 MiB, more than 0 MiB; the table was empty, so nothing was merged)"
    )
    assert operation(table, 1) == "WRITE"
    done = engines.merge(
        table, batch(table, ("+U", 1, "b"), ("-D", 2, None)), key=["id"], adds=1, progress=at(1)
    )
    assert (done.updated, done.deleted) == (1, 1)
    assert done.engine == recorded_engine(table) == "spark (the batch has 0 MiB, more than 0 MiB)"
    assert operation(table, 2) == "MERGE"
    assert content(table) == {(1, "b")}


def test_a_batch_that_touches_too_much_goes_to_spark(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")])
    done = Engines(NARROW).merge(table, batch(table, ("+U", 1, "b")), key=["id"], adds=1, progress=at(0))
    assert done.engine == "spark (the batch touches files of 0 MiB, more than 0 MiB)"
    assert content(table) == {(1, "b")}


@pytest.mark.slow
def test_retractions_alone_need_no_table_with_rows(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t")
    for number, wanted in enumerate((MergeSettings(), SMALL, MergeSettings(Engine.SPARK))):
        done = Engines(wanted).merge(
            table, batch(table, ("-D", 1, None)), key=["id"], adds=0, progress=at(number)
        )
        assert done == MergeResult(number + 1)


def test_tables_that_the_driver_does_not_support(spark: SparkSession, lake: Path) -> None:
    fields = [*FIELDS, T.StructField("m", T.MapType(T.StringType(), T.LongType()))]
    table = made(spark, lake / "t", fields=fields)
    changes = batch(table, ("+U", 1, "a", {"x": 1}))
    message = (
        f"table {table}: `merge.engine: driver` is not possible, as column 'm' is MAP<STRING,BIGINT>; leave "
        "the option out, and Spark merges where the driver cannot"
    )
    with pytest.raises(TableError, match=re.escape(message)):
        Engines(MergeSettings(Engine.DRIVER)).merge(table, changes, key=["id"], adds=1, progress=at(0))
    done = Engines(MergeSettings()).merge(table, changes, key=["id"], adds=1, progress=at(0))
    assert done.engine.startswith("spark (column 'm' is MAP<STRING,BIGINT>; ")


def test_a_configured_engine_is_used(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")])
    for number, engine in enumerate((Engine.SPARK, Engine.DRIVER)):
        wanted = MergeSettings(engine, max_batch_bytes=1, max_touched_bytes=1)
        done = Engines(wanted).merge(
            table, batch(table, ("+U", 1, engine.value)), key=["id"], adds=1, progress=at(number)
        )
        assert done.engine == f"{engine.value} (set by merge.engine)"
        assert content(table) == {(1, engine.value)}


@pytest.mark.parametrize("settings", [MergeSettings(), SMALL, MergeSettings(Engine.SPARK)])
def test_changes_that_are_in_the_driver_are_merged_alike(
    spark: SparkSession, lake: Path, settings: MergeSettings
) -> None:
    """By each engine, and into an empty table, as from a frame."""
    table, engines = made(spark, lake / "t"), Engines(settings)
    batches = [
        [("+U", 1, "a"), ("+U", 2, "b"), ("-D", 9, None)],
        [("+U", 1, "a"), ("-D", 2, None), ("+U", 3, None)],
    ]
    done = [
        engines.merge(
            table,
            frame(table, changes).select("id", "v", "__kind").toArrow(),
            key=["id"],
            adds=2,
            progress=at(number),
        )
        for number, changes in enumerate(batches)
    ]
    assert [(r.inserted, r.updated, r.deleted) for r in done] == [(2, 0, 0), (1, 0, 1)]
    assert content(table) == {(1, "a"), (3, None)}
    kept = frame(table, [("+U", 1, None), ("+U", 3, "c"), ("+U", 5, None)]).toArrow()
    kept = kept.append_column(kept_column("v"), pa.array([True, False, True]))
    last = engines.merge(table, kept, key=["id"], adds=3, progress=at(2))
    assert (last.inserted, last.updated) == (1, 1)
    assert content(table) == {(1, "a"), (3, "c"), (5, None)}
