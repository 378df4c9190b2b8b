"""`delta.truncate`: a record that deletes all rows is applied in one commit, refused or ignored."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import strategies as st

from bridge.errors import BadRecordError, DefinitionError, TableError
from bridge.metrics import BatchReport
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest.explain import explain
from bridge.pipelines.ingest.replay import replay
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.operations.doctor import examine
from bridge.pipelines.operations.surroundings import Outcome
from bridge.pipelines.publish.run import publish
from bridge.pipelines.resync.topic_to_table import resync
from tests.docs.pages import DOCS, Page
from tests.pipelines.folds import TRUNCATE, Event, check_any_cut, record, truncated
from tests.pipelines.scripts.scripts import MakeScript
from tests.pipelines.world import DEBEZIUM, Make, World, making

COLUMNS = "id BIGINT, a STRING, b INT, PRIMARY KEY (id) NOT ENFORCED"
APPLIED = "path: table, truncate: apply"
BEFORE = {"a": None, "b": None}
BY_CONDITION = APPLIED + ", apply-as-truncate: \"a = 't'\""


make = making(columns=COLUMNS, options=DEBEZIUM, delta=APPLIED, cleanup="delete", partitions=1)


def set_row(key: int, a: str, b: int | None = None) -> Event:
    return Event(key, {"a": a, "b": b})


def send(world: World, events: Sequence[Event]) -> None:
    """Records of Debezium, or of an upsert topic whose column `a` says that one is a truncate."""
    if world.options:
        world.send([record(event, BEFORE) for event in events])
    else:
        world.send([record(set_row(0, "t") if event == TRUNCATE else event) for event in events])


def applied(world: World, *events: Event, **run: object) -> list[BatchReport]:
    send(world, events)
    return world.batches(run)


def rows(world: World) -> dict[int, dict[str, Any]]:
    found = world.table().collect()
    kept = {row["id"]: {"a": row["a"], "b": row["b"]} for row in found}
    assert len(kept) == len(found)
    return kept


def test_one_commit_deletes_all_rows_and_applies_what_follows(make: Make) -> None:
    """The records and rows are those of docs/deletes.md."""
    world, done = make(), []
    for _, records, after in Page(DOCS / "deletes.md").rows("Step"):
        texts = records.strip("`").split("`, `")
        events = [TRUNCATE if t == "truncate" else set_row(int(t[0]), t[2:]) for t in texts]
        [report] = applied(world, *events)
        done.append(report)
        expected = [] if after == "none" else after.strip("`").split("`, `")
        assert rows(world) == {int(t[0]): {"a": t[2:], "b": None} for t in expected}
    reader, engine = str(done[1].reader), str(done[1].engine)
    assert (done[0].reader, done[0].engine) == ("consumer", "driver")
    assert reader.startswith("spark (") and engine.startswith("spark (a truncate deletes rows that the batch")
    assert [(r.inserted, r.updated, r.deleted) for r in done] == [(3, 0, 0), (1, 1, 2), (0, 0, 2)]
    assert "a truncate has deleted the rows of all records before it" in str(done[1].warning)
    assert len([c for c in world.history() if c["operation"] == "MERGE"]) == 3
    assert verify(world.spark, world.definition()).equal


EVENTS = st.lists(
    st.just(TRUNCATE)
    | st.builds(
        Event,
        st.integers(0, 4),
        st.none() | st.fixed_dictionaries({"a": st.sampled_from("xyz"), "b": st.none() | st.integers(0, 9)}),
    ),
    min_size=1,
    max_size=30,
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "delta"),
    [pytest.param(DEBEZIUM, APPLIED, id="debezium"), pytest.param({}, BY_CONDITION, id="condition")],
)
@pytest.mark.parametrize("engine", ["auto", "spark"])
def test_any_cut_into_batches_gives_the_rows_of_the_oracle(
    options: dict[str, Any], delta: str, engine: str, make: Make
) -> None:
    more = {"options": options, "delta": delta, "sections": f"merge: {{engine: {engine}}}\n"}
    check_any_cut(EVENTS, lambda folder: make(folder=folder, **more), send, rows, truncated)


def test_a_truncate_is_refused_by_default(make: Make) -> None:
    """Also where bad records are skipped; what the message names as the way out works."""
    world = make(delta="path: table", sections="ingest: {bad-records: skip}\n")
    applied(world, set_row(1, "a"))
    send(world, [set_row(2, "b"), TRUNCATE, set_row(3, "c")])
    refused = rf"{world.topic}-0 at offset 2: the record deletes all rows.*truncate: apply.*truncate: ignore"
    with pytest.raises(BadRecordError, match=refused):
        ingest(world.spark, world.definition())
    assert rows(world) == {1: {"a": "a", "b": None}}
    world.delta = APPLIED
    applied(world, set_row(4, "d"))
    assert sorted(rows(world)) == [3, 4]


@pytest.mark.slow
def test_to_ignore_what_was_applied_takes_a_resync(make: Make) -> None:
    world = make()
    applied(world, set_row(1, "a"), TRUNCATE, set_row(2, "b"))
    world.delta = "path: table, truncate: ignore"
    refused = r"applied with `truncate: apply`, and `delta` now has `truncate: ignore`"
    with pytest.raises(TableError, match=refused):
        ingest(world.spark, world.definition())
    assert resync(world.spark, world.definition()).inserted == 1
    assert sorted(rows(world)) == [1, 2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("format", "truncate"),
    [
        ("canal-json", {"type": "TRUNCATE", "isDdl": True, "data": None, "sql": "truncate table t"}),
        ("ogg-json", {"op_type": "T", "table": "t"}),
        ("debezium-json", {"before": None, "after": None, "op": "t"}),
    ],
)
def test_truncates_of_each_format(format: str, truncate: dict[str, Any], make: Make) -> None:
    """Alone in a batch, among others, and ignored."""
    options = {**DEBEZIUM, "value.format": format}
    world, row = make(options=options), {"id": 1, "a": "a", "b": 1}
    adds = {
        "canal-json": {"type": "INSERT", "data": [row]},
        "ogg-json": {"op_type": "I", "after": row},
        "debezium-json": {"op": "c", "after": row},
    }
    for documents, expected in (
        ([adds[format]], {1: {"a": "a", "b": 1}}),
        ([truncate], {}),
        ([adds[format], truncate, adds[format]], {1: {"a": "a", "b": 1}}),
    ):
        world.send([(None, json.dumps(document)) for document in documents])
        ingest(world.spark, world.definition())
        assert rows(world) == expected
    ignoring = make(folder="ignoring", options=options, delta="path: table, truncate: ignore")
    ignoring.send([(None, json.dumps(document)) for document in (adds[format], truncate)])
    ingest(ignoring.spark, ignoring.definition())
    assert rows(ignoring) == {1: {"a": "a", "b": 1}}
    assert verify(ignoring.spark, ignoring.definition()).equal


@pytest.mark.slow
def test_values_that_debezium_leaves_out_are_not_taken_from_before_a_truncate(make: Make) -> None:
    world = make(sections="ingest: {bad-records: skip}\n")
    applied(world, set_row(1, "kept", 1), set_row(2, "kept", 1))
    left_out = {"before": None, "after": {"id": 1, "a": "__debezium_unavailable_value", "b": 2}, "op": "u"}
    world.send([(None, json.dumps(left_out)), record(TRUNCATE, BEFORE), (None, json.dumps(left_out))])
    done = world.batches()
    assert (rows(world), done[0].bad_records) == ({}, 1)
    assert verify(world.spark, world.definition()).equal


@pytest.mark.slow
def test_a_publish_sends_tombstones(make: Make, unique: Callable[[str], str]) -> None:
    world, topic = make(), unique("out")
    world.broker.create_topic(topic, partitions=1)
    sender = World(world.spark, world.broker, world.folder, topic, columns=COLUMNS)

    def sent() -> list[tuple[int, str | None]]:
        there = len(sender.received())
        publish(world.spark, sender.definition("out", run={"checkpoint": "out"}))
        found = [(json.loads(key or b""), value) for key, value in sender.received()[there:]]
        return sorted((key["id"], None if v is None else json.loads(v)["a"]) for key, v in found)

    applied(world, set_row(1, "a"), set_row(2, "b"), set_row(3, "c"))
    assert sent() == [(1, "a"), (2, "b"), (3, "c")]
    applied(world, set_row(4, "never"), TRUNCATE, set_row(2, "new"), set_row(3, "c"))
    assert sent() == [(1, None), (2, "new")]


@pytest.mark.slow
def test_it_needs_one_partition(make: Make) -> None:
    world = make(partitions=2)
    why = r"`delta.truncate: apply` needs a topic of one partition, and .* has 2.*refuse or ignore"
    for verb in (ingest, explain, resync):
        with pytest.raises(DefinitionError, match=why):
            verb(world.spark, world.definition())
    [found] = [f for f in examine(world.spark, world.definition(), sends=False) if f.what == "topics"]
    assert found.outcome is Outcome.FAILS and "needs a topic of one partition" in found.text


@pytest.mark.slow
def test_a_resync_and_a_replay_know_truncates(make: Make) -> None:
    world = make(sections="ingest: {bad-records: quarantine}\n")
    bad = json.dumps({"before": None, "after": {"id": 1, "a": "x", "b": "bad"}, "op": "c"})
    world.send([(None, bad)])
    applied(world, set_row(2, "b"), TRUNCATE, set_row(3, "c"))
    world.sql("DELETE FROM t WHERE id = 3", "INSERT INTO t VALUES (2, 'foreign', 1)")
    done = resync(world.spark, world.definition())
    assert (done.inserted, done.updated, done.deleted) == (1, 0, 1)
    quarantine = f"delta.`{world.folder}/table_quarantine`"
    good = bad.replace('"bad"', "5")
    world.spark.sql(f"UPDATE {quarantine} SET value = CAST('{good}' AS BINARY)")
    replayed = replay(world.spark, world.definition())
    assert (replayed.replayed, replayed.overtaken, list(rows(world))) == (1, 1, [3])
    world.send([(None, bad)])
    ingest(world.spark, world.definition())
    world.spark.sql(f'UPDATE {quarantine} SET value = CAST(\'{{"op": "t"}}\' AS BINARY)')
    with pytest.raises(DefinitionError, match=r"the quarantined record is a truncate.*bridge resync FILE"):
        replay(world.spark, world.definition())


@pytest.mark.slow
def test_explain_tells_what_a_truncate_needs(make: Make) -> None:
    world = make()
    applied(world, set_row(1, "a"))
    send(world, [set_row(2, "b"), TRUNCATE, set_row(3, "c")])
    found = explain(world.spark, world.definition())
    assert (found.keys, found.engine) == (1, "spark (a truncate deletes rows that the batch does not name)")
    world.delta = "path: table"
    with pytest.raises(BadRecordError, match="the record deletes all rows"):
        explain(world.spark, world.definition())


@pytest.mark.slow
def test_a_condition_that_fails_is_a_bad_record(make: Make) -> None:
    world = make(options={}, delta='path: table, apply-as-truncate: "10 / b = 2"')
    applied(world, set_row(1, "a", 1), set_row(2, "b"))
    for value, why in (
        (0, "delta.apply-as-truncate: .*division by zero"),
        (5, "the record deletes all rows"),
    ):
        send(world, [set_row(3, "c", value)])
        with pytest.raises(BadRecordError, match=why):
            ingest(world.spark, world.definition())
        world.sections = "ingest: {bad-records: skip}\n"


@pytest.mark.slow
def test_a_script_reads_a_topic_with_truncates(script_of: MakeScript) -> None:
    script = script_of(
        "CREATE TABLE t (id BIGINT, a STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ({upsert}, 'topic' = '{prefix}-t', "
        "'bridge.truncate' = 'apply', 'bridge.apply-as-truncate' = 'a = ''t''');\n"
        "CREATE TABLE p (k STRING, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'print');\n"
        "INSERT INTO p SELECT 'all', COUNT(*) FROM t;"
    )
    script.create("t", partitions=1)
    for values, shown in (
        ("ab", ["+I[all, 2]"]),
        ("ct", ["-D[all, 2]"]),
        ("xty", ["+I[all, 1]"]),
    ):
        script.send("t", [({"id": n}, {"id": n, "a": a}) for n, a in enumerate(values)])
        script.run()
        assert script.printed == shown


@pytest.mark.parametrize("options", [{}, DEBEZIUM], ids=["upserts", "debezium"])
def test_a_truncate_by_condition_needs_no_other_values(options: dict[str, Any], make: Make) -> None:
    """No value of columns NOT NULL; where the key is of the document, none of it either."""
    columns = "id BIGINT NOT NULL, a STRING, b INT NOT NULL, PRIMARY KEY (id) NOT ENFORCED"
    world = make(options=options, delta=BY_CONDITION, columns=columns)

    def send_row(value: str) -> None:
        row = {"a": value}
        key, document = (None, {"after": row, "op": "c"}) if options else (json.dumps({"id": 0}), row)
        world.send([(key, json.dumps(document))])

    applied(world, set_row(1, "a", 1))
    send_row("t")
    applied(world, set_row(2, "b", 2))
    assert rows(world) == {2: {"a": "b", "b": 2}}
    send_row("x")
    with pytest.raises(BadRecordError, match=r"is NOT NULL, and the record|no column of the PRIMARY KEY"):
        ingest(world.spark, world.definition())
