"""A resync makes a topic equal to its table, and sends nothing else."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bridge.delta.publish_log import PublishLog
from bridge.errors import BadRecordError, ConcurrentRunError, DefinitionError, GapError, TableError
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.publish.run import publish
from bridge.pipelines.resync.report import direction_of
from bridge.pipelines.resync.table_to_topic import resync
from tests.metrics.openlineage import edges, events_in
from tests.pipelines.world import Make, World, key, making, tombstone, upsert

make = making(with_table=True)


def fold(world: World) -> dict[int, str]:
    """id -> name, as a reader of committed records has it; what cannot be read is '?'."""
    return {
        id: "?" if value == b"{" else json.loads(value)["name"] for id, value in last(world).items() if value
    }


def last(world: World) -> dict[int, bytes | None]:
    """The last value of each key, in the order of its partition."""
    return {json.loads(key or b"")["id"]: value for key, value in world.received()}


def names(world: World) -> dict[int, str]:
    return {row["id"]: row["name"] for row in world.table().collect()}


@pytest.mark.parametrize("goes_on", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_only_what_differs_is_sent(make: Make, goes_on: bool) -> None:
    world = make()
    world.sql("INSERT INTO t SELECT id, concat('n', id), 1 FROM range(30)")
    definition = world.definition()
    publish(world.spark, definition)
    world.send([upsert(1, "foreign"), (key(2), "{"), tombstone(3), upsert(99, "ghost"), (key(98), "{")])
    world.sql("UPDATE t SET name = 'new' WHERE id = 4", "DELETE FROM t WHERE id = 5")
    shutil.rmtree(world.folder / "checkpoint")
    with pytest.raises(
        DefinitionError, match=r"left no trace .*: set --direction ingest or --direction publish"
    ):
        direction_of(world.spark, definition, None)
    before = len(world.received())
    planned = resync(world.spark, definition, dry_run=True)
    assert (planned.inserted, planned.updated, planned.deleted, planned.unchanged, planned.bad) == (
        1,
        3,
        3,
        25,
        2,
    )
    assert len(world.received()) == before and not (world.folder / "checkpoint" / "publish").exists()
    assert resync(world.spark, definition) == replace(planned, dry_run=False, version=3)
    assert len(world.received()) == before + 7
    assert fold(world) == names(world)
    assert direction_of(world.spark, definition, None) == "publish"
    assert verify(world.spark, definition).equal
    if not goes_on:
        return
    again = resync(world.spark, definition)
    assert (again.inserted, again.updated, again.deleted) == (0, 0, 0)
    assert len(world.received()) == before + 7
    world.sql("UPDATE t SET name = 'goes on' WHERE id = 6")
    assert publish(world.spark, definition).records_out == 1
    assert fold(world) == names(world) and verify(world.spark, definition).equal


ONCE = {"sink.delivery-guarantee": "exactly-once", "sink.parallelism": "2"}


@pytest.mark.slow
def test_a_table_made_anew_begins_a_new_count_of_versions(make: Make, unique: Callable[[str], str]) -> None:
    """Shards that stand at version 4 of the table that is gone must not take version 1 of this one for sent."""
    world = make(options={**ONCE, "sink.transactional-id-prefix": unique("tx")})
    definition = world.definition()
    world.sql("INSERT INTO t SELECT id, 'a', 1 FROM range(20)", "UPDATE t SET name = 'b' WHERE id < 5")
    world.sql("UPDATE t SET name = 'c' WHERE id < 5")
    publish(world.spark, definition)
    shutil.rmtree(world.folder / "table")
    world.create_table()
    world.sql("INSERT INTO t SELECT id, 'z', 1 FROM range(3, 6)")
    with pytest.raises(GapError, match=r"was replaced.*run `bridge resync FILE`"):
        publish(world.spark, definition)
    done = resync(world.spark, definition)
    assert (done.inserted, done.updated, done.deleted) == (0, 3, 17)
    assert fold(world) == names(world)
    world.sql("UPDATE t SET name = 'y'", "DELETE FROM t WHERE id = 3")
    assert publish(world.spark, definition).records_out == 4
    assert fold(world) == names(world) and verify(world.spark, definition).equal


@pytest.mark.slow
@pytest.mark.parametrize("place", ["resync.sent", "resync.opened"])
@pytest.mark.parametrize("once", [True, False])
def test_a_resync_that_dies_is_run_again(
    make: Make, arm: Callable[[str, str], Path], unique: Callable[[str], str], place: str, once: bool
) -> None:
    world = make(options={**ONCE, "sink.transactional-id-prefix": unique("tx")} if once else {})
    definition = world.definition()
    world.sql("INSERT INTO t SELECT id, 'a', 1 FROM range(10)")
    publish(world.spark, definition)
    world.send([upsert(1, "foreign"), tombstone(2), upsert(50, "ghost")])
    arm(place, "raise")
    with pytest.raises(RuntimeError, match="failpoint resync"):
        resync(world.spark, definition)
    with pytest.raises(GapError, match=r"a resync was interrupted.*run `bridge resync FILE`"):
        publish(world.spark, definition)
    resync(world.spark, definition)
    assert fold(world) == names(world)
    assert len(world.received()) == 10 + 3 + 3
    world.sql("DELETE FROM t WHERE id = 7")
    assert publish(world.spark, definition).records_out == 1
    assert fold(world) == names(world)


def test_a_publish_that_still_runs_ends(make: Make) -> None:
    world = make()
    world.sql("INSERT INTO t VALUES (1, 'a', 1)")
    definition = world.definition()
    publish(world.spark, definition)
    stale = PublishLog.of(world.spark, definition)
    known = stale.last()
    assert known is not None
    resync(world.spark, world.definition(run={"lineage": "events.jsonl"}))
    assert edges(events_in(world.folder / "events.jsonl")) == {
        (f"{world.folder}/table", "orders.resync"),
        ("orders.resync", world.topic),
    }
    with pytest.raises(ConcurrentRunError, match=r"recorded .* by another run"):
        stale.write(replace(known, batch=known.batch + 1))


@pytest.mark.slow
def test_messages_of_a_database_tell_the_state_that_was_there(make: Make) -> None:
    options = {"connector": "kafka", "value.format": "debezium-json", "key.fields": "id"}
    world = make(options=options)
    world.sql("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', 1)")
    definition = world.definition()
    publish(world.spark, definition)
    row = '{{"id":{0},"name":"{1}","amount":1.00}}'.format
    world.send(
        [
            (key(1), f'{{"before":null,"after":{row(1, "x")},"op":"u"}}'),
            (key(2), f'{{"before":{row(2, "b")},"after":null,"op":"d"}}'),
            (key(9), f'{{"before":null,"after":{row(9, "ghost")},"op":"c"}}'),
            (key(3), "{"),
        ]
    )
    before = len(world.received())
    done = resync(world.spark, definition)
    assert (done.inserted, done.updated, done.deleted, done.bad) == (1, 2, 1, 1)
    assert len(world.received()) == before + 4
    sent = {}
    for id, text in last(world).items():
        document = json.loads(text or b"")
        sent[id] = (
            document["op"],
            *(side and side["name"] for side in (document["before"], document["after"])),
        )
    assert sent == {1: ("u", "x", "a"), 2: ("c", None, "b"), 3: ("c", None, "c"), 9: ("d", "ghost", None)}


STATES: dict[str, Callable[[dict[str, Any]], dict[str, Any] | None]] = {
    "debezium-json": lambda document: document["after"],
    "ogg-json": lambda document: document["after"],
    "canal-json": lambda document: None if document["type"] == "DELETE" else document["data"][0],
    "maxwell-json": lambda document: None if document["type"] == "delete" else document["data"],
}
"""The row that a document leaves."""


@pytest.mark.slow
@pytest.mark.parametrize("format", STATES)
def test_changes_whose_files_were_vacuumed_are_found_by_their_rows(make: Make, format: str) -> None:
    world = make(options={"connector": "kafka", "value.format": format, "key.fields": "id"})
    world.sql("INSERT INTO t SELECT id, 'a', 1 FROM range(8)")
    definition = world.definition()
    publish(world.spark, definition)
    world.sql("UPDATE t SET name = 'b' WHERE id < 3", "DELETE FROM t WHERE id = 5", "OPTIMIZE t ")
    world.sql("INSERT INTO t VALUES (9, 'new', 1)")
    careless = world.spark.newSession()
    careless.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    careless.sql(f"VACUUM delta.`{world.folder}/table` RETAIN 0 HOURS")
    with pytest.raises(GapError, match=r"have been vacuumed.*run `bridge resync FILE`"):
        publish(world.spark, definition)
    before = len(world.received())
    done = resync(world.spark, definition)
    assert (done.inserted, done.updated, done.deleted, done.unchanged) == (1, 3, 1, 4)
    assert len(world.received()) == before + 5
    states = {id: STATES[format](json.loads(text or b"")) for id, text in last(world).items()}
    assert {id: row["name"] for id, row in states.items() if row} == names(world)
    world.sql("UPDATE t SET name = 'goes on' WHERE id = 9")
    assert publish(world.spark, definition).records_out == 1
    assert verify(world.spark, definition).equal


def test_what_cannot_be_compared_is_refused(make: Make) -> None:
    world = make(partitions=1, cleanup="delete")
    world.sql("INSERT INTO t VALUES (1, 'a', 1)")
    world.send([upsert(1, "a"), ("{", "x")])
    with pytest.raises(
        BadRecordError, match=rf"{world.topic}-0 at offset 1 cannot be decoded, and key: .*run\.checkp"
    ):
        resync(world.spark, world.definition())
    world.sql("INSERT INTO t VALUES (1, 'b', 1)")
    with pytest.raises(TableError, match="1 keys have more than one row"):
        resync(world.spark, world.definition())
    world.columns = "id BIGINT, name STRING, amount DECIMAL(10, 2)"
    world.options = {"connector": "kafka", "key.format": None}
    with pytest.raises(DefinitionError, match=r"no PRIMARY KEY.*publish to a new topic"):
        resync(world.spark, world.definition())
