"""`delta.soft-delete`: a deletion sets a column and leaves the row; equal to a fold in plain Python."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import strategies as st
from pyspark.sql import functions as F

from bridge.errors import DefinitionError, TableError
from bridge.metrics import BatchReport
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest.replay import replay
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.publish.run import publish
from bridge.pipelines.resync import table_to_topic
from bridge.pipelines.resync.topic_to_table import resync
from bridge.pipelines.scripts.run import run_script
from bridge.sql import load_script
from tests.docs.pages import DOCS, Page
from tests.pipelines.folds import Event, check_any_cut, record, soft_deleted
from tests.pipelines.world import DEBEZIUM, Make, World, making

COLUMNS = "id BIGINT, a STRING, b INT, PRIMARY KEY (id) NOT ENFORCED"
SOFT = "path: table, soft-delete: deleted_at"


make = making(columns=COLUMNS, delta=SOFT, cleanup="delete", partitions=1)


def set_row(key: int, a: str, b: int | None = None) -> Event:
    return Event(key, {"a": a, "b": b})


def send(world: World, events: Sequence[Event]) -> None:
    """As records of an upsert topic, or as those of Debezium, whose updates have the row before."""
    before = {"a": None, "b": None} if "value.format" in world.options else None
    for event in events:
        world.send([record(event, before)], timestamp=event.at or 1)


def applied(world: World, *events: Event, **run: object) -> list[BatchReport]:
    send(world, events)
    return world.batches(run)


def rows(world: World) -> dict[int, tuple[dict[str, Any], int | None]]:
    found = world.table().select("id", "a", "b", F.unix_millis("deleted_at").alias("at")).collect()
    kept = {row["id"]: ({"a": row["a"], "b": row["b"]}, row["at"]) for row in found}
    assert len(kept) == len(found)
    return kept


def test_the_runs_of_the_page(make: Make) -> None:
    """Those of docs/deletes.md, each applied by a run of its own; a publish sends tombstones."""
    world = make()
    reader = "spark (only Spark keeps the values of deleted rows (delta.soft-delete))"
    for _, records, after in Page(DOCS / "deletes.md").rows("Run"):
        events = []
        for words in (code.split() for code in re.findall(r"`([^`]+)`", records)):
            is_set = len(words) == 2
            events.append(
                set_row(int(words[0]), words[1]) if is_set else Event(int(words[0]), at=int(words[3]))
            )
        assert {report.reader for report in applied(world, *events)} == {reader}
        expected = {
            int(id): ({"a": a, "b": None}, None if at == "-" else int(at))
            for id, a, at in (code.split() for code in re.findall(r"`([^`]+)`", after))
        }
        assert rows(world) == expected
        assert verify(world.spark, world.definition()).equal


EVENTS = st.lists(
    st.builds(
        Event,
        st.integers(0, 4),
        st.none() | st.fixed_dictionaries({"a": st.sampled_from("xyz"), "b": st.none() | st.integers(0, 9)}),
        st.integers(1, 99),
    ),
    min_size=1,
    max_size=30,
)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["driver", "spark"])
@pytest.mark.parametrize("options", [pytest.param({}, id="upsert"), pytest.param(DEBEZIUM, id="debezium")])
def test_any_cut_into_batches_gives_the_rows_of_the_oracle(
    options: dict[str, Any], engine: str, make: Make
) -> None:
    """Over batches and runs; live rows are those of the topic."""
    more = {"options": options, "sections": f"merge: {{engine: {engine}}}\n"}
    check_any_cut(EVENTS, lambda folder: make(folder=folder, **more), send, rows, soft_deleted)


@pytest.mark.slow
def test_a_constraint_on_the_column_of_deletions_is_left_to_delta(make: Make) -> None:
    """No record has this column, so none is judged by it; nor is one by the gate."""
    world = make()
    applied(world, set_row(1, "a"), set_row(2, "b"))
    table = f"delta.`{world.folder}/table`"
    world.spark.sql(
        f"ALTER TABLE {table} ADD CONSTRAINT late CHECK (deleted_at IS NULL OR year(deleted_at) < 2000)"
    )
    applied(world, Event(1, at=7), set_row(3, "c"))
    assert rows(world)[1] == ({"a": "a", "b": None}, 7)
    send(world, [Event(2, at=1_000_000_000_000)])
    with pytest.raises(TableError, match="a row of this batch breaks the constraint late"):
        ingest(world.spark, world.definition())
    suite = {"type": "expect_column_values_to_be_null", "kwargs": {"column": "deleted_at"}}
    (world.folder / "suite.json").write_text(json.dumps({"name": "s", "expectations": [suite]}))
    world.sections = "quality: {suite: suite.json, gate: quarantine}\n"
    with pytest.raises(DefinitionError, match="deleted_at"):
        ingest(world.spark, world.definition())


@pytest.mark.slow
@pytest.mark.parametrize("deleted", [0, 1])
def test_a_deletion_in_another_partition_of_the_batch_keeps_the_values(deleted: int, make: Make) -> None:
    """Where a key is in two partitions, the timestamps of the records decide which one is later."""
    world, id = make(partitions=2), json.dumps({"id": 1})
    world.send([(id, json.dumps({"id": 1, "a": "x", "b": 1}))], partition=1 - deleted, timestamp=1_000)
    world.send([(id, None)], partition=deleted, timestamp=2_000)
    ingest(world.spark, world.definition())
    assert rows(world) == {1: ({"a": "x", "b": 1}, 2_000)}


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="at-least-once"),
        pytest.param({"sink.delivery-guarantee": "exactly-once"}, id="exactly-once"),
    ],
)
def test_a_publish_sends_tombstones_and_inserts(
    options: dict[str, str], make: Make, unique: Callable[[str], str]
) -> None:
    if options:
        options = {**options, "sink.transactional-id-prefix": unique("soft")}
    world = make(options=options)
    applied(world, set_row(1, "a"), set_row(2, "b"), set_row(3, "c"), Event(3, at=7))
    topic = unique("out")
    world.broker.create_topic(topic, partitions=1)

    def sent() -> list[tuple[Any, Any]]:
        """What the publish adds to the topic, by a pipeline file of its own."""
        there = len(world.received(topic))
        source, world.topic = world.topic, topic
        try:
            definition = world.definition("out", run={"checkpoint": "out"})
            publish(world.spark, definition)
            assert verify(world.spark, definition).equal
            found = table_to_topic.resync(world.spark, definition, dry_run=True)
            assert (found.inserted, found.updated, found.deleted) == (0, 0, 0)
        finally:
            world.topic = source
        return [
            (json.loads(key or b""), value and json.loads(value))
            for key, value in world.received(topic)[there:]
        ]

    assert sorted(sent(), key=str) == [
        ({"id": n}, {"id": n, "a": a, "b": None}) for n, a in ((1, "a"), (2, "b"))
    ]
    applied(world, Event(1, at=8), set_row(3, "again"))
    assert sorted(sent(), key=str) == [({"id": 1}, None), ({"id": 3}, {"id": 3, "a": "again", "b": None})]
    applied(world, Event(1, at=9))
    assert sent() == []
    world.delta = "path: table"
    with pytest.raises(
        TableError, match=r"a row that has a value of 'deleted_at' is deleted.*soft-delete: deleted_at"
    ):
        sent()
    world.columns = COLUMNS.replace("b INT", "b INT, deleted_at TIMESTAMP_LTZ(3)")
    world.sql("UPDATE t SET b = 5 WHERE id = 1")
    assert [(key, value["b"]) for key, value in sent()] == [({"id": 1}, 5)]


@pytest.mark.slow
def test_a_table_gets_it_by_a_resync(make: Make) -> None:
    world = make(delta="path: table")
    applied(world, set_row(1, "a"), set_row(2, "b"), set_row(3, "c"), Event(3, at=5))
    world.delta = SOFT
    with pytest.raises(
        TableError, match=r"its changes were applied with neither .* `soft-delete: deleted_at`"
    ):
        ingest(world.spark, world.definition())
    assert "deleted_at" not in world.table().columns
    send(world, [Event(1, at=6)])
    assert resync(world.spark, world.definition(), dry_run=True).deleted == 1
    assert resync(world.spark, world.definition()).deleted == 1
    assert rows(world) == {1: ({"a": "a", "b": None}, 6), 2: ({"a": "b", "b": None}, None)}
    applied(world, Event(2, at=7))
    assert rows(world)[2] == ({"a": "b", "b": None}, 7)


@pytest.mark.slow
def test_a_resync_repairs_live_rows_and_leaves_the_others(make: Make) -> None:
    world = make()
    applied(world, *(set_row(n, "a") for n in range(6)), Event(4, at=5), Event(5, at=5))
    world.sql(
        "UPDATE t SET deleted_at = NULL WHERE id = 4",
        "UPDATE t SET deleted_at = current_timestamp() WHERE id = 1",
        "UPDATE t SET a = 'x' WHERE id = 2",
        "INSERT INTO t SELECT * FROM t WHERE id IN (3, 4)",
        "INSERT INTO t VALUES (9, 'foreign', 9, NULL)",
    )
    proof = verify(world.spark, world.definition()).comparison
    assert (proof.missing_in_table, proof.missing_in_topic) == (1, 2)
    assert (proof.different, proof.duplicate_keys) == (1, 2)
    done = resync(world.spark, world.definition())
    assert (done.inserted, done.updated, done.deleted, done.unchanged) == (0, 3, 2, 1)
    found = rows(world)
    assert found.pop(9)[1] is not None
    live = {n: ({"a": "a", "b": None}, None) for n in range(4)}
    assert found == live | {n: ({"a": "a", "b": None}, 5) for n in (4, 5)}
    assert verify(world.spark, world.definition()).equal


@pytest.mark.slow
def test_records_that_say_that_they_delete(make: Make) -> None:
    """Of a deletion the other columns do not count."""
    world = make(delta=SOFT + ", apply-as-delete: \"a = 'd'\"")
    send(world, [set_row(1, "a", 1)])
    applied(world, Event(1, {"a": "d", "b": 2}, 7), Event(2, {"a": "d", "b": 2}, 8))
    assert rows(world) == {1: ({"a": "a", "b": 1}, 7)}


@pytest.mark.slow
def test_a_row_that_is_deleted_keeps_no_value_for_a_later_one(make: Make) -> None:
    world = make(delta=SOFT + ", ignore-null-updates: true")
    applied(world, set_row(1, "a", 1), set_row(2, "b", 2))
    applied(world, Event(1, at=5), Event(2, {"a": None, "b": 3}, 6))
    applied(world, Event(1, {"a": None, "b": 4}, 7), Event(2, {"a": None, "b": 5}, 8), Event(2, at=9))
    assert rows(world) == {1: ({"a": None, "b": 4}, None), 2: ({"a": "b", "b": 5}, 9)}
    assert verify(world.spark, world.definition()).equal


@pytest.mark.slow
def test_a_replayed_record_may_have_the_last_values(make: Make) -> None:
    world = make(sections="ingest: {bad-records: quarantine}\n")
    applied(world, set_row(1, "a", 1), Event(1, {"a": "b", "b": "x"}), Event(1, at=5))
    assert rows(world) == {1: ({"a": "a", "b": 1}, 5)}
    good = json.dumps({"id": 1, "a": "b", "b": 2})
    world.spark.sql(f"UPDATE delta.`{world.folder}/table_quarantine` SET value = CAST('{good}' AS BINARY)")
    assert replay(world.spark, world.definition(), force=True).replayed == 1  # its timestamp is 1
    assert rows(world) == {1: ({"a": "b", "b": 2}, 5)}


@pytest.mark.slow
def test_a_script_that_would_take_deleted_rows_for_live_ones_is_refused(make: Make) -> None:
    world, shown = make(), []
    applied(world, set_row(1, "a"), set_row(2, "b"), Event(2, at=5))
    script = (
        "CREATE TABLE t (id BIGINT, a STRING{}) WITH ('connector' = 'delta', 'path' = 'table');\n"
        "CREATE TABLE p (id BIGINT, a STRING) WITH ('connector' = 'print');\n"
        "INSERT INTO p SELECT id, a FROM t{};"
    )

    def run(*parts: str) -> None:
        text = script.format(*parts)
        run_script(
            world.spark,
            load_script(world.folder / "s.sql", text=text),
            listener=lambda _: None,
            out=lambda line, _: shown.append(line),
        )

    with pytest.raises(TableError, match=r"'deleted_at' is deleted.*read it with WHERE deleted_at IS NULL"):
        run("", "")
    run(", deleted_at TIMESTAMP_LTZ(6)", " WHERE deleted_at IS NULL")
    assert shown == ["+I[1, a]"]
