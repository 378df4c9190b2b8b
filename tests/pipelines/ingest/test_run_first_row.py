"""`delta.first-row` and `delta.ignore-delete`: equal to a fold in plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import strategies as st

from bridge.errors import BadRecordError, DefinitionError, GapError, TableError
from bridge.metrics import BatchReport
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest.replay import replay
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.resync.topic_to_table import resync
from tests.docs.pages import DOCS, Page
from tests.pipelines.folds import TRUNCATE, Event, check_any_cut, first_rows, record
from tests.pipelines.world import DEBEZIUM, Make, World, making

COLUMNS = "id BIGINT, a STRING, PRIMARY KEY (id) NOT ENFORCED"
FIRST = "path: table, first-row: true"
IGNORING = FIRST + ", ignore-delete: true"


make = making(columns=COLUMNS, delta=IGNORING, cleanup="delete", partitions=1)


def send(world: World, events: Sequence[Event]) -> None:
    before = {"a": "before"} if world.options else None
    world.send([record(event, before) for event in events])


def applied(world: World, *events: Event, **run: object) -> list[BatchReport]:
    send(world, events)
    return world.batches(run)


def rows(world: World) -> dict[int, str | None]:
    return dict(world.rows())


def test_the_runs_of_the_page(make: Make) -> None:
    """Those of docs/change-semantics.md, each applied by a run of its own."""
    world = make()
    for _, records, after in Page(DOCS / "change-semantics.md").rows("Run"):
        events = []
        for text in records.strip("`").split("`, `"):
            id, a = text.split()
            events.append(Event(int(id), None if a == "delete" else {"a": a}))
        [report] = applied(world, *events)
        assert (report.reader or "").startswith("spark (consumers keep the last change of each key")
        assert [f"{id} {a}" for id, a in world.rows()] == after.strip("`").split("`, `")
    assert verify(world.spark, world.definition()).equal


EVENTS = st.lists(
    st.builds(Event, st.integers(0, 5), st.none() | st.fixed_dictionaries({"a": st.sampled_from("vwxyz")}))
    | st.just(TRUNCATE),
    min_size=1,
    max_size=30,
)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["auto", "spark"])
def test_any_cut_into_batches_gives_the_rows_of_the_oracle(engine: str, make: Make) -> None:
    """Truncates among them: the first record after one counts."""
    more = {"options": DEBEZIUM, "delta": IGNORING + ", truncate: apply"}
    more |= {"sections": f"merge: {{engine: {engine}}}\n"}

    def oracle(events: Sequence[Event]) -> dict[int, str | None]:
        return {key: row["a"] for key, row in first_rows(events).items()}

    check_any_cut(EVENTS, lambda folder: make(folder=folder, **more), send, rows, oracle)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, DEBEZIUM], ids=["upsert", "debezium"])
def test_a_deletion_is_a_bad_record_unless_it_is_ignored(options: dict[str, Any], make: Make) -> None:
    world = make(options=options, delta=FIRST)
    applied(world, Event(1, {"a": "x"}), Event(1, {"a": "y"}))
    send(world, [Event(1)])
    with pytest.raises(
        BadRecordError, match=r"delta.first-row takes no deletion; delta.ignore-delete ignores"
    ):
        ingest(world.spark, world.definition())
    world.sections = "ingest: {bad-records: skip}\n"
    assert applied(world, Event(2, {"a": "z"}))[0].bad_records == 1
    assert rows(world) == {1: "x", 2: "z"}
    world.delta = IGNORING
    with pytest.raises(TableError, match=r"with `first-row: true`, and .* `ignore-delete: true`"):
        ingest(world.spark, world.definition())


@pytest.mark.slow
def test_a_resync_reads_the_first_rows(make: Make) -> None:
    """Where the topic has them."""
    world = make(sections="ingest: {bad-records: quarantine}\n")
    applied(world, *(Event(n, {"a": a}) for a in ("first", "second") for n in range(4)))
    world.sql("UPDATE t SET a = 'other' WHERE id = 1", "DELETE FROM t WHERE id = 2")
    done = resync(world.spark, world.definition())
    assert (done.inserted, done.updated, done.unchanged) == (1, 1, 2)
    assert rows(world) == dict.fromkeys(range(4), "first")
    with pytest.raises(DefinitionError, match=r"under `delta.first-row` it is not known whether a record"):
        replay(world.spark, world.definition())
    compacted = make(folder="compacted", cleanup="compact")
    with pytest.raises(GapError, match=r"`delta.first-row` needs the records before it"):
        resync(compacted.spark, compacted.definition())


@pytest.mark.slow
def test_deletions_alone_may_be_ignored(make: Make) -> None:
    """The last change of a key that is no deletion counts, in any cut."""
    for batch in (1, 3, 100):
        world = make(folder=f"batch{batch}", delta="path: table, ignore-delete: true")
        events = [
            Event(1, {"a": "x"}),
            Event(1, {"a": "y"}),
            Event(1),
            Event(2),
            Event(2, {"a": "z"}),
            Event(2),
        ]
        applied(world, *events, **{"max-offsets-per-batch": batch})
        assert rows(world) == {1: "y", 2: "z"}
        assert verify(world.spark, world.definition()).equal
