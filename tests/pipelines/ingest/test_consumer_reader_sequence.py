"""Consumers fold upsert topics by `delta.sequence-by`, and for `delta.history`, as Spark's path does, and as the fold
in plain Python does."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Producer

from bridge.kafka import admin
from bridge.offsets import Offsets
from bridge.pipelines.compare.verify import verify
from bridge.rows import Change, RowKind, compact, intervals
from tests.pipelines.ingest.test_consumer_reader import read, rows_of, rows_of_spark
from tests.pipelines.world import Make, World, key, making, readers
from tests.refusals import refusal

AT = "at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp'"
COLUMNS = f"id BIGINT, name STRING, day DATE, {AT}, PRIMARY KEY (id) NOT ENFORCED"
BY_TIME, BY_COLUMNS = "path: table, sequence-by: at", "path: table, sequence-by: [day, name]"
HISTORY = f"{BY_TIME}, history: scd2"


make = making(columns=COLUMNS, delta=BY_TIME, cleanup="delete", partitions=1)


@dataclass
class Sent:
    """What a world's topic of one partition has, for the fold in Python."""

    world: World
    by: tuple[str, ...]
    draw: random.Random
    changes: list[Change]

    def send(self, count: int, nulls: bool = False) -> None:
        """Records of few keys and of few values of the sequence: late and equal ones. Without tombstones where these
        would have no sequence; with `nulls` some upserts have none."""
        producer = Producer({"bootstrap.servers": self.world.broker.bootstrap})
        for _ in range(count):
            id, ms = self.draw.randrange(12), self.draw.randrange(1, 9)
            row: dict[str, Any] = {"id": id, "name": self.draw.choice(["a", "é", "Z", ""])}
            row["day"] = self.draw.choice(["2026-01-01", "1969-12-31", "2026-01-02"])
            if nulls and self.draw.random() < 0.2:
                row[self.draw.choice(self.by)] = None
            gone = self.by == ("at",) and self.draw.random() < 0.3
            written = self.draw.choice([key(id), f'{{"id": {id}}}'])
            producer.produce(
                self.world.topic, key=written, value=None if gone else json.dumps(row), timestamp=ms
            )
            row["at"] = ms
            sequence = tuple(row[name] for name in self.by)
            kind = RowKind.DELETE if gone else RowKind.INSERT
            if None not in sequence:
                self.changes.append(Change(kind, id, row, (len(self.changes),), sequence))
        assert producer.flush(30) == 0

    def rows(self) -> list[tuple[Any, ...]]:
        """The fold: id, name, day and time; of a history also the time of the end."""
        if self.world.delta == HISTORY:
            return sorted(
                (
                    (id, each.row["name"], each.row["day"], each.start, each.end)
                    for id, of_key in intervals(self.changes).items()
                    for each in of_key
                ),
                key=str,
            )
        found = [change.row or {} for change in compact(self.changes) if not change.kind.retracts]
        return sorted(((r["id"], r["name"], r["day"], r["at"]) for r in found), key=str)


def sent(world: World, seed: int | None = None) -> Sent:
    seed = random.randrange(10**6) if seed is None else seed
    print(f"seed {seed}")
    by = ("day", "name") if world.delta == BY_COLUMNS else ("at",)
    return Sent(world, by, random.Random(seed), [])


def in_table(world: World) -> list[tuple[Any, ...]]:
    end = ["unix_millis(__valid_to)"] if world.delta == HISTORY else []
    rows = world.table().selectExpr("id", "name", "cast(day AS string)", "unix_millis(at)", *end)
    return sorted((tuple(row) for row in rows.collect()), key=str)


@pytest.mark.parametrize(
    "delta",
    [BY_TIME, pytest.param(BY_COLUMNS, marks=pytest.mark.slow), HISTORY],
    ids=["time", "columns", "history"],
)
def test_consumers_read_what_spark_reads(make: Make, delta: str) -> None:
    """Of drawn records, cut into drawn ranges; keys are written in two ways."""
    world = make(delta=delta)
    drawn = sent(world)
    drawn.send(120)
    state = admin.describe(world.definition().topic)
    cut = Offsets({name: drawn.draw.randrange(1, 120) for name in state.end.by_partition})
    for start, end in [(state.earliest, state.end), (cut, state.end)]:
        batch = read(world, start, end)
        assert rows_of(batch) == rows_of_spark(world, start, end) != []
        assert batch.read.records == start.lag(end)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("delta", "gate"),
    [(BY_TIME, ""), (BY_COLUMNS, "quarantine"), (HISTORY, ""), (HISTORY, "fail")],
    ids=["time", "columns", "history", "history and gate"],
)
def test_drawn_histories_over_batches_and_restarts(make: Make, delta: str, gate: str) -> None:
    """The table after each run is the fold, whoever reads; records without a sequence are left to Spark."""
    world = make(delta=delta)
    drawn, by, read_by = sent(world), ("auto", "spark"), Counter[str]()
    for reader in by:
        (world.folder / reader).mkdir()
    for round in range(3):
        is_bad = round == 1 and delta == BY_COLUMNS
        drawn.send(drawn.draw.randrange(30, 90), nulls=is_bad)
        for reader in by:
            one = replace(world, folder=world.folder / reader)
            one.sections = f"ingest: {{reader: {reader}, bad-records: quarantine}}\n"
            if gate:
                one.sections += f"quality: {{suite: suite.json, gate: {gate}}}\n"
                (one.folder / "suite.json").write_text(SUITE)
            reports = one.batches({"max-offsets-per-batch": drawn.draw.randrange(20, 60)})
            assert in_table(one) == drawn.rows()
            read_by.update(readers(reports) if reader == "auto" else [])
            if is_bad and reader == "auto":
                assert any("has no value of column" in (r.reader or "") for r in reports)
    assert read_by["consumer"] > 1
    assert verify(world.spark, one.definition()).equal


SUITE = json.dumps(
    {
        "name": "rows",
        "expectations": [{"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "id"}}],
    }
)


def test_what_is_left_to_spark(make: Make) -> None:
    """A superseded record that is bad, too: each counts, as one that comes later may be older."""
    world = make(delta=BY_COLUMNS)
    good = json.dumps({"id": 1, "name": "a", "day": "2026-01-01"})
    world.send([(key(1), good), (key(1), None)])
    assert refusal(lambda: read(world)) == "a tombstone has no value of column 'day', which orders changes"
    for bad in ('{"id": 1, "name": "a"}', "no json"):
        end = admin.describe(world.definition().topic).end
        world.send([(key(1), bad), (key(1), good)])
        assert refusal(partial(read, world, end))
