"""`delta.history: append`: a row for each change, whatever the batches are; and what else knows of it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge import failpoints
from bridge.embedded.broker import Broker
from bridge.errors import BadRecordError, DefinitionError, GapError, TableError
from bridge.metrics import BatchReport
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest.replay import replay
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.publish.run import publish
from bridge.pipelines.quality.check import check
from bridge.pipelines.quality.suite_proposal import propose
from bridge.pipelines.resync.topic_to_table import resync
from tests.docs.pages import DOCS, Page
from tests.pipelines.folds import Event, all_changes
from tests.pipelines.ingest.test_run_sequence import of_page
from tests.pipelines.world import DEBEZIUM, Record, World

COLUMNS = "id BIGINT, a STRING NOT NULL, PRIMARY KEY (id) NOT ENFORCED"
HISTORY = "path: table, history: append"
NAMED = f"{HISTORY}, history-columns: [kind, name, part, pos, num]"


@pytest.fixture
def make(
    spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]
) -> Callable[..., World]:
    def made(folder: str = ".", **more: Any) -> World:
        (lake / folder).mkdir(exist_ok=True)
        more = {"columns": COLUMNS, "delta": HISTORY, "cleanup": "delete", "partitions": 1, **more}
        return World.make(spark, broker, lake / folder, unique, **more)

    return made


def document(op: str, before: Any = None, after: Any = None) -> Record:
    return None, json.dumps({"op": op, "before": before, "after": after})


def row(id: int, a: str | None) -> dict[str, Any]:
    return {"id": id, "a": a}


def changes(words: list[str]) -> Record:
    """Of the words of docs/histories.md."""
    kind, id, *values = words
    rows = [row(int(id), a) for a in values]
    before = rows[0] if kind in ("update", "delete") else None
    after = rows[-1] if kind in ("update", "insert") else None
    return document({"insert": "c", "update": "u", "delete": "d"}[kind], before, after)


def applied(world: World, *records: Record, **run: object) -> list[BatchReport]:
    world.send(records)
    done: list[BatchReport] = []
    ingest(world.spark, world.definition(run=run), listener=done.append)
    return done


def trail(world: World) -> list[tuple[Any, ...]]:
    """Id, a, kind, offset and number of each row, by the last two."""
    rows = [tuple(found) for found in world.table().collect()]
    assert {(found[3], found[4]) for found in rows} == {(world.topic, 0)}
    return sorted(((*found[:3], *found[5:]) for found in rows), key=lambda found: found[3:])


def test_the_runs_of_the_page(make: Callable[..., World]) -> None:
    """Those of docs/histories.md, each applied by a run of its own."""
    world = make(options=DEBEZIUM)
    expected: list[list[str]] = []
    for _, records, added in Page(DOCS / "histories.md").rows("Run"):
        [report] = applied(world, *map(changes, of_page(records)))
        assert report.reader == "spark (only Spark gives each change its kind and place (delta.history))"
        expected += of_page(added)
        assert report.inserted == len(of_page(added))
        assert [list(map(str, found)) for found in trail(world)] == expected
    assert verify(world.spark, world.definition()).equal


def stop_at(point: str, name: str) -> None:
    if name == point:
        raise RuntimeError(point)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, DEBEZIUM], ids=["upsert", "debezium"])
def test_any_cut_into_batches_and_any_kill_gives_the_rows_of_the_oracle(
    options: dict[str, Any], make: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make(options=options)
    seed = random.randrange(1 << 30)
    drawn, rows, events = random.Random(seed), dict[int, str](), list[Event]()
    for _ in range(6):
        records: list[Record] = []
        for _ in range(drawn.randint(1, 12)):
            id, a = drawn.randrange(4), drawn.choice([None, "x", "y", "z"])
            if options and a is None and id not in rows:
                continue  # nothing to delete
            before = row(id, rows[id]) if id in rows else None
            if not options:
                records.append((json.dumps({"id": id}), None if a is None else json.dumps(row(id, a))))
            elif a is None:
                records.append(document("d", before))
            else:
                records.append(document("c" if before is None else "u", before, row(id, a)))
            events.append(Event(id, None if a is None else {"a": a}))
            rows.pop(id, None)
            rows |= {} if a is None else {id: a}
        point = drawn.choice(["ingest.before-merge", "ingest.after-merge", "none"])
        with monkeypatch.context() as patch:
            patch.setattr(failpoints, "hit", partial(stop_at, point))
            if records and point != "none":
                with pytest.raises(RuntimeError, match=point):
                    applied(world, *records)
                records = []
        applied(world, *records, **{"max-offsets-per-batch": drawn.randint(1, 12)})
        assert trail(world) == all_changes(events, upserts=not options), seed
    assert verify(world.spark, world.definition()).equal, seed
    world.sql("DELETE FROM t WHERE `__change_offset` = 0")
    assert not verify(world.spark, world.definition()).equal


@pytest.mark.slow
def test_a_deletion_has_what_its_record_has(make: Callable[..., World]) -> None:
    """As Postgres with the default REPLICA IDENTITY sends it: the key alone, and no row before an update."""
    world = make(options=DEBEZIUM)
    applied(
        world, document("c", None, row(1, "x")), document("u", None, row(1, "y")), document("d", {"id": 1})
    )
    assert trail(world) == [(1, "x", "+I", 0, 0), (1, "y", "+U", 1, 0), (1, None, "-D", 2, 0)]
    world.send([document("u", None, row(1, "__debezium_unavailable_value"))])
    with pytest.raises(BadRecordError, match=r"offset 3, row \(id: 1\): value: it leaves out a, and without"):
        ingest(world.spark, world.definition())
    world.sections = "ingest: {bad-records: skip}\n"
    [report] = applied(world, document("c", None, row(2, None)), document("c", None, row(3, "z")))
    assert (report.bad_records, trail(world)[3:]) == (2, [(3, "z", "+I", 5, 0)])
    world.send([document("t")])
    with pytest.raises(BadRecordError, match="deletes all rows of the table"):
        ingest(world.spark, world.definition())
    world.delta = f"{HISTORY}, truncate: ignore"
    applied(world)
    assert len(trail(world)) == 4


@pytest.mark.slow
def test_values_that_are_left_out_are_bad_in_each_table_without_a_key(make: Callable[..., World]) -> None:
    columns = "id BIGINT, a STRING, kind STRING METADATA FROM 'row-kind' VIRTUAL"
    world = make(options=DEBEZIUM, delta="path: table", columns=columns)
    left_out = row(1, "__debezium_unavailable_value")
    world.send([document("c", None, row(1, "x")), document("u", left_out, left_out)])
    with pytest.raises(BadRecordError, match=r"offset 1: value: it leaves out a, and without a PRIMARY KEY"):
        ingest(world.spark, world.definition())


@pytest.mark.slow
def test_a_replay_adds_the_rows_that_are_not_there(make: Callable[..., World]) -> None:
    """Of a record with two rows, of which one was bad, only that one."""
    world = make(
        columns="id BIGINT, a STRING, n INT, share AS 10 / n, PRIMARY KEY (id) NOT ENFORCED",
        options={**DEBEZIUM, "value.format": "canal-json"},
        sections="ingest: {bad-records: quarantine}\n",
    )
    data = [{"id": n, "a": "x", "n": n} for n in (0, 1)]
    [report] = applied(world, (None, json.dumps({"type": "INSERT", "data": data})))
    assert (report.bad_records, report.inserted) == (1, 1)
    world.spark.sql(
        f"UPDATE delta.`{world.folder}/table_quarantine` SET value = "
        "encode(replace(decode(value, 'UTF-8'), '\"n\": 0', '\"n\": 5'), 'UTF-8')"
    )
    assert replay(world.spark, world.definition()).replayed == 1
    found = world.table().orderBy("__change_row").select("id", "n", "share", "__change_row").collect()
    assert [tuple(each) for each in found] == [(0, 5, 2.0, 0), (1, 1, 10.0, 1)]


@pytest.mark.slow
def test_the_trail_is_published_as_it_is(make: Callable[..., World]) -> None:
    world = make(options=DEBEZIUM, delta=NAMED)
    applied(world, document("c", None, row(1, "x")), document("u", row(1, "x"), row(1, "y")))
    with pytest.raises(DefinitionError, match=r"`delta.history` is about the changes of an ingest"):
        publish(world.spark, world.definition())
    world.topic, world.delta = f"{world.topic}-out", "path: table"
    world.options = {"connector": "kafka", "key.format": None}
    world.broker.create_topic(world.topic, partitions=1)
    columns = "id BIGINT, a STRING, kind STRING, part INT, pos BIGINT, num INT"
    world.columns = f"{columns}, PRIMARY KEY (id) NOT ENFORCED"
    world.options = {}
    with pytest.raises(TableError, match=r"several rows have the same id: leave the PRIMARY KEY out"):
        publish(world.spark, world.definition("keyed", run={"checkpoint": "keyed"}))
    world.columns, world.options = columns, {"connector": "kafka", "key.format": None}
    publish(world.spark, world.definition("out", run={"checkpoint": "out"}))
    sent = sorted(
        (json.loads(value or b"") for _, value in world.received()), key=lambda v: (v["pos"], v["num"])
    )
    assert [(v["a"], v["kind"], v["pos"], v["num"]) for v in sent] == [
        ("x", "+I", 0, 0),
        ("x", "-U", 1, 0),
        ("y", "+U", 1, 1),
    ]


@pytest.mark.slow
def test_a_check_finds_a_place_that_is_there_twice(make: Callable[..., World]) -> None:
    world = make(options=DEBEZIUM, sections="quality: {suite: suite.json, on-failure: warn}\n")
    applied(world, document("c", None, row(1, "x")), document("u", row(1, "x"), row(1, "y")))
    propose(world.spark, world.definition())
    assert check(world.spark, world.definition()).verdict.success
    world.sql("INSERT INTO t SELECT * FROM t WHERE a = 'y'")
    failed = {outcome.type for outcome in check(world.spark, world.definition()).verdict.failed}
    assert failed == {"expect_key_to_be_unique"}


@pytest.mark.slow
def test_a_table_stays_what_it_is(make: Callable[..., World]) -> None:
    world = make(options=DEBEZIUM)
    applied(world, document("c", None, row(1, "x")))
    with pytest.raises(
        DefinitionError, match="for each change, also of records that its topic no longer has"
    ):
        resync(world.spark, world.definition())
    trailing = world.definition()
    world.delta = f"{NAMED}, merge-schema: true"
    with pytest.raises(
        TableError, match=r"is a history in the columns __change_kind, .*`delta.history-columns` names others"
    ):
        ingest(world.spark, world.definition())
    world.delta = "path: table"
    with pytest.raises(TableError, match=r"is a history in the columns __change_kind, .* says otherwise"):
        ingest(world.spark, world.definition())
    world.delta = "path: other"
    applied(world, document("c", None, row(2, "y")), checkpoint="other-checkpoint")
    plain = world.definition(run={"checkpoint": "other-checkpoint"})
    with pytest.raises(TableError, match=r"is no history, and `delta.history` says otherwise"):
        ingest(world.spark, replace(trailing, delta=replace(trailing.delta, path=plain.delta.path)))


@pytest.mark.slow
def test_a_compacted_topic_does_not_have_all_changes(make: Callable[..., World]) -> None:
    world = make(cleanup="compact")
    ingest(world.spark, world.definition())
    with pytest.raises(GapError, match=r"`delta.history` needs the records before it"):
        verify(world.spark, world.definition())
