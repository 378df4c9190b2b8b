"""Histories in columns, of many keys in one frame, are those of the oracle after every batch, in every engine."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import types as T

from bridge.columns import KIND
from bridge.definition import DeltaTarget, Engine, MergeSettings
from bridge.delta.delete_memory import DeleteMemory
from bridge.delta.engine_choice import Engines
from bridge.delta.merge_semantics import semantics_of
from bridge.delta.table import Table, create_table
from bridge.delta.timeline import Timeline, history_fields
from bridge.history_columns import History
from bridge.ingest_progress import IngestProgress
from bridge.rows import Change, RowKind, intervals
from tests.delta.tables import at

BATCHES = 3
KEY = ("history", "k.1")
HISTORY = History("valid_from", "valid_to", "is_current")
VALUES = {"v": T.LongType(), "m": T.MapType(T.StringType(), T.LongType())}
DAYS = [date(2026, 1, day) for day in range(1, 7)]


def fields(*values: str) -> tuple[T.StructField, ...]:
    of_ddl = [
        T.StructField("history", T.LongType()),
        T.StructField("k.1", T.StringType()),
        *(T.StructField(name, VALUES[name]) for name in values),
        T.StructField("s", T.DateType()),
    ]
    return (*of_ddl, *history_fields(of_ddl, HISTORY, "s"))


def target(path: Path | str) -> DeltaTarget:
    return DeltaTarget(path=str(path), sequence_by=("s",), history=HISTORY)


def change(
    kind: str, key: tuple[int, str | None], day: int, value: int | None, names: Iterable[str]
) -> Change:
    """`value` stands for a number, and for a map that it makes."""
    values = {"v": value, "m": None if value is None else {"a": value, "b": 0}}
    row = {"s": DAYS[day], **{name: values[name] for name in names}}
    return Change(RowKind(kind), key, None if kind == "-D" else row, (), (DAYS[day],))


STEP = st.tuples(
    st.sampled_from(["+I", "+U", "-D"]),
    st.sampled_from([None, "a"]),
    st.integers(0, 5),
    st.sampled_from([None, 1, 2]),
    st.integers(0, BATCHES - 1),
)
Steps = list[list[tuple[str, str | None, int, int | None, int]]]


def cut(histories: Steps, names: Sequence[str]) -> list[list[Change]]:
    """The changes in batches, in which changes of the same key and sequence keep their order."""
    batches: list[list[Change]] = [[] for _ in range(BATCHES)]
    for number, steps in enumerate(histories):
        batch_of: dict[Any, int] = {}
        for kind, k, day, value, batch in steps:
            batch_of[k, day] = max(batch, batch_of.get((k, day), 0))
            batches[batch_of[k, day]].append(change(kind, (number, k), day, value, names))
    return batches


def folded(changes: Sequence[Change]) -> list[Change]:
    """The last change of each key and sequence, as a stage before this one leaves it."""
    return list({(c.key, c.sequence): c for c in changes}.values())


def frame_of(table: Table, changes: Sequence[Change]) -> DataFrame:
    rows = [
        {"history": key[0], "k.1": key[1], "s": c.sequence[0], KIND: c.kind.value, **(c.row or {})}
        for c in changes
        for key in (key_of(c),)
    ]
    return rows_of(table.spark, rows, [*table.change_fields, T.StructField(KIND, T.StringType())])


def rows_of(spark: SparkSession, rows: list[dict[str, Any]], columns: Sequence[T.StructField]) -> DataFrame:
    types = {
        "bigint": pa.int64(), "string": pa.string(), "date": pa.date32(), "boolean": pa.bool_(),
        "map<string,bigint>": pa.map_(pa.string(), pa.int64()),
    }  # fmt: skip
    listed = [{n: list(v.items()) if isinstance(v, dict) else v for n, v in row.items()} for row in rows]
    schema = pa.schema([(f.name, types[f.dataType.simpleString()]) for f in columns])
    return spark.createDataFrame(pa.Table.from_pylist(listed, schema=schema))


def key_of(change: Change) -> tuple[Any, Any]:
    assert isinstance(change.key, tuple)
    return change.key


def expected(changes: Sequence[Change], table: Table) -> list[tuple[Any, ...]]:
    """The rows of the oracle, in the table's columns."""
    rows = [
        {**row.row, "history": key[0], "k.1": key[1], **validity(row)}
        for key, found in intervals(changes).items()
        if isinstance(key, tuple)
        for row in found
    ]
    return sorted((tuple(row[name] for name in table.columns) for row in rows), key=str)


def validity(row: Any) -> dict[str, Any]:
    return dict(zip(HISTORY.columns, (row.start, row.end, row.end is None), strict=True))


def check_columns(spark: SparkSession, histories: Steps) -> None:
    names = ("v", "m")
    table = Table(spark, target("nowhere"), "id", fields(*names), {}, 0)
    stored: dict[Any, Row] = {}
    done: list[Change] = []
    batches = cut(histories, names)
    for batch in [*batches, batches[-1]]:
        rows = rows_of(spark, [row.asDict() for row in stored.values()], table.fields)
        deletions = frame_of(table, [c for c in done if c.kind.retracts])
        timeline = Timeline.of(table, frame_of(table, folded(batch)), KEY, rows, deletions).persist()
        changes, counts = timeline.changes().collect(), timeline.counts()
        for row in changes:
            stored.pop((row["history"], row["k.1"], row.valid_from), None)
            if row[KIND] == "+U":
                stored[row["history"], row["k.1"], row.valid_from] = row
        done += batch
        assert sorted((tuple(r)[:-1] for r in stored.values()), key=str) == expected(done, table)
        deleted = sum(c.kind.retracts for c in folded(batch))
        assert counts[:2] == (sum(row[KIND] == "+U" for row in changes), deleted)
    assert not changes and counts[2] == len(folded(batches[-1])), "a batch that comes again has no effect"
    assert sorted(map(tuple, timeline.rows().collect()), key=str) == expected(done, table)
    timeline.unpersist()


DRAWN = st.lists(st.lists(STEP, max_size=12), min_size=50, max_size=50)
GENERATED = settings(
    max_examples=1, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)


@GENERATED
@given(histories=DRAWN)
def test_columns_are_the_oracle(spark: SparkSession, histories: Steps) -> None:
    check_columns(spark, histories)


@pytest.mark.slow
@settings(GENERATED, max_examples=40)
@given(histories=DRAWN)
def test_columns_are_the_oracle_of_many_histories(spark: SparkSession, histories: Steps) -> None:
    check_columns(spark, histories)


def test_only_changes_with_an_effect_count(spark: SparkSession) -> None:
    table = Table(spark, target("nowhere"), "id", fields("v"), {}, 0)

    def counts(*changes: Change, known: Sequence[Change] = ()) -> tuple[int, int, int]:
        shown = [dict(zip(table.columns, row, strict=True)) for row in expected(known, table)]
        rows = rows_of(spark, shown, table.fields)
        return Timeline.of(table, frame_of(table, changes), KEY, rows).counts()

    def of(kind: str, day: int, value: int | None = None) -> Change:
        return change(kind, (1, "a"), day, value, ("v",))

    known = [of("+U", 0, 1), of("+U", 2, 2), of("-D", 4)]
    assert counts(*known, known=known) == (0, 1, 3)
    assert counts(of("+U", 1, 1), of("-D", 3), of("-D", 5), known=known) == (3, 2, 1)
    assert counts(of("-D", 0), of("-D", 4), known=known) == (0, 2, 1)


@pytest.mark.slow
@pytest.mark.parametrize("engine", [Engine.DRIVER, Engine.SPARK], ids=lambda e: e.value)
def test_the_table_is_the_oracle(engine: Engine, spark: SparkSession, lake: Path) -> None:
    """After every batch, whatever a run knows when it applies it, and whatever died before its commit."""
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    dice = random.Random(seed)
    table = create_table(spark, target(lake / "t"), fields("v"), pipeline="p")
    done: list[Change] = []

    def anew() -> Engines:
        return Engines(MergeSettings(engine), semantics_of(table.target))

    def merge(engines: Engines, changes: Sequence[Change], progress: IngestProgress) -> Any:
        frame = frame_of(table, changes).persist()
        adds = sum(not c.kind.retracts for c in changes)
        return engines.merge(table, frame, key=KEY, adds=adds, progress=progress)

    def step() -> tuple[str, str | None, int, int | None, int]:
        values = dice.choice([None, 1, 2])
        return (
            dice.choice(["+U", "-D"]),
            dice.choice([None, "a"]),
            dice.randrange(6),
            values,
            dice.randrange(3),
        )

    drawn = [[step() for _ in range(12)] for _ in range(60)]
    engines = anew()
    for number, batch in enumerate(cut(drawn, ("v",))):
        last = folded(batch)
        dice.shuffle(last)
        if dice.random() < 0.5:  # an attempt that dies before its commit
            DeleteMemory.open(table, KEY).remember(frame_of(table, last))
            engines = anew()
        merge(engines, last, at(number))
        done += batch
        rows = table.delta().toDF().select(*(f"`{name}`" for name in table.columns)).collect()
        assert sorted(map(tuple, rows), key=str) == expected(done, table)
    repeated = merge(anew(), last, at(BATCHES))
    assert (repeated.inserted, repeated.updated, repeated.deleted) == (0, 0, 0)
    assert repeated.unchanged(len(last)) == len(last)


@pytest.mark.slow
def test_rows_that_others_have_written_are_ordered_by_their_starts(spark: SparkSession) -> None:
    """A row without a start is valid before all others. An end at which no row starts is that of a deletion."""
    table = Table(spark, target("nowhere"), "id", fields("v"), {}, 0)
    shown = [
        {"history": 1, "k.1": "a", "v": 0, "valid_from": None, "valid_to": DAYS[5]},
        {"history": 1, "k.1": "a", "v": 2, "s": DAYS[2], "valid_from": DAYS[2], "valid_to": None},
    ]
    changes = frame_of(table, [change("+U", (1, "a"), 3, 3, ("v",))])
    rows = rows_of(spark, shown, table.fields)
    found = Timeline.of(table, changes, KEY, rows).rows().collect()
    assert sorted(((r.v, r.valid_from, r.valid_to) for r in found), key=lambda r: r[0]) == [
        (0, None, DAYS[2]),
        (2, DAYS[2], DAYS[3]),
        (3, DAYS[3], DAYS[5]),
    ]
