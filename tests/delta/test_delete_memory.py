"""Deleted keys are remembered, and histories that are cut and mixed fold to what the oracle says, in every engine."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from bridge.columns import KIND
from bridge.definition import DeltaTarget, Engine, MergeSettings
from bridge.delta.delete_memory import DeleteMemory
from bridge.delta.engine_choice import Engines
from bridge.delta.merge_semantics import semantics_of
from bridge.delta.table import Table, create_table
from bridge.metrics import now_ms
from bridge.rows import Change, RowKind, compact, replay
from tests.delta.tables import at, content, frame

FIELDS = tuple(
    T.StructField(name, type)
    for name, type in [
        ("history", T.LongType()),
        ("k", T.StringType()),
        ("v", T.LongType()),
        ("s", T.DateType()),
        ("n", T.StringType()),
    ]
)
KEY = ("history", "k")
DAYS = [date(2026, 1, day) for day in range(1, 5)]
HISTORIES, CHANGES, BATCHES = 40, 30, 3


def ordered(spark: SparkSession, folder: Path, **more: Any) -> Table:
    target = DeltaTarget(path=str(folder), sequence_by=("s", "n"), **more)
    return create_table(spark, target, FIELDS, pipeline="p")


def change(
    kind: str, key: tuple[int, str | None], position: int, sequence: tuple[Any, Any], v: int | None = None
) -> Change:
    row = None if kind == "-D" else {"v": v, "s": sequence[0], "n": sequence[1]}
    return Change(RowKind(kind), key, row, (position,), sequence)


def drawn(dice: random.Random) -> list[list[Change]]:
    """Batches of changes of many keys: late ones, equal sequences, deletions, inserts after them. Batches of a history
    are mixed as long as changes of the same sequence keep their order."""
    batches: list[list[Change]] = [[] for _ in range(BATCHES)]
    for history in range(HISTORIES):
        batch_of: dict[Any, int] = {}
        for position in range(CHANGES):
            key = (history, dice.choice([None, "a", "b", ""]))
            sequence = (DAYS[dice.randrange(4)], dice.choice(["", "1", "10", "9"]))
            batch = max(dice.randrange(BATCHES), batch_of.get((key, sequence), 0))
            batch_of[key, sequence] = batch
            kind = "-D" if dice.random() < 0.4 else "+U"
            batches[batch].append(change(kind, key, position, sequence, dice.choice([None, 1, 2])))
    return batches


def frame_of(table: Table, changes: Sequence[Change]) -> Any:
    rows = [(c.kind.value, *key_of(c), None if c.row is None else c.row["v"], *c.sequence) for c in changes]
    return frame(table, rows).persist()


def key_of(change: Change) -> tuple[Any, Any]:
    assert isinstance(change.key, tuple)
    return change.key


@pytest.mark.parametrize(
    "engine", [Engine.DRIVER, pytest.param(Engine.SPARK, marks=pytest.mark.slow)], ids=lambda e: e.value
)
def test_the_table_is_the_fold_by_sequence(engine: Engine, spark: SparkSession, lake: Path) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    dice = random.Random(seed)
    table = ordered(spark, lake / "t")
    engines, done = Engines(MergeSettings(engine), semantics_of(table.target)), list[Change]()
    for number, batch in enumerate(drawn(dice)):
        # What engines get is the fold of a batch. Some batches are applied by a run that knows nothing but the table.
        if dice.random() < 0.5:
            engines = Engines(MergeSettings(engine), semantics_of(table.target))
        last = compact(batch)
        dice.shuffle(last)
        adds = sum(not c.kind.retracts for c in last)
        if dice.random() < 0.5:  # an attempt that dies before its commit
            DeleteMemory.open(table, KEY).remember(frame_of(table, last))
            engines = Engines(MergeSettings(engine), semantics_of(table.target))
        engines.merge(table, frame_of(table, last), key=KEY, adds=adds, progress=at(number))
        done += batch
        rows = {(r.history, r.k): {"v": r.v, "s": r.s, "n": r.n} for r in table.delta().toDF().collect()}
        assert rows == replay(compact(done))
    repeated = engines.merge(table, frame_of(table, last), key=KEY, adds=adds, progress=at(BATCHES))
    assert (repeated.inserted, repeated.updated, repeated.deleted) == (0, 0, 0)


@pytest.mark.slow
def test_readers_of_the_table_do_not_see_it(spark: SparkSession, lake: Path) -> None:
    table = ordered(spark, lake / "t")
    memory = DeleteMemory.open(table, KEY)
    assert memory.is_empty()
    deleted = change("-D", (1, "a"), 0, (DAYS[1], "1"))
    memory.remember(frame_of(table, [deleted, change("+U", (2, "a"), 1, (DAYS[1], "1"), 1)]))
    assert not DeleteMemory.open(table, KEY).is_empty() and table.is_empty()
    spark.sql(f"VACUUM delta.`{lake}/t`")
    late = [change("+U", (1, "a"), 2, (DAYS[0], "9"), 1), change("+U", (1, "b"), 2, (DAYS[0], "9"), 1)]
    left = memory.without_older(frame_of(table, late)).select("k").collect()
    assert [row.k for row in left] == ["b"]


@pytest.mark.slow
def test_another_table_in_its_place_has_another_memory(spark: SparkSession, lake: Path) -> None:
    table = ordered(spark, lake / "t")
    DeleteMemory.open(table, KEY).remember(frame_of(table, [change("-D", (1, "a"), 0, (DAYS[1], "1"))]))
    assert DeleteMemory.open(replace(table, id="another"), KEY).is_empty()


@pytest.mark.slow
def test_it_forgets_in_steps_and_follows_wider_types(spark: SparkSession, lake: Path) -> None:
    table = ordered(spark, lake / "t")
    memory = DeleteMemory.open(table, KEY)
    before = now_ms()
    memory.remember(frame_of(table, [change("-D", (n, "a"), 0, (DAYS[1], "1")) for n in range(5)]))
    assert memory.forget(None) is None and len(content(memory.stored)) == 5
    time.sleep(0.3)
    soon = replace(memory, table=replace(table, target=replace(table.target, delete_memory_seconds=0.2)))
    assert soon.forget(before) is None, "records that were late by less may still come"
    assert (soon.forget(None) or "").startswith(
        "5 deletions are forgotten, as they are older than delta.delete-memory"
    )
    assert memory.is_empty()
    memory.remember(frame_of(table, [change("-D", (9, "a"), 0, (DAYS[1], "1"))]))
    reordered = DeleteMemory.open(replace(table, fields=FIELDS[::-1]), KEY)
    reordered.remember(frame_of(table, [change("-D", (8, "a"), 0, (DAYS[1], "1"))]))
    assert sorted(row[:2] for row in content(reordered.stored)) == [(8, "a"), (9, "a")]
    wider = (*FIELDS[:3], T.StructField("s", T.TimestampNTZType()), FIELDS[4])
    assert len(content(DeleteMemory.open(replace(table, fields=wider), KEY).stored)) == 2
    assert len(content(DeleteMemory.open(replace(table, fields=wider[::-1]), KEY).stored)) == 2
    by_v = replace(table, target=replace(table.target, sequence_by=("v",)))
    other = DeleteMemory.open(by_v, KEY)
    assert other.is_empty()
    other.remember(frame_of(table, [change("-D", (1, "a"), 0, (DAYS[1], "1"))]))
    time.sleep(0.3)
    assert [(found.forget(None) or "")[:13] for found in soon.others()] == ["1 deletions a"]
    assert other.is_empty() and len(content(DeleteMemory.open(table, KEY).stored)) == 2
    anew = replace(table, fields=wider, properties={**table.properties, "bridge.delete-memory": "a run"})
    assert DeleteMemory.open(anew, KEY).is_empty()
    assert KIND not in memory.stored.columns


@pytest.mark.slow
def test_names_that_parquet_forbids(spark: SparkSession, lake: Path) -> None:
    fields = (T.StructField("a key", T.LongType()), T.StructField("s;1", T.LongType()))
    target = DeltaTarget(path=str(lake / "t"), sequence_by=("s;1",))
    table = create_table(spark, target, fields, pipeline="p")
    memory = DeleteMemory.open(table, ["a key"])
    memory.remember(frame(table, [("-D", 1, 5)]))
    late = frame(table, [("+U", 1, 4), ("+U", 2, 4)]).persist()
    assert [row["a key"] for row in DeleteMemory.open(table, ["a key"]).without_older(late).collect()] == [2]
