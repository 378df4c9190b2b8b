"""`delta.ignore-null-updates`: a row keeps its value where a change has NULL; equal to a fold in plain Python."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from bridge.errors import BadRecordError, DefinitionError, GapError
from bridge.metrics import BatchReport
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest.replay import replay
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.resync.topic_to_table import resync
from tests.pipelines.world import DEBEZIUM, Make, making

COLUMNS = "id BIGINT, a STRING, b INT, c STRING, PRIMARY KEY (id) NOT ENFORCED"
KEPT = "path: table, ignore-null-updates: [a, b]"
Row = dict[str, Any]


make = making(columns=COLUMNS, delta=KEPT, cleanup="delete", partitions=1)


def folded(
    changes: list[tuple[int, Row | None]], kept: tuple[str, ...] = ("a", "b")
) -> list[tuple[Any, ...]]:
    """The oracle: a change sets the columns that it has, a deletion forgets all of them."""
    rows: dict[int, Row] = {}
    for id, change in changes:
        if change is None:
            rows.pop(id, None)
        else:
            before = rows.get(id, {})
            rows[id] = {n: before.get(n) if n in kept and change[n] is None else change[n] for n in "abc"}
    return sorted(((id, *row.values()) for id, row in rows.items()), key=str)


def drawn(seed: int, count: int, keys: int) -> list[tuple[int, Row | None]]:
    draw = random.Random(seed)
    return [
        (
            draw.randrange(keys),
            None
            if draw.random() < 0.2
            else {
                "a": draw.choice([None, None, f"a{n}"]),
                "b": draw.choice([None, n]),
                "c": draw.choice([None, f"c{n}"]),
            },
        )
        for n in range(count)
    ]


def upserts(changes: list[tuple[int, Row | None]]) -> list[tuple[str, str | None]]:
    return [
        (json.dumps({"id": id}), None if row is None else json.dumps({"id": id, **row}))
        for id, row in changes
    ]


def events(changes: list[tuple[int, Row | None]]) -> list[tuple[None, str]]:
    """Updates have the row before, of which Debezium's decoder makes a retraction."""
    known: dict[int, Row] = {}
    found = []
    for id, row in changes:
        before, after = known.pop(id, None), None if row is None else {"id": id, **row}
        if after is not None:
            known[id] = after
        if before is None and after is None:
            continue
        op = "c" if before is None else "d" if after is None else "u"
        found.append((None, json.dumps({"before": before, "after": after, "op": op})))
    return found


@pytest.mark.parametrize(
    "options", [pytest.param({}, id="upsert"), pytest.param(DEBEZIUM, id="debezium", marks=pytest.mark.slow)]
)
def test_drawn_histories_in_batches(options: dict[str, Any], make: Make) -> None:
    """Nulls, deletions, inserts after them: within a batch and over batches and runs."""
    world = make(options=options)
    history = drawn(46, 120, 12)
    done: list[BatchReport] = []
    for begin, end in ((0, 10), (10, 70), (70, 120)):
        part = upserts(history) if not options else events(history)
        share = len(part) * end // 120
        world.send(part[len(part) * begin // 120 : share])
        ingest(world.spark, world.definition(), listener=done.append)
        if not options:
            assert world.rows() == folded(history[:end])
    assert world.rows() == folded(history)
    assert {(report.reader, report.engine) for report in done} == {("consumer", "driver")}
    assert verify(world.spark, world.definition()).equal


@pytest.mark.slow
def test_a_resync_folds_alike(make: Make) -> None:
    world = make(delta="path: table")
    history = drawn(47, 60, 6)
    world.send(upserts(history))
    ingest(world.spark, world.definition())
    assert world.rows() == folded(history, kept=())
    world.delta = KEPT
    resync(world.spark, world.definition())
    assert world.rows() == folded(history)
    world.send(upserts([(99, {"a": None, "b": 1, "c": None})]))
    ingest(world.spark, world.definition())
    assert verify(world.spark, world.definition()).equal


@pytest.mark.slow
def test_a_column_that_is_added_keeps_its_values_too(make: Make) -> None:
    """`true` means all columns of the DDL as it is now."""
    of_two = "id BIGINT, a STRING, b INT, PRIMARY KEY (id) NOT ENFORCED"
    world = make(columns=of_two, delta="path: table, ignore-null-updates: true, merge-schema: true")
    world.send(upserts([(1, {"a": "a1", "b": 1, "c": None})]))
    ingest(world.spark, world.definition())
    world.columns = COLUMNS
    world.send(upserts([(1, {"a": None, "b": None, "c": "c2"}), (1, {"a": "a3", "b": None, "c": None})]))
    ingest(world.spark, world.definition())
    assert world.rows() == [(1, "a3", 1, "c2")]


@pytest.mark.slow
def test_what_is_refused(make: Make) -> None:
    world = make(options=DEBEZIUM, sections="ingest: {bad-records: quarantine}\n")
    with pytest.raises(
        DefinitionError, match=r"under `delta.ignore-null-updates` a record that is applied later"
    ):
        replay(world.spark, world.definition())
    world.sections = ""
    left_out = {"id": 1, "a": "__debezium_unavailable_value", "b": 1, "c": None}
    world.send([(None, json.dumps({"before": None, "after": left_out, "op": "c"}))])
    with pytest.raises(
        BadRecordError, match=r"value: it leaves out a, which may be no value that the row keeps"
    ):
        ingest(world.spark, world.definition())
    compacted = make(cleanup="compact")
    with pytest.raises(GapError, match=r"`delta.ignore-null-updates` needs the records before it, too"):
        verify(compacted.spark, compacted.definition())
