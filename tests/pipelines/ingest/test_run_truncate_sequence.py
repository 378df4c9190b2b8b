"""`delta.truncate: apply` with `sequence-by`: a truncate takes what is not newer, whatever order records come in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from bridge.errors import DefinitionError
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest.once import ingest_once
from bridge.pipelines.ingest.replay import replay
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.operations.maintain import maintain
from bridge.pipelines.resync.topic_to_table import resync
from tests.docs.pages import DOCS, Page
from tests.pipelines.world import DEBEZIUM, Make, Record, World, making

COLUMNS = "id BIGINT, name STRING, op STRING, at BIGINT, PRIMARY KEY (id) NOT ENFORCED"
DELTA = "path: table, sequence-by: at, truncate: apply, apply-as-truncate: \"op = 't'\", apply-as-delete: \"op = 'd'\""
Event = tuple[str, int, int, str | None]
"""What it does (s, d, t), key, sequence, and value."""

make = making(columns=COLUMNS, delta=DELTA, cleanup="delete", partitions=2)


def record(event: Event) -> Record:
    op, id, at, name = event
    return json.dumps({"id": id}), json.dumps({"id": id, "name": name, "op": op, "at": at})


def applied(world: World, *events: Event) -> None:
    world.send(map(record, events), partition=0)
    ingest(world.spark, world.definition())


def rows(world: World) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, world.table().select("id", "name", "at").collect()))


def oracle(events: Sequence[Event]) -> list[tuple[Any, ...]]:
    floor = max((at for op, _, at, _ in events if op == "t"), default=-1)
    last: dict[int, Event] = {}
    for event in events:
        op, id, at, _ = event
        if op != "t" and at > floor and (id not in last or at >= last[id][2]):
            last[id] = event
    return sorted((id, name, at) for op, id, at, name in last.values() if op == "s")


@pytest.mark.parametrize("engine", ["auto", pytest.param("spark", marks=pytest.mark.slow)])
def test_late_changes_know_the_truncate(make: Make, engine: str) -> None:
    """The batches of docs/deletes.md, each applied by a run of its own."""
    world = make(sections=f"merge: {{engine: {engine}}}\n")
    for _, sent, expected in Page(DOCS / "deletes.md").rows("Batch"):
        events: list[Event] = []
        for text in sent.replace("`", "").split(", "):
            what, *more = text.split()
            at = int(more[-1])
            is_truncate = what == "truncate"
            events.append(("t", 0, at, None) if is_truncate else ("s", int(what), at, more[0]))
        applied(world, *events)
        shown = [row.split() for row in expected.replace("`", "").split(", ") if row != "none"]
        assert rows(world) == [(int(id), name, int(at)) for id, name, at in shown]
    assert verify(world.spark, world.definition()).equal


@pytest.mark.slow
def test_drawn_histories(make: Make) -> None:
    """Truncates, late and equal sequences, deletions, over batches of any size, runs, engines and resyncs."""
    event = st.tuples(
        st.sampled_from("sssdt"), st.integers(1, 4), st.integers(0, 6), st.sampled_from(["a", "b"])
    )
    number = iter(range(100))

    @given(
        st.lists(st.lists(event, min_size=4, max_size=10), min_size=2, max_size=2),
        st.integers(4, 10),
        st.sampled_from(["auto", "spark"]),
    )
    @settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    def check(runs: list[list[Event]], batch: int, engine: str) -> None:
        world, done = (
            make(folder=f"of{next(number)}", sections=f"merge: {{engine: {engine}}}\n"),
            list[Event](),
        )
        for events in runs:
            world.send(map(record, events), partition=0)
            world.batches({"max-offsets-per-batch": batch})
            done += events
            assert rows(world) == oracle(done)
        assert verify(world.spark, world.definition()).equal
        world.sql("UPDATE t SET name = 'wrong' WHERE true", "DELETE FROM t WHERE id = 1")
        resync(world.spark, world.definition())
        assert rows(world) == oracle(done)

    check()


@pytest.mark.slow
def test_a_resync_remembers_the_truncate_and_replay_and_once_know_it(make: Make) -> None:
    world = make(sections="ingest: {bad-records: quarantine}\n", delta=DELTA + ", delete-memory: 1 s")
    bad = [(json.dumps({"id": n}), f'{{"id": {n}, "name": "bad", "op": "s", "at": "x"}}') for n in (7, 8)]
    world.send(bad, partition=1)
    applied(world, ("s", 1, 1, "a"), ("t", 0, 5, None), ("s", 2, 6, "b"))
    world.spark.sql(
        f"UPDATE delta.`{world.folder}/table_quarantine` SET value = encode(replace(decode(value, 'UTF-8'), '\"x\"', "
        "CASE WHEN decode(key, 'UTF-8') LIKE '%7%' THEN '5' ELSE '6' END), 'UTF-8')"
    )
    assert replay(world.spark, world.definition()).replayed == 2
    assert rows(world) == [(2, "b", 6), (8, "bad", 6)]
    maintain(world.spark, world.definition())
    applied(world, ("s", 3, 5, "late"), ("s", 4, 7, "d"))
    assert rows(world) == [(2, "b", 6), (4, "d", 7), (8, "bad", 6)]
    file = world.folder / "rows.json"
    documents = [("s", 5, 5, "old"), ("s", 6, 8, "new"), ("t", 0, 6, None)]
    file.write_text("\n".join(record(event)[1] for event in documents))  # type: ignore[misc]
    ingest_once(world.spark, world.definition(), f"json:{file}")
    assert rows(world) == [(4, "d", 7), (6, "new", 8)]
    applied(world, ("s", 3, 6, "late"))
    assert rows(world) == [(4, "d", 7), (6, "new", 8)]


@pytest.mark.slow
def test_a_truncate_of_debezium_has_the_time_of_its_record(make: Make) -> None:
    columns = "id BIGINT, at TIMESTAMP_LTZ(3) METADATA FROM '{}' VIRTUAL, PRIMARY KEY (id) NOT ENFORCED"
    more: dict[str, Any] = {"options": DEBEZIUM, "delta": "path: table, sequence-by: at, truncate: apply"}
    world = make(columns=columns.format("timestamp"), **more)

    def send(at: int, **change: Any) -> None:
        world.send([(None, json.dumps(change))], timestamp=at, partition=at % 2)
        ingest(world.spark, world.definition())

    send(1_000, before=None, after={"id": 1}, op="c")
    send(3_000, before=None, after={"id": 2}, op="c")
    send(2_001, op="t", source={"table": "t"})
    assert [row[0] for row in world.rows()] == [2]
    send(2_000, before=None, after={"id": 3}, op="c")
    send(2_002, before=None, after={"id": 4}, op="c")
    assert [row[0] for row in world.rows()] == [2, 4]
    assert verify(world.spark, world.definition()).equal
    with pytest.raises(
        DefinitionError, match=r"a truncate of format 'debezium-json' has no row, so no 'at' by which"
    ):
        make(columns=columns.format("value.source.timestamp"), **more).definition()
