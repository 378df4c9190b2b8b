"""`merge_own_columns`: three pipelines in one table, against a dict for each topic; both engines, drawn batch by batch.

A column of the key numbers the histories, so one MERGE carries a batch of all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from bridge.definition import DeltaTarget, Engine, MergeSettings
from bridge.delta import merge_driver, merge_spark
from bridge.delta.column_owners import open_shared_table
from bridge.delta.engine_choice import Engines
from bridge.delta.ingest_progress import read_progress
from bridge.delta.merge_semantics import (
    Delete,
    Insert,
    MergeStatement,
    Not,
    NotOlder,
    Retracts,
    Update,
    merge_own_columns,
    semantics_of,
    upsert_by_key,
)
from bridge.delta.table import Table
from bridge.ingest_progress import IngestProgress
from bridge.lake.commit import write_commit
from bridge.offsets import Offsets
from tests.delta.tables import NO_VECTORS, content, frame

KEY = (T.StructField("history", T.LongType()), T.StructField("k", T.StringType()))
OWN: Mapping[str, tuple[T.StructField, ...]] = {
    "names": (T.StructField("name", T.StringType()), T.StructField("level", T.LongType())),
    "payments": (T.StructField("paid", T.DecimalType(20, 2)),),
    "visits": (T.StructField("last-visit", T.TimestampType()), T.StructField("share", T.DoubleType())),
}
COLUMNS = [f.name for f in KEY] + [f.name for fields in OWN.values() for f in fields]
VALUES = {
    "string": st.sampled_from([None, "", "a"]),
    "bigint": st.sampled_from([None, 0, 1]),
    "decimal(20,2)": st.sampled_from([None, 0, 12345678901234567]),
    "timestamp": st.sampled_from([None, 0, 1]),
    "double": st.sampled_from([None, 0.0, float("nan")]),
}
BATCHES = 2
Own = tuple[Any, ...]
Change = tuple[int, str | None, Own | None]
"""History, key, and the own columns; None for a tombstone."""


@dataclass(frozen=True)
class Step:
    """A batch of one pipeline: the last change of each key."""

    pipeline: str
    engine: Engine
    changes: tuple[Change, ...]


def shared(
    spark: SparkSession, folder: Path, name: str, properties: Mapping[str, str] | None = None
) -> Table:
    own = OWN[name]
    target = DeltaTarget(
        str(folder), properties=properties or {}, merge_columns=tuple(field.name for field in own)
    )
    return open_shared_table(spark, target, [*KEY, *own], pipeline=name, key=["history", "k"])


@st.composite
def steps(draw: st.DrawFn) -> list[Step]:
    """Batches of the three pipelines, in any order. Hypothesis begins with the simplest example: no batch."""
    if not draw(st.integers(0, 99)):
        return []
    order = draw(st.permutations([name for name in OWN for _ in range(BATCHES)]))
    made = []
    for name in order:
        row = st.tuples(*(VALUES[f.dataType.simpleString()] for f in OWN[name]))
        one = st.tuples(st.integers(0, 9), st.sampled_from([None, "a", "b"]), st.none() | row)
        changes = draw(st.lists(one, min_size=8, max_size=16, unique_by=lambda change: change[:2]))
        made.append(Step(name, draw(st.sampled_from([Engine.SPARK, Engine.DRIVER])), tuple(changes)))
    return made


def value(field: T.StructField, drawn: Any) -> Any:
    """The drawn value as Spark takes and gives it; NaN as a text, which equals itself."""
    from datetime import datetime
    from decimal import Decimal

    if drawn is None or isinstance(field.dataType, T.StringType | T.LongType | T.DoubleType):
        return drawn
    return Decimal(drawn) if isinstance(field.dataType, T.DecimalType) else datetime(2020, 1, 1 + drawn)


def comparable(row: Iterable[Any]) -> Own:
    return tuple("NaN" if v != v else v for v in row)


def wide(topics: Mapping[str, Mapping[tuple[Any, ...], Own]]) -> set[Own]:
    """The oracle: a full join of the topics' rows that have a value."""
    keys = {key for rows in topics.values() for key in rows}
    none = {name: (None,) * len(fields) for name, fields in OWN.items()}
    rows = {(*key, *(v for name in OWN for v in topics[name].get(key, none[name]))) for key in keys}
    return {comparable(row) for row in rows if any(v is not None for v in row[len(KEY) :])}


def merged(table: Table, step: Step, batch: int) -> str:
    """Merge the step; returns what the engines say."""
    own = OWN[step.pipeline]
    changes = [
        ("-D", *key, *(None for _ in own))
        if row is None
        else ("+U", *key, *(value(f, v) for f, v in zip(own, row, strict=True)))
        for *key, row in step.changes
    ]
    persisted = frame(table, changes).persist()
    try:
        return str(
            Engines(MergeSettings(step.engine), semantics_of(table.target)).merge(
                table,
                persisted,
                key=["history", "k"],
                adds=sum(row is not None for *_, row in step.changes),
                progress=IngestProgress(step.pipeline, "run", batch, Offsets({("t", 0): batch})),
            )
        )
    finally:
        persisted.unpersist()


def fed(table: Table, version: int) -> tuple[set[Own], set[Own]]:
    """Rows that a version took away and added, by the change feed; raises where one is there twice."""
    reader = table.spark.read.format("delta").option("readChangeFeed", True)
    rows = (
        reader.options(startingVersion=version, endingVersion=version).load(str(table.target.path)).collect()
    )
    away = [
        comparable(row[n] for n in COLUMNS)
        for row in rows
        if row["_change_type"] in ("delete", "update_preimage")
    ]
    added = [
        comparable(row[n] for n in COLUMNS)
        for row in rows
        if row["_change_type"] in ("insert", "update_postimage")
    ]
    assert len(set(away)) == len(away) and len(set(added)) == len(added)
    return set(away), set(added)


@pytest.mark.parametrize(
    ("properties", "examples"),
    [
        pytest.param({}, 1, id="deletion vectors"),
        pytest.param(NO_VECTORS, 2, id="rewritten files", marks=pytest.mark.slow),
        pytest.param({}, 12, id="many", marks=pytest.mark.slow),
    ],
)
def test_the_table_is_the_full_join_of_its_topics(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, properties: dict[str, str], examples: int
) -> None:
    @settings(
        max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate]
    )
    @given(steps())
    def run(history: list[Step]) -> None:
        folder = tmp_path_factory.mktemp("lake") / "t"
        tables = {name: shared(spark, folder, name, properties) for name in OWN}
        topics: dict[str, dict[tuple[Any, ...], Own]] = {name: {} for name in OWN}
        done = dict.fromkeys(OWN, -1)
        for step in history:
            before, table = wide(topics), tables[step.pipeline]
            for *key, row in step.changes:
                topics[step.pipeline].pop(tuple(key), None)
                if row is not None:
                    topics[step.pipeline][tuple(key)] = tuple(
                        value(f, v) for f, v in zip(OWN[step.pipeline], row, strict=True)
                    )
            done[step.pipeline] += 1
            merged(table, step, done[step.pipeline])
            after = wide(topics)
            progress = read_progress(table, step.pipeline)
            assert progress is not None and progress[0].batch == done[step.pipeline]
            rows = [
                comparable(row) for row in table.delta().toDF().select(*(f"`{n}`" for n in COLUMNS)).collect()
            ]
            assert len(rows) == len(set(rows)) and set(rows) == after
            assert fed(table, progress[1]) == (before - after, after - before)

    run()


NAMES, VISITS = "names", "visits"


def test_the_statement() -> None:
    empty = Retracts(or_null=("a", "b c"))
    assert empty.sql == "(__s.__kind IN ('-U', '-D') OR (__s.`a` IS NULL AND __s.`b c` IS NULL))"
    assert merge_own_columns(["id", "a", "b c"], ["id"]) == MergeStatement(
        key=("id",),
        matched=(
            Delete(when=empty, if_others_null=True),
            Update(("a", "b c"), if_differs=("a", "b c"), when=empty, to_null=True),
            Update(("a", "b c"), if_differs=("a", "b c"), when=Not(empty)),
        ),
        insert=Insert(("id", "a", "b c"), when=Not(empty)),
    )
    takes, sets = (
        NotOlder(("s",), Retracts(or_null=("a", "s"))),
        NotOlder(("s",), Not(Retracts(or_null=("a", "s")))),
    )
    ordered = DeltaTarget("t", merge_columns=("a", "s"), sequence_by=("s",))
    assert semantics_of(ordered)(["id", "a", "s"], ["id"]).matched == (
        Delete(when=takes, if_others_null=True),
        Update(("a", "s"), if_differs=("a", "s"), when=takes, to_null=True),
        Update(("a", "s"), if_differs=("a", "s"), when=sets),
    )
    assert semantics_of(DeltaTarget("t")) is upsert_by_key


@pytest.mark.parametrize("engine", [Engine.SPARK, Engine.DRIVER])
def test_a_row_stays_if_another_pipeline_adds_a_column_meanwhile(
    spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine
) -> None:
    """The MERGE has looked at the table's columns, and then there is another one, with a value in the row."""
    table = shared(spark, lake / "t", NAMES)
    merged(table, Step(NAMES, engine, ((1, "a", ("x", 1)), (1, "b", ("y", 2)))), 0)
    waiting = [True]

    def meanwhile() -> None:
        if waiting:
            waiting.pop()
            other = shared(spark.newSession(), lake / "t", VISITS)
            merged(other, Step(VISITS, Engine.DRIVER, ((1, "a", (None, 0.5)),)), 0)

    if engine is Engine.SPARK:
        real_others = merge_spark.other_columns

        def others(*given: Any) -> list[str]:
            found = real_others(*given)
            meanwhile()
            return found

        monkeypatch.setattr(merge_spark, "other_columns", others)
    else:
        real_commit = write_commit

        def commit(*given: Any) -> Any:
            meanwhile()
            return real_commit(*given)

        monkeypatch.setattr(merge_driver, "write_commit", commit)
    merged(table, Step(NAMES, engine, ((1, "a", None), (1, "b", None))), 1)
    assert not waiting
    assert content(table) == {(1, "a", None, None, None, 0.5)}


def test_nested_columns_are_emptied_by_spark(spark: SparkSession, lake: Path) -> None:
    """The driver copies the columns of other pipelines, too, and leaves nested ones to Spark."""
    fields = [
        T.StructField("id", T.LongType()),
        T.StructField("info", T.StructType([T.StructField("x", T.IntegerType())])),
        T.StructField("tags", T.ArrayType(T.StringType())),
        T.StructField("more", T.MapType(T.StringType(), T.IntegerType())),
    ]
    target = DeltaTarget(str(lake / "t"), merge_columns=("info", "tags", "more"))
    table = open_shared_table(spark, target, fields, pipeline="nested", key=["id"])
    plain = replace(target, merge_columns=("n",))
    n = T.StructField("n", T.LongType())
    other = open_shared_table(spark, plain, [fields[0], n], pipeline="plain", key=["id"])

    def merge(table: Table, pipeline: str, batch: int, *changes: tuple[Any, ...]) -> str:
        persisted = frame(table, changes).persist()
        progress = IngestProgress(pipeline, "run", batch, Offsets({("t", 0): batch}))
        engines = Engines(MergeSettings(), semantics_of(table.target))
        return engines.merge(table, persisted, key=["id"], adds=1, progress=progress).engine

    merge(table, "nested", 0, ("+U", 1, (1,), ["a"], {"k": 1}), ("+U", 2, None, None, {}))
    by = merge(other, "plain", 0, ("+U", 1, 7), ("-D", 2, None))
    assert by.startswith("spark (column 'info' is STRUCT<X:INT>")
    done = merge(table, "nested", 1, ("-D", 1, (1,), ["a"], {"k": 1}), ("-D", 2, None, None, None))
    assert done.startswith("spark")
    assert content(table) == {(1, None, None, None, 7)}
