"""`delta.history`: a row for each interval, whatever order the records come in; and what else knows of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from bridge import failpoints
from bridge.embedded.broker import Broker
from bridge.errors import DefinitionError, GapError, QualityError, TableError
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest.explain import explain
from bridge.pipelines.ingest.replay import replay
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.operations.maintain import maintain
from bridge.pipelines.publish.run import publish
from bridge.pipelines.quality.check import check
from bridge.pipelines.quality.suite_proposal import propose
from bridge.pipelines.resync import topic_to_table
from bridge.pipelines.resync.topic_to_table import resync
from bridge.rows import Change, RowKind, intervals
from tests.docs.pages import DOCS, Page
from tests.pipelines.ingest.test_run_sequence import ORDERED, UPSERT, applied, message, of_page
from tests.pipelines.world import DEBEZIUM, Record, World

COLUMNS = (
    "id BIGINT, name STRING, at TIMESTAMP_LTZ(3) METADATA FROM 'value.source.timestamp' VIRTUAL, "
    "PRIMARY KEY (id) NOT ENFORCED"
)
OF_DOCUMENT: dict[str, Any] = {
    "options": {},
    "columns": "id BIGINT, name STRING, at BIGINT, PRIMARY KEY (id) NOT ENFORCED",
}
"""An upsert topic, in whose documents a producer writes a number of its own."""
HISTORY = f"{ORDERED}, history: scd2"
NAMED = f"{HISTORY}, history-columns: [valid_from, valid_to, is_current]"


@pytest.fixture
def make(
    spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]
) -> Callable[..., World]:
    def made(**more: Any) -> World:
        given = {"columns": COLUMNS, "options": DEBEZIUM, "delta": HISTORY, "cleanup": "delete", **more}
        return World.make(spark, broker, lake, unique, **{"partitions": 1, **given})

    return made


def add(id: int, name: str, at: int, **more: Any) -> Record:
    return message(None, {"id": id, "name": name, **more}, "c", source={"ts_ms": 1000 * at})


def update(before: int, id: int, name: str, at: int) -> Record:
    return message({"id": before, "name": "?"}, {"id": id, "name": name}, "u", source={"ts_ms": 1000 * at})


def delete(id: int, at: int) -> Record:
    return message({"id": id, "name": "?"}, None, "d", source={"ts_ms": 1000 * at})


def put(id: int, name: str, at: int) -> Record:
    return json.dumps({"id": id}), json.dumps({"id": id, "name": name, "at": at})


def shown(world: World) -> list[list[str]]:
    """Id, name, start and end of the rows, as docs/histories.md has them."""
    rows = sorted(world.table().collect(), key=lambda r: (r[0], r[-3]))
    assert all(r[-1] == (r[-2] is None) for r in rows)
    return [[str(r[0]), r[1], seconds(r[-3]), seconds(r[-2])] for r in rows]


def seconds(at: Any) -> str:
    return "-" if at is None else str(at if isinstance(at, int) else int(at.timestamp()))


def rows(text: str) -> list[list[str]]:
    return [each.split() for each in text.split(", ")]


PAGE = Page(DOCS / "histories.md").rows("Batch")


def test_the_page_is_right() -> None:
    """The rows of docs/histories.md are those of the oracle."""
    done: list[Change] = []
    for _, records, expected in PAGE:
        done += changes_of(records)
        assert of_oracle(done) == of_page(expected)


def changes_of(records: str) -> Iterator[Change]:
    for word, id, *name, at in of_page(records):
        kind = RowKind.UPDATE_AFTER if word == "set" else RowKind.DELETE
        yield Change(kind, id, {"name": name}, (), (int(at),))


def of_oracle(done: Sequence[Change]) -> list[list[str]]:
    return [
        [str(id), *row.row["name"], str(row.start), "-" if row.end is None else str(row.end)]
        for id, history in sorted(intervals(done).items(), key=str)
        for row in history
    ]


def test_a_late_record_splits_a_row(make: Callable[..., World]) -> None:
    world = make()
    applied(world, add(1, "a", 1), add(1, "c", 5))
    done = applied(world, add(1, "b", 3), delete(1, 7))
    assert (done.inserted, done.updated, done.deleted, done.unchanged) == (1, 2, 0, 0)
    assert done.reader == "spark (column 'at' is a metadata or computed column)"
    assert shown(world) == rows("1 a 1 3, 1 b 3 5, 1 c 5 7")


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["driver", "spark"])
def test_a_record_begins_a_row_and_ends_another(engine: str, make: Callable[..., World]) -> None:
    """The batches of docs/histories.md, each applied by a run of its own."""
    world = make(sections=f"merge: {{engine: {engine}}}\n")
    done = []
    for _, records, expected in PAGE:
        sent = [
            add(int(words[1]), words[2], int(words[3])) if words[0] == "set" else delete(*map(int, words[1:]))
            for words in of_page(records)
        ]
        done.append(applied(world, *sent))
        assert shown(world) == of_page(expected)
    assert {(report.engine or "").split(" ")[0] for report in done} == {engine}
    assert [(r.inserted, r.updated, r.deleted, r.unchanged) for r in done] == [
        (3, 0, 0, 0),
        (1, 2, 0, 0),
        (1, 1, 0, 1),
        (1, 1, 0, 0),
    ]
    assert verify(world.spark, world.definition()).equal


@pytest.mark.slow
def test_tombstones_and_times_of_records(make: Callable[..., World]) -> None:
    world = make(**UPSERT, partitions=2)
    for at, name in ((1_000, "a"), (3_001, "c"), (5_000, None), (2_000, "b"), (4_001, "d")):
        value = None if name is None else json.dumps({"id": 1, "name": name})
        world.send([('{"id":1}', value)], timestamp=at, partition=at % 2)
        if name != "b":
            ingest(world.spark, world.definition())
    found = sorted(world.table().collect(), key=lambda r: r["__valid_from"])
    assert [r["name"] for r in found] == ["a", "b", "c", "d"]
    seconds = [[t and round(t.timestamp(), 3) for t in (r["__valid_from"], r["__valid_to"])] for r in found]
    assert seconds == [[1.0, 2.0], [2.0, 3.001], [3.001, 4.001], [4.001, 5.0]]
    assert verify(world.spark, world.definition()).equal


@pytest.mark.slow
def test_an_update_that_changes_the_key_ends_the_row_of_the_old_one(make: Callable[..., World]) -> None:
    world = make()
    applied(world, add(1, "a", 2), add(2, "b", 2))
    applied(world, update(1, 1, "late", 1), update(2, 3, "b", 6))
    assert shown(world) == rows("1 late 1 2, 1 a 2 -, 2 b 2 6, 3 b 6 -")


@pytest.mark.slow
def test_a_condition_of_the_record_ends_a_row(make: Callable[..., World]) -> None:
    world = make(**OF_DOCUMENT, delta=f"{HISTORY}, apply-as-delete: \"name = 'gone'\"")
    applied(world, put(1, "a", 1), put(1, "gone", 5), put(1, "b", 3))
    assert shown(world) == rows("1 a 1 3, 1 b 3 5")


def stop_at(point: str, name: str) -> None:
    if name == point:
        raise RuntimeError(point)


@pytest.mark.slow
def test_a_batch_whose_answer_was_lost_comes_again(
    make: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before and after its commit: its deletions are remembered already, and its rows are there once."""
    world = make()
    applied(world, add(1, "a", 1))
    for number, point in enumerate(("ingest.before-merge", "ingest.after-merge")):
        world.send([add(1, "b", 10 * number + 5), delete(1, 10 * number + 7), delete(2, 3)])
        with monkeypatch.context() as patch:
            patch.setattr(failpoints, "hit", partial(stop_at, point))
            with pytest.raises(RuntimeError, match=point):
                ingest(world.spark, world.definition())
        ingest(world.spark, world.definition())
        assert verify(world.spark, world.definition()).equal
    applied(world, add(2, "late", 2))
    assert shown(world) == rows("1 a 1 5, 1 b 5 7, 1 b 15 17, 2 late 2 3")


@pytest.mark.slow
def test_resync_repairs_the_rows(make: Callable[..., World], monkeypatch: pytest.MonkeyPatch) -> None:
    world = make(sections="maintenance: {}\n")
    applied(world, add(1, "a", 1), add(1, "b", 3), delete(1, 5), add(2, "x", 2))
    right = shown(world)
    world.sql(
        "DELETE FROM t WHERE name = 'b'",
        "UPDATE t SET `__valid_to` = NULL, `__current` = true WHERE id = 1",
        "INSERT INTO t SELECT 2, 'y', timestamp_seconds(4), timestamp_seconds(4), NULL, true",
    )
    assert not verify(world.spark, world.definition()).equal
    assert resync(world.spark, world.definition(), dry_run=True).inserted == 1
    done = resync(world.spark, world.definition())
    assert (done.inserted, done.updated, done.deleted, done.unchanged) == (1, 1, 1, 1)
    assert shown(world) == right and verify(world.spark, world.definition()).equal
    assert maintain(world.spark, world.definition()).warning is None
    applied(world, add(1, "late", 4))
    assert shown(world)[:3] == rows("1 a 1 3, 1 b 3 4, 1 late 4 5")

    def killed(*_: Any, **__: Any) -> None:
        raise RuntimeError("killed")

    world.columns = COLUMNS.replace("value.source.timestamp", "timestamp")
    with pytest.raises(TableError, match=r"source.timestamp'`, `history: scd2`, .*bridge resync FILE"):
        ingest(world.spark, world.definition())
    with monkeypatch.context() as patch:
        patch.setattr(f"{topic_to_table.__name__}.record_semantics", killed)
        with pytest.raises(RuntimeError, match="killed"):
            resync(world.spark, world.definition())
    with pytest.raises(TableError, match=r"a resync to .*FROM 'timestamp'.* did not end"):
        ingest(world.spark, world.definition())
    assert resync(world.spark, world.definition()).inserted == 0
    assert verify(world.spark, world.definition()).equal


@pytest.mark.slow
def test_rows_of_records_that_have_expired_may_stay(make: Callable[..., World]) -> None:
    world = make()
    applied(world, add(1, "a", 1), add(2, "x", 2), add(2, "y", 3))
    applied(world, add(1, "b", 5), delete(2, 3))
    before = shown(world)
    assert before == rows("1 a 1 5, 1 b 5 -, 2 x 2 3")
    admin = AdminClient({"bootstrap.servers": world.broker.bootstrap})
    for future in admin.delete_records([TopicPartition(world.topic, 0, 3)]).values():
        future.result()
    world.sql("UPDATE t SET `__valid_to` = NULL, `__current` = true WHERE id = 1")
    with pytest.raises(DefinitionError, match="--missing keep"):
        resync(world.spark, world.definition())
    done = resync(world.spark, world.definition(), missing="keep")
    assert (done.inserted, done.updated, done.deleted, done.kept) == (0, 1, 0, 2)
    assert shown(world) == before
    assert resync(world.spark, world.definition(), missing="delete").deleted == 2
    assert shown(world) == rows("1 b 5 -")


@pytest.mark.slow
def test_a_quarantined_record_gets_the_place_of_its_sequence(make: Callable[..., World]) -> None:
    columns = COLUMNS.replace("name STRING", "name STRING, n INT")
    world = make(columns=columns, sections="ingest: {bad-records: quarantine}\n")
    bad = [add(id, "bad", 3, n="x") for id in (1, 2, 3)]
    applied(world, add(1, "a", 1), *bad, add(1, "c", 5), delete(2, 4), add(3, "newer", 3))
    target = world.spark.sql(
        f"UPDATE delta.`{world.folder}/table_quarantine` SET value = "
        "encode(replace(decode(value, 'UTF-8'), '\"x\"', '7'), 'UTF-8')"
    )
    assert target.collect()[0][0] == 3
    done = replay(world.spark, world.definition())
    assert (done.replayed, done.still_bad, done.overtaken) == (3, 0, 1)
    assert shown(world) == rows("1 a 1 3, 1 bad 3 5, 1 c 5 -, 2 bad 3 4, 3 newer 3 -")


@pytest.mark.slow
def test_explain_says_what_the_next_batch_touches(make: Callable[..., World]) -> None:
    world = make()
    applied(world, add(1, "a", 1), add(2, "x", 2))
    world.send([add(1, "b", 3), add(1, "c", 4), delete(9, 4)])
    found = explain(world.spark, world.definition())
    assert (found.keys, found.deletes, found.rows, found.rows_touched) == (3, 1, 2, 1)
    assert found.engine.startswith("driver")
    assert shown(world) == rows("1 a 1 -, 2 x 2 -")


@pytest.mark.slow
def test_intervals_are_published_by_key_and_start(make: Callable[..., World]) -> None:
    world = make(delta=NAMED)
    applied(world, add(1, "a", 1), add(1, "c", 5))
    sent = world.topic
    ingested = world.definition()
    of_ddl = "id BIGINT, name STRING, valid_from TIMESTAMP_LTZ(3), valid_to TIMESTAMP_LTZ(3)"
    with pytest.raises(DefinitionError, match=r"is about the changes of an ingest"):
        publish(world.spark, ingested)
    world.topic, world.options, world.delta = f"{sent}-out", {}, "path: table"
    world.broker.create_topic(world.topic, partitions=1)
    world.columns = f"{of_ddl}, PRIMARY KEY (id) NOT ENFORCED"
    with pytest.raises(TableError, match=r"is a history .* set the PRIMARY KEY to \(id, valid_from\)"):
        publish(world.spark, world.definition("out"))
    world.columns = f"{of_ddl}, PRIMARY KEY (id, valid_from) NOT ENFORCED"
    publish(world.spark, world.definition("out"))
    world.topic, options = sent, world.options
    world.options = DEBEZIUM
    world.send([add(1, "b", 3), delete(1, 5)])
    ingest(world.spark, ingested)
    world.topic, world.options = f"{sent}-out", options
    publish(world.spark, world.definition("out"))
    last = {key: value and json.loads(value) for key, value in world.received()}
    found = [v and [v["name"], v["valid_from"][17:19], v["valid_to"][17:19]] for _, v in sorted(last.items())]
    assert found == [["a", "01", "03"], ["b", "03", "05"], None]


@pytest.mark.slow
def test_the_rows_that_are_valid_now_are_published_by_key(make: Callable[..., World]) -> None:
    """As one would publish the table without a history: whatever order its records came in."""
    world = make(delta=NAMED)
    ingested, sent = world.definition(), world.topic
    applied(world, add(1, "a", 1), add(2, "x", 2), add(3, "p", 2))
    world.topic, world.options = f"{sent}-out", {}
    world.columns = "id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED"
    world.delta, world.sections = "path: table", "publish: {history: current}\n"
    world.broker.create_topic(world.topic, partitions=1)
    current = world.definition("out", run={"checkpoint": "out-checkpoint"})
    found: list[list[tuple[int, str | None]]] = []
    batches: list[list[Record]] = [
        [],
        [add(1, "c", 5), delete(2, 6)],
        [add(1, "late", 3), delete(1, 4)],
        [delete(1, 9)],
    ]
    for records in [*batches, [add(2, "y", 8), add(3, "q", 3), add(3, "r", 4)]]:
        world.topic, world.options = sent, DEBEZIUM
        world.send(records)
        ingest(world.spark, ingested)
        publish(world.spark, current)
        received = world.received(f"{sent}-out")
        there = sum(map(len, found))
        names = [(k or b"", json.loads(v)["name"] if v else None) for k, v in received[there:]]
        found.append([(json.loads(k)["id"], name) for k, name in names])
    assert list(map(sorted, found)) == [
        [(1, "a"), (2, "x"), (3, "p")],
        [(1, "c"), (2, None)],
        [],
        [(1, None)],
        [(2, "y"), (3, "r")],
    ]
    assert verify(world.spark, current, direction="publish").equal
    world.spark.sql(
        f"CREATE TABLE delta.`{world.folder}/plain` (id BIGINT, name STRING) USING delta "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    )
    world.delta = "path: plain"
    with pytest.raises(
        TableError, match=r"has no rows that were valid before .* remove `publish.history: cur"
    ):
        publish(world.spark, world.definition("plain", run={"checkpoint": "plain-checkpoint"}))


@pytest.mark.slow
def test_a_check_finds_rows_that_overlap(make: Callable[..., World]) -> None:
    world = make(sections="quality: {suite: suite.json, on-failure: warn}\n")
    applied(world, add(1, "a", 1), add(1, "b", 3), delete(1, 5), add(2, "x", 2))
    propose(world.spark, world.definition())
    verdict = check(world.spark, world.definition()).verdict
    assert verdict.success, [(o.title, o.observed, o.reason) for o in verdict.failed]
    world.sql("UPDATE t SET `__valid_to` = timestamp_seconds(4) WHERE name = 'a'")
    failed = check(world.spark, world.definition()).verdict.failed
    assert [(o.type, o.example_keys) for o in failed] == [("expect_history_to_be_whole", ({"id": 1},))]


@pytest.mark.slow
def test_a_gate_judges_the_rows_of_records(make: Callable[..., World]) -> None:
    """Its suite may know the columns of a history no more than a record does."""
    world = make(sections="quality: {suite: suite.json, gate: fail}\n")
    short = {
        "type": "expect_column_value_lengths_to_be_between",
        "kwargs": {"column": "name", "max_value": 3},
    }
    (world.folder / "suite.json").write_text(json.dumps({"name": "s", "expectations": [short]}))
    applied(world, add(1, "a", 1), add(1, "b", 3))
    world.send([add(1, "long name", 2)])
    with pytest.raises(QualityError, match="gate"):
        ingest(world.spark, world.definition())
    assert shown(world) == rows("1 a 1 3, 1 b 3 -")


@pytest.mark.slow
def test_a_table_stays_what_it_is(make: Callable[..., World]) -> None:
    world = make(delta=ORDERED)
    applied(world, add(1, "a", 1))
    world.delta = f"{HISTORY}, merge-schema: true"
    for run in (ingest, resync):
        with pytest.raises(TableError, match=r"is no history, and `delta.history` says otherwise"):
            run(world.spark, world.definition())
    world.delta = HISTORY.replace("path: table", "path: other")
    other = world.definition("other", run={"checkpoint": "other-checkpoint"})
    ingest(world.spark, other)
    world.delta = ORDERED.replace("path: table", "path: other")
    plain = replace(other, delta=world.definition().delta)
    for run in (ingest, resync):
        with pytest.raises(TableError, match=r"is a history in the columns __valid_from.* says otherwise"):
            run(world.spark, plain)
    world.delta = f"{NAMED.replace('path: table', 'path: other')}, merge-schema: true"
    renamed = replace(other, delta=world.definition().delta)
    with pytest.raises(TableError, match=r"is a history in the columns __valid_from, __valid_to, __current"):
        ingest(world.spark, renamed)
    place = f"{world.folder}/foreign"
    world.spark.sql(f"CREATE TABLE delta.`{place}` (id BIGINT, name STRING, at TIMESTAMP) USING delta")
    world.delta = f"{HISTORY.replace('path: table', 'path: foreign')}, merge-schema: true"
    with pytest.raises(TableError, match=r"is no history, and `delta.history` says otherwise"):
        ingest(world.spark, world.definition("foreign", run={"checkpoint": "foreign-checkpoint"}))
    assert world.spark.read.format("delta").load(place).columns == ["id", "name", "at"]


@pytest.mark.slow
def test_a_table_that_has_the_columns_becomes_a_history(make: Callable[..., World]) -> None:
    """Rows that are there count, as those of a table that was kept by hand."""
    world = make(**OF_DOCUMENT, delta=NAMED, sections="ingest: {base: existing}\n")
    world.spark.sql(
        f"CREATE TABLE delta.`{world.folder}/table` (id BIGINT, name STRING, at BIGINT, valid_from BIGINT, "
        "valid_to BIGINT, is_current BOOLEAN) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    )
    world.sql("INSERT INTO t VALUES (1, 'a', 1, 1, 4, false), (1, 'c', 6, 6, NULL, true)")
    applied(world, put(1, "b", 2), put(1, "d", 8))
    assert shown(world) == rows("1 a 1 2, 1 b 2 4, 1 c 6 8, 1 d 8 -")


@pytest.mark.slow
def test_a_compacted_topic_does_not_determine_a_history(make: Callable[..., World]) -> None:
    world = make(**UPSERT, cleanup="compact")
    ingest(world.spark, world.definition())
    for compare in (verify, resync):
        with pytest.raises(GapError, match=r"`delta.history` needs the records before it"):
            compare(world.spark, world.definition())
