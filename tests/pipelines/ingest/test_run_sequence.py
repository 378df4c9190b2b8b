"""`delta.sequence-by`: the greatest sequence wins, in whatever order the records of a key come."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from bridge.delta.delete_memory import DeleteMemory
from bridge.errors import BadRecordError, DefinitionError, GapError, TableError
from bridge.metrics import BatchReport
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest.replay import replay
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.operations.maintain import maintain
from bridge.pipelines.publish.run import publish
from bridge.pipelines.resync import topic_to_table
from bridge.pipelines.resync.topic_to_table import resync
from bridge.ways import told
from tests.docs.pages import DOCS, Page
from tests.pipelines.world import DEBEZIUM, Make, Record, World, making

COLUMNS = "id BIGINT, name STRING, at BIGINT, PRIMARY KEY (id) NOT ENFORCED"
NO_SEQUENCE = "column 'at' has no value, and delta.sequence-by orders changes by it"
ORDERED = "path: table, sequence-by: at"


make = making(columns=COLUMNS, options=DEBEZIUM, delta=ORDERED, cleanup="delete", partitions=1)


def row(id: int, name: str | None, at: int | None) -> dict[str, Any]:
    return {"id": id, "name": name, "at": at}


def add(id: int, name: str, at: int | None) -> Record:
    return None, json.dumps({"before": None, "after": row(id, name, at), "op": "c"})


def update(before: dict[str, Any], after: dict[str, Any]) -> Record:
    return None, json.dumps({"before": before, "after": after, "op": "u"})


def delete(id: int, at: int | None) -> Record:
    return None, json.dumps({"before": row(id, None, at), "after": None, "op": "d"})


def applied(world: World, *records: Record) -> BatchReport:
    """The report of the batch of these records."""
    world.send(records)
    done = world.batches()
    assert len(done) == 1
    return done[0]


def of_page(text: str) -> list[list[str]]:
    """The words of each piece of code in a cell of docs/change-semantics.md."""
    return [code.split() for code in re.findall(r"`([^`]+)`", text)]


@pytest.mark.parametrize("reader", ["consumer", pytest.param("spark", marks=pytest.mark.slow)])
def test_late_changes_have_no_effect_over_batches_and_restarts(reader: str, make: Make) -> None:
    """The batches of docs/change-semantics.md, each applied by a run of its own."""
    world = make(sections=f"ingest: {{reader: {reader}}}\n")
    done = []
    for _, records, rows in Page(DOCS / "change-semantics.md").rows("Batch"):
        sent = [
            add(int(words[1]), words[2], int(words[3])) if words[0] == "set" else delete(*map(int, words[1:]))
            for words in of_page(records)
        ]
        done.append(applied(world, *sent))
        assert world.rows() == [(int(id), name, int(at)) for id, name, at in of_page(rows)]
    assert {report.reader for report in done} == {
        told(reader, "" if reader == "consumer" else "set by ingest.reader")
    }
    assert [(r.inserted, r.updated, r.deleted) for r in done] == [(2, 0, 0), (0, 1, 0), (1, 0, 1), (0, 1, 0)]
    assert verify(world.spark, world.definition()).equal


UPSERT: dict[str, Any] = {
    "options": {},
    "columns": "id BIGINT, name STRING, at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL, "
    "PRIMARY KEY (id) NOT ENFORCED",
}


@pytest.mark.slow
def test_tombstones_have_the_sequence_of_their_records(make: Make) -> None:
    """The timestamp of the record, which a tombstone has, in a topic whose partitions do not order it."""
    world = make(**UPSERT, partitions=2)

    def send(*records: tuple[int, int, str | None]) -> None:
        for id, at, name in records:
            value = None if name is None else json.dumps({"id": id, "name": name})
            world.send([(json.dumps({"id": id}), value)], timestamp=at, partition=at % 2)

    def names() -> list[tuple[Any, ...]]:
        return sorted((r["id"], r["name"]) for r in world.table().collect())

    send((1, 1_000, "a"), (1, 3_001, "new"), (2, 5_000, None))
    ingest(world.spark, world.definition())
    assert names() == [(1, "new")]
    send((1, 2_000, None), (2, 4_001, "late"), (3, 1_000, "c"), (3, 2_001, None))
    ingest(world.spark, world.definition())
    assert names() == [(1, "new")]
    send((2, 5_001, "again"), (3, 1_500, "late"))
    ingest(world.spark, world.definition())
    assert names() == [(1, "new"), (2, "again")]
    assert verify(world.spark, world.definition()).equal


@pytest.mark.slow
def test_a_change_without_a_sequence_is_a_bad_record(make: Make) -> None:
    """As in AUTO CDC ("NULL sequencing values are unsupported"), a deletion without one, too."""
    world = make()
    world.send([add(1, "a", 1), add(2, "b", None), delete(1, None)])
    with pytest.raises(BadRecordError, match=NO_SEQUENCE):
        ingest(world.spark, world.definition())
    world.sections = "ingest: {bad-records: quarantine}\n"
    assert ingest(world.spark, world.definition()).quarantined == 2
    assert world.rows() == [(1, "a", 1)]


@pytest.mark.slow
def test_a_tombstone_without_a_sequence_is_a_bad_record(make: Make) -> None:
    world = make(options={})
    world.send([('{"id":1}', None)])
    with pytest.raises(BadRecordError, match=NO_SEQUENCE):
        ingest(world.spark, world.definition())


@pytest.mark.slow
def test_an_update_is_no_deletion_of_its_row(make: Make) -> None:
    """Debezium's update has the row before, with a sequence of its own: only one that moves the row deletes the old
    key."""
    world = make()
    applied(world, add(1, "a", 5), add(2, "b", 5), add(3, "c", 5))
    applied(world, update(row(1, "a", 5), row(1, "late", 3)), update(row(2, "b", 5), row(4, "b", 6)))
    assert world.rows() == [(1, "a", 5), (3, "c", 5), (4, "b", 6)]


@pytest.mark.slow
def test_deletions_are_forgotten(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not before later records have come: a record that was sent in time counts after an outage, too."""
    world = make(delta=f"{ORDERED}, delete-memory: 1 s")
    applied(world, add(1, "a", 1), delete(1, 5), delete(2, 5))
    world.send([add(1, "in time", 2)])
    time.sleep(1.2)
    assert maintain(world.spark, world.definition()).warning is None
    done = applied(world, add(2, "late", 3))
    assert (
        world.rows() == []
        and done.warning is not None
        and done.warning.startswith(
            "2 deletions are forgotten, as they are older than delta.delete-memory (1.0 s)"
        )
    )
    applied(world, delete(3, 5), delete(4, 5))
    time.sleep(1.2)
    with monkeypatch.context() as kept:
        kept.setattr(DeleteMemory, "forget", lambda *_: None)
        assert applied(world, add(1, "late", 3)).inserted == 1
    found = maintain(world.spark, world.definition()).warning
    assert found is not None and found.startswith("2 deletions are forgotten, as they are older")
    proof = verify(world.spark, world.definition())
    assert not proof.equal and proof.comparison.missing_in_topic == 1
    assert resync(world.spark, world.definition()).deleted == 1


@pytest.mark.slow
def test_values_that_a_record_leaves_out_are_not_filled(make: Make) -> None:
    """The value may be in an older change that comes later, so the row would depend on when that one comes."""
    world = make()
    left_out = {"id": 1, "name": "__debezium_unavailable_value", "at": 2}
    world.send([add(1, "a", 1), update(row(1, "a", 1), left_out)])
    with pytest.raises(BadRecordError, match=r"value: it leaves out name, which may be in an earlier change"):
        ingest(world.spark, world.definition())


@pytest.mark.slow
def test_the_order_of_a_table_that_is_there_is_changed_by_a_resync(make: Make) -> None:
    world = make(delta="path: table")
    applied(world, add(1, "new", 5), add(1, "late", 3), add(2, "b", 1), delete(2, 4))
    assert world.rows() == [(1, "late", 3)]
    world.delta = ORDERED
    world.send([add(2, "late", 3)])
    with pytest.raises(
        TableError, match=r"with neither `sequence-by` nor.*now has `sequence-by: at`.*resync"
    ):
        ingest(world.spark, world.definition())
    assert resync(world.spark, world.definition()).updated == 1
    assert world.rows() == [(1, "new", 5)]
    assert applied(world, add(2, "late", 2)).inserted == 0
    world.delta = "path: table"
    with pytest.raises(TableError, match=r"with `sequence-by: at`, and `delta` now has neither"):
        ingest(world.spark, world.definition())


def message(before: Any, after: Any, op: str, **more: Any) -> Record:
    return None, json.dumps({"before": before, "after": after, "op": op, **more})


@pytest.mark.slow
def test_what_tries_another_order_leaves_the_memory_of_this_one(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = ["id BIGINT", "name STRING", "at BIGINT", "b BIGINT", "PRIMARY KEY (id) NOT ENFORCED"]
    world = make(columns=", ".join(columns))
    applied(
        world, message(None, {**row(1, "a", 1), "b": 1}, "c"), message({"id": 1, "at": 5, "b": 2}, None, "d")
    )
    world.delta = "path: table, sequence-by: b"
    with pytest.raises(TableError, match=r"with `sequence-by: at`, and `delta` now has `sequence-by: b`"):
        maintain(world.spark, world.definition())

    def killed(*_: Any, **__: Any) -> None:
        raise RuntimeError("killed")

    for step in (f"{topic_to_table.__name__}._Run._write", f"{topic_to_table.__name__}.record_semantics"):
        with monkeypatch.context() as patch:
            patch.setattr(step, killed)
            with pytest.raises(RuntimeError, match="killed"):
                resync(world.spark, world.definition())
        if step.endswith("_write"):
            world.delta, world.columns = ORDERED, ", ".join(columns[2::-1] + columns[3:])
            applied(world, message(None, {**row(1, "late", 3), "b": 3}, "c"))
            assert world.rows() == [] and verify(world.spark, world.definition()).equal
            world.delta = "path: table, sequence-by: b"
    for order in (ORDERED, world.delta):
        world.delta = order
        with pytest.raises(TableError, match=r"a resync to `sequence-by: b` did not end.* again"):
            ingest(world.spark, world.definition())
    resync(world.spark, world.definition())
    applied(world, message({"id": 1, "at": 9, "b": 4}, None, "d"))
    applied(world, message(None, {**row(1, "late", 10), "b": 3}, "c"))
    assert world.rows() == [] and verify(world.spark, world.definition()).equal


@pytest.mark.slow
def test_deletions_of_a_former_topic_do_not_count(make: Make) -> None:
    world = make()
    applied(world, add(1, "a", 5), delete(1, 9))
    admin = AdminClient({"bootstrap.servers": world.broker.bootstrap})
    admin.delete_topics([world.topic])[world.topic].result(30)
    world.broker.create_topic(world.topic, partitions=1, config={"cleanup.policy": "delete"})
    world.send([add(1, "n", 1), add(2, "o", 1), delete(2, 4)])
    resync(world.spark, world.definition(), missing="delete")
    applied(world, update(row(1, "n", 1), row(1, "m", 2)), add(2, "late", 3))
    assert world.rows() == [(1, "m", 2)] and verify(world.spark, world.definition()).equal


@pytest.mark.slow
def test_another_meaning_of_the_column_is_another_order(make: Make) -> None:
    columns = "id BIGINT, name STRING, at TIMESTAMP_LTZ(3) METADATA FROM '{}', PRIMARY KEY (id) NOT ENFORCED"
    world = make(columns=columns.format("timestamp"))

    def add(name: str, ms: int) -> Record:
        return message(None, {"id": 1, "name": name}, "c", source={"ts_ms": ms})

    def delete(ms: int) -> Record:
        return message({"id": 1, "name": None}, None, "d", source={"ts_ms": ms})

    applied(world, add("a", 1000), delete(2000))
    world.columns = columns.format("value.source.timestamp")
    world.send([add("b", 3000)])
    with pytest.raises(
        TableError, match=r"by: at METADATA FROM 'timestamp'`, .* FROM 'value.source.timestamp'`"
    ):
        ingest(world.spark, world.definition())
    resync(world.spark, world.definition())
    applied(world, delete(4000), add("c", 5000))
    assert [r[:2] for r in world.rows()] == [(1, "c")] and verify(world.spark, world.definition()).equal


@pytest.mark.slow
def test_a_quarantined_record_does_not_overtake_a_newer_sequence(make: Make) -> None:
    world = make(sections="ingest: {bad-records: quarantine}\n")
    bad = [
        (None, f'{{"after": {{"id": {id}, "name": "bad", "at": "{at}"}}, "op": "c"}}')
        for id, at in ((1, "x"), (2, "x"))
    ]
    applied(world, add(1, "a", 1), *bad, delete(2, 4), add(3, "c", 3))
    applied(world, add(3, "late", 1))
    target = world.spark.sql(
        f"UPDATE delta.`{world.folder}/table_quarantine` SET value = "
        "encode(replace(decode(value, 'UTF-8'), '\"x\"', '3'), 'UTF-8')"
    )
    assert target.collect()[0][0] == 2
    done = replay(world.spark, world.definition())
    assert (done.replayed, done.still_bad) == (2, 0)
    assert world.rows() == [(1, "bad", 3), (3, "c", 3)]


@pytest.mark.slow
def test_what_a_compacted_topic_does_not_determine(make: Make) -> None:
    world = make(**UPSERT, cleanup="compact")
    ingest(world.spark, world.definition())
    for compare in (verify, resync):
        with pytest.raises(GapError, match="is compacted, and compaction keeps the last record of a key"):
            compare(world.spark, world.definition())
    with pytest.raises(DefinitionError, match=r"`delta.sequence-by` is about the changes of an ingest"):
        publish(world.spark, world.definition())
