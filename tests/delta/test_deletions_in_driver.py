"""Deletions that the driver remembers are those that Spark remembers, and the other way round."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from bridge.columns import KIND
from bridge.definition import DeltaTarget
from bridge.delta.delete_memory import DeleteMemory
from bridge.delta.deletions_in_driver import DeletionsInDriver
from bridge.delta.engine_choice import changes_frame
from bridge.delta.table import create_table
from bridge.lake.snapshot import open_snapshot
from bridge.storage import store_at
from bridge.ways import NotThisWay

FIELDS = (
    T.StructField("id", T.LongType()),
    T.StructField("k", T.StringType()),
    T.StructField("s", T.TimestampType()),
    T.StructField("n", T.StringType()),
    T.StructField("v", T.StringType()),
)
KEY = ("id", "k")
SCHEMA = pa.schema(
    [
        *(("id", pa.int64()), ("k", pa.string()), ("s", pa.timestamp("us", "UTC"))),
        *(("n", pa.string()), ("v", pa.string()), (KIND, pa.string())),
    ]
)
Place = tuple[int, str | None, int, str]


def opened(spark: SparkSession, folder: Path | str, fields: Sequence[T.StructField] = FIELDS) -> DeleteMemory:
    target = DeltaTarget(path=str(folder), sequence_by=("s", "n"))
    return DeleteMemory.open(create_table(spark, target, fields, pipeline="p"), [f.name for f in fields[:2]])


def changes(kind: str, places: Sequence[Place]) -> pa.Table:
    rows = [
        {"id": id, "k": k, "s": datetime(2026, 1, 1, 0, 0, 0, s, timezone.utc), "n": n, KIND: kind}
        for id, k, s, n in places
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def drawn(dice: random.Random, count: int) -> list[Place]:
    return [
        (
            dice.randrange(40),
            dice.choice([None, "", "a"]),
            dice.randrange(3),
            dice.choice(["", "1", "10", "9"]),
        )
        for _ in range(count)
    ]


def rows_of(table: pa.Table) -> list[Any]:
    return sorted((tuple(row.values()) for row in table.select(["id", "k", "n"]).to_pylist()), key=str)


def test_either_way_knows_what_the_other_remembers(spark: SparkSession, lake: Path) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    dice, memory, in_driver = random.Random(seed), opened(spark, lake / "t"), DeletionsInDriver()
    given = changes("+U", list({place[:2]: place for place in drawn(dice, 200)}.values()))
    frame = changes_frame(memory.table, given).persist()
    for turn in range(4):
        deletions = changes("-D", drawn(dice, 10))
        if turn % 2:
            memory.remember(changes_frame(memory.table, deletions))
        else:
            in_driver.remember(memory, deletions)
        assert rows_of(in_driver.of_keys(memory, given)) == rows_of(memory.of_keys(frame).toArrow())
        newer = in_driver.without_older(memory, given)
        assert 0 < newer.num_rows < given.num_rows
        assert rows_of(newer) == rows_of(memory.without_older(frame).toArrow())
    time.sleep(0.3)
    soon = replace(
        memory, table=replace(memory.table, target=replace(memory.table.target, delete_memory_seconds=0.2))
    )
    assert (soon.forget(None) or "").startswith("40 deletions are forgotten")
    assert in_driver.without_older(memory, given) is given
    frame.unpersist()


def test_many_batches_leave_few_files(spark: SparkSession, lake: Path) -> None:
    memory, in_driver = opened(spark, lake / "t"), DeletionsInDriver()
    places: list[Place] = [(n, "a", 1, "") for n in range(60)]
    for place in places:
        in_driver.remember(memory, changes("-D", [place]))
    files = open_snapshot(store_at(spark, memory.stored.location)).files
    assert len(files) < 20
    assert rows_of(in_driver.of_keys(memory, changes("+U", places))) == rows_of(changes("-D", places))


@pytest.mark.slow
def test_a_table_that_only_spark_reads_is_named(spark: SparkSession, lake: Path) -> None:
    memory = opened(spark, lake / "t", [T.StructField("a key", T.LongType()), *FIELDS[1:]])
    given = changes("-D", [(1, "a", 1, "")]).rename_columns(["a key", *SCHEMA.names[1:]])
    for work in (DeletionsInDriver().remember, DeletionsInDriver().of_keys):
        with pytest.raises(
            NotThisWay, match=r"^of the remembered deletions the table has the feature 'columnMapping'$"
        ):
            work(memory, given)
