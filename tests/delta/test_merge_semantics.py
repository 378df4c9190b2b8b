"""Engines execute any statement: a new semantics is a function, and no engine changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.definition import Engine, MergeSettings
from bridge.delta.engine_choice import Engines
from bridge.delta.merge_driver import DriverEngine
from bridge.delta.merge_semantics import (
    ADDS,
    INSERT_ALWAYS,
    KEPT,
    RETRACTS,
    Condition,
    Delete,
    Insert,
    MergeStatement,
    Update,
    after_truncate,
    insert_first,
    repair_by_key,
    soft_delete_by_key,
    upsert_by_key,
)
from bridge.ways import NotThisWay
from tests.delta.tables import FIELDS, NO_VECTORS, Merge, append, at, content, frame, made, on_any_table


@dataclass(frozen=True)
class Newer:
    """The condition holds, and the change has a greater version than the row."""

    of: Condition

    @property
    def sql(self) -> str:
        return f"{self.of.sql} AND __s.`version` > __t.`version`"

    def mask(self, changes: pa.Table, rows: pa.Table | None) -> npt.NDArray[np.bool_]:
        assert rows is not None
        newer = np.asarray(pc.greater(changes["version"], rows["version"]))
        return np.asarray(self.of.mask(changes, rows) & newer)


def newest_by_version(columns: Sequence[str], key: Sequence[str]) -> MergeStatement:
    """A sequence column: a change older than the row has no effect."""
    return MergeStatement(
        tuple(key),
        matched=(
            Delete(when=Newer(RETRACTS)),
            Update(tuple(columns), if_differs=("v",), when=Newer(ADDS)),
        ),
        insert=Insert(tuple(columns), when=ADDS),
    )


vectors = pytest.mark.parametrize("properties", [{}, NO_VECTORS], ids=["deletion vectors", "rewritten files"])


def test_the_statement_of_an_upsert() -> None:
    assert upsert_by_key(["id", "v"], ["id"]) == MergeStatement(
        key=("id",),
        matched=(
            Delete(when=RETRACTS),
            Update(("id", "v"), if_differs=("v",)),
        ),
        insert=Insert(("id", "v"), when=ADDS),
    )
    assert (RETRACTS.sql, ADDS.sql) == ("__s.__kind IN ('-U', '-D')", "NOT __s.__kind IN ('-U', '-D')")


@vectors
@on_any_table
def test_rows_that_never_change_again(
    merge: Merge, spark: SparkSession, lake: Path, properties: dict[str, str]
) -> None:
    table = made(spark, lake / "t", rows=[(1, "a"), (2, "a"), (None, "a")], properties=properties)
    changes = frame(table, [("+U", 1, "b"), ("-D", 2, None), ("+I", 3, "b"), ("+U", None, "b")])
    done = merge(table, changes, key=["id"], progress=at(0), semantics=insert_first)
    assert (done.inserted, done.updated, done.deleted) == (1, 0, 0)
    assert content(table) == {(1, "a"), (2, "a"), (3, "b"), (None, "a")}


@vectors
@on_any_table
def test_rows_that_stay_after_their_deletion(
    merge: Merge, spark: SparkSession, lake: Path, properties: dict[str, str]
) -> None:
    fields = (*FIELDS, T.StructField("gone", T.LongType()))
    rows = [(1, "a", None), (2, "a", None), (3, "a", 5), (4, "a", 5), (5, "a", 5), (6, "a", None)]
    table = made(spark, lake / "t", rows=rows, fields=fields, properties=properties)
    changes = [
        ("-D", 1, None, 7),
        ("+U", 2, "b", 7),
        ("+U", 3, "a", None),
        ("-D", 4, None, 5),
        ("-D", 5, None, 7),
    ]
    others = [("+U", 6, "a", None), ("-D", 7, None, 7), ("+U", 8, "b", 7)]
    semantics = partial(soft_delete_by_key, deleted_at="gone")
    done = merge(table, frame(table, [*changes, *others]), key=["id"], progress=at(0), semantics=semantics)
    assert (done.inserted, done.updated, done.deleted) == (1, 4, 0)
    unchanged = {(4, "a", 5), (6, "a", None)}
    assert content(table) == unchanged | {(1, "a", 7), (2, "b", 7), (3, "a", None), (5, "a", 7), (8, "b", 7)}


@vectors
def test_rows_that_no_change_matches_are_deleted(
    spark: SparkSession, lake: Path, properties: dict[str, str]
) -> None:
    """By Spark alone, also where nothing else changes; in one commit, whose feed has what came again as it was not."""
    table = made(spark, lake / "t", rows=[(1, "a"), (2, "a"), (3, "a"), (None, "a")], properties=properties)
    engines = Engines(MergeSettings(), insert_first)
    first: list[tuple[Any, ...]] = [("+U", 1, "a"), ("+U", 2, "b"), ("-D", 3, None), ("+U", 4, "b")]
    batches: list[tuple[list[tuple[Any, ...]], tuple[int, ...], dict[int, str]]] = [
        (first, (1, 1, 2), {1: "a", 2: "b", 4: "b"}),
        ([], (0, 0, 3), {}),
        ([("+U", 1, "c")], (1, 0, 0), {1: "c"}),
    ]
    for batch, (changes, counts, rows) in enumerate(batches):
        given = frame(table, changes).persist()
        adds = sum(kind == "+U" for kind, *_ in changes)
        done = engines.merge(table, given, key=["id"], adds=adds, progress=at(batch), deletes_others=True)
        assert done.engine == "spark (a truncate deletes rows that the batch does not name)"
        assert (done.inserted, done.updated, done.deleted) == counts
        assert content(table) == set(rows.items())
    with pytest.raises(NotThisWay, match="a truncate deletes rows"):
        DriverEngine().merge(table, given, key=["id"], progress=at(9), semantics=after_truncate)


@vectors
@on_any_table
def test_a_sequence_column(merge: Merge, spark: SparkSession, lake: Path, properties: dict[str, str]) -> None:
    fields = (*FIELDS, T.StructField("version", T.LongType()))
    rows = [(1, "a", 5), (2, "a", 5), (3, "a", 5), (4, "a", 5), (5, "a", 5)]
    table = made(spark, lake / "t", rows=rows, fields=fields, properties=properties)
    changes = [("+U", 1, "b", 6), ("+U", 2, "b", 4), ("-D", 3, "a", 6), ("-D", 4, "a", 4), ("+U", 6, "b", 1)]
    same = ("+U", 5, "a", 9)
    done = merge(
        table, frame(table, [*changes, same]), key=["id"], progress=at(0), semantics=newest_by_version
    )
    assert (done.inserted, done.updated, done.deleted) == (1, 1, 1)
    assert content(table) == {(1, "b", 6), (2, "a", 5), (4, "a", 5), (5, "a", 5), (6, "b", 1)}


@on_any_table
def test_a_key_with_several_rows_is_repaired(merge: Merge, spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a"), (2, "a")])
    append(table, [(1, "b")])
    changes = frame(table, [("-D", 1, None), ("+I", 1, "c"), ("+U", 2, "c")])
    changes = changes.withColumn(INSERT_ALWAYS, F.col("v").eqNullSafe("c") & (F.col("id") == 1))
    done = merge(table, changes, key=["id"], progress=at(0), semantics=repair_by_key)
    assert (done.inserted, done.updated, done.deleted) == (1, 1, 2)
    assert content(table) == {(1, "c"), (2, "c")}


def test_an_empty_table_gets_the_inserts(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t")
    engines = Engines(MergeSettings(Engine.SPARK), insert_first)
    for batch, value in enumerate("ab"):
        changes = frame(table, [("+U", 1, value), ("-D", 2, None)]).persist()
        engines.merge(table, changes, key=["id"], adds=1, progress=at(batch))
    assert content(table) == {(1, "a")}


@vectors
@on_any_table
def test_values_that_were_taken_from_the_table_are_kept_as_they_are_now(
    merge: Merge, spark: SparkSession, lake: Path, properties: dict[str, str]
) -> None:
    fields = (*FIELDS, T.StructField("w", T.LongType()))
    rows = [(1, "large", 1), (2, "large", 1), (3, "large", 1)]
    table = made(spark, lake / "t", rows=rows, fields=fields, properties=properties)
    changes = [("+U", 1, "large", 2), ("+U", 2, "large", 1), ("+U", 3, "new", 1), ("+U", 4, "large", 1)]
    kept = F.when(F.col("id") != 3, F.array(F.lit("v")))
    table.delta().update("id < 3", {"v": "'user'"})
    done = merge(table, frame(table, changes).withColumn(KEPT, kept), key=["id"], progress=at(0))
    assert (done.inserted, done.updated, done.deleted) == (1, 2, 0)
    assert content(table) == {(1, "user", 2), (2, "user", 1), (3, "new", 1), (4, "large", 1)}
