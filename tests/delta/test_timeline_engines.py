"""The driver and Spark make the same history of the same batches, whatever types its columns have: the oracle's."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from bridge.definition import DeltaTarget, Engine, MergeSettings
from bridge.delta.delete_memory import DeleteMemory
from bridge.delta.engine_choice import Engines, changes_frame
from bridge.delta.merge_semantics import semantics_of
from bridge.delta.table import Table, create_table
from bridge.rows import Change
from tests.delta.histories import (
    BATCHES,
    BITEMPORAL,
    COLUMNS,
    KEYS,
    SEQUENCES,
    TARGET,
    UTC,
    Drawn,
    Step,
    folded,
)
from tests.delta.tables import at
from tests.object_store import ObjectStore


def drawn_steps(dice: random.Random, count: int) -> list[Step]:
    return [
        (
            dice.choice(["+I", "+U", "-D"]),
            dice.randrange(6),
            dice.randrange(6),
            dice.choice([None, 0, 1, 2, 3]),
            dice.randrange(BATCHES),
        )
        for _ in range(count)
    ]


def rows_of(table: Table, drawn: Drawn) -> list[dict[str, Any]]:
    frame = table.delta().toDF().select(*drawn.schema.names)
    return list(frame.toArrow().cast(drawn.schema).to_pylist())


class States:
    """What a table was after each batch, by the newest system time that it had then."""

    def __init__(self) -> None:
        self.newest, self.known = datetime(1, 1, 1, tzinfo=UTC), dict[datetime, list[str]]()

    def check(self, drawn: Drawn, rows: list[dict[str, Any]], expected: list[str]) -> None:
        newest = max((row[name] for row in rows for name in drawn.system if row[name]), default=self.newest)
        assert newest >= self.newest and self.known.setdefault(newest, expected) == expected
        self.newest = newest
        for time, state in self.known.items():
            assert drawn.known(rows, time) == state
        assert drawn.shown(row for row in rows if row["known_to"] is None) == expected


def check(spark: SparkSession, folder: Path | str, sequence: str, target: DeltaTarget = TARGET) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    dice = random.Random(seed)
    drawn = Drawn(dice.choice(KEYS), sequence, sorted(COLUMNS), target)
    fields = from_arrow_schema(drawn.schema).fields
    tables = {
        engine: create_table(spark, replace(target, path=f"{folder}/{engine.value}"), fields, pipeline="p")
        for engine in (Engine.DRIVER, Engine.SPARK)
    }
    states = {engine: States() for engine in tables}
    done: list[Change] = []
    batches = drawn.batches(drawn_steps(dice, 40))
    for number, batch in enumerate([*batches, batches[-1]]):
        changes, results = drawn.arrow(folded(batch)), []
        dies = dice.random() < 0.5
        for engine, table in tables.items():
            if dies:  # an attempt that dies before its commit
                DeleteMemory.open(table, drawn.key).remember(changes_frame(table, changes))
            # Each batch by a run that knows nothing but the table.
            engines = Engines(MergeSettings(engine), semantics_of(table.target))
            adds = sum(not c.kind.retracts for c in folded(batch))
            results.append(engines.merge(table, changes, key=drawn.key, adds=adds, progress=at(number)))
        done += batch
        by_driver, by_spark = results
        assert (by_driver.inserted, by_driver.updated, by_driver.deleted, by_driver.without_effect) == (
            by_spark.inserted,
            by_spark.updated,
            by_spark.deleted,
            by_spark.without_effect,
        )
        assert by_driver.engine.startswith("driver") and by_spark.engine.startswith("spark")
        for engine, table in tables.items():
            rows, expected = rows_of(table, drawn), drawn.expected(done)
            if drawn.system:
                states[engine].check(drawn, rows, expected)
            else:
                assert drawn.shown(rows) == expected


@pytest.mark.slow
@pytest.mark.parametrize("sequence", sorted(SEQUENCES))
def test_they_are_the_oracle(spark: SparkSession, lake: Path, sequence: str) -> None:
    check(spark, lake, sequence)


@pytest.mark.slow
@pytest.mark.parametrize("sequence", ["bigint", "timestamp_ltz"])
def test_at_each_system_time_they_are_the_oracle(spark: SparkSession, lake: Path, sequence: str) -> None:
    check(spark, lake, sequence, BITEMPORAL)


@pytest.mark.slow
def test_on_an_object_store(spark: SparkSession, store: ObjectStore, unique: Callable[[str], str]) -> None:
    check(spark, f"{store.root}/{unique('t')}/a b", "timestamp_ltz")
