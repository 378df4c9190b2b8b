"""`delta.update-columns`: a column of the record names the columns that it sets; equal to a fold in plain Python."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import strategies as st

from bridge.errors import BadRecordError, DefinitionError, TableError
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest.replay import replay
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.resync.topic_to_table import resync
from tests.docs.pages import DOCS, Page
from tests.pipelines.folds import Event, check_any_cut, partly_updated, record
from tests.pipelines.world import Make, World, making

COLUMNS = "id BIGINT, a STRING, b INT, cols ARRAY<STRING>, PRIMARY KEY (id) NOT ENFORCED"
NAMED = "path: table, update-columns: cols"


make = making(columns=COLUMNS, delta=NAMED, cleanup="delete", partitions=1)


def send(world: World, events: Sequence[Event]) -> None:
    world.send([record(event) for event in events])


def rows(world: World) -> dict[int, dict[str, Any]]:
    return {row["id"]: {name: row[name] for name in ("a", "b", "cols")} for row in world.table().collect()}


@pytest.mark.slow
def test_the_commits_of_the_page(make: Make) -> None:
    """Those of docs/change-semantics.md, each applied by a run of its own."""
    world = make()
    for _, records, after in Page(DOCS / "change-semantics.md").rows("Commit"):
        for text in records.strip("`").split("`, `"):
            value = json.loads(text)
            world.send([(json.dumps({"id": value["id"]}), text)])
        ingest(world.spark, world.definition())
        found = sorted((id, row["a"] or "-", row["b"] or "-") for id, row in rows(world).items())
        assert [" ".join(map(str, row)) for row in found] == after.strip("`").split("`, `")
    assert verify(world.spark, world.definition()).equal


EVENTS = st.lists(
    st.builds(
        Event,
        st.integers(0, 3),
        st.none()
        | st.fixed_dictionaries(
            {
                "a": st.none() | st.sampled_from("xyz"),
                "b": st.none() | st.integers(0, 9),
                "cols": st.none() | st.lists(st.sampled_from(["a", "b", "id"]), max_size=2),
            }
        ),
    ),
    min_size=1,
    max_size=30,
)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["auto", "spark"])
def test_any_cut_into_batches_gives_the_rows_of_the_oracle(engine: str, make: Make) -> None:
    sections = f"merge: {{engine: {engine}}}\n"
    check_any_cut(
        EVENTS,
        lambda folder: make(folder=folder, sections=sections),
        send,
        rows,
        lambda events: partly_updated(events, "cols"),
    )


@pytest.mark.slow
def test_a_name_that_is_no_column_is_a_bad_record(make: Make) -> None:
    world = make()
    send(world, [Event(1, {"a": "x", "b": 1, "cols": ["a", "secret"]})])
    with pytest.raises(
        BadRecordError, match="column 'cols' names a column that is none of the DDL's"
    ) as raised:
        ingest(world.spark, world.definition())
    assert "secret" not in str(raised.value)


@pytest.mark.slow
def test_a_table_gets_it_by_a_resync(make: Make) -> None:
    """Which a replay does not replace; with ignore-null-updates both keep values."""
    world = make(delta="path: table", sections="ingest: {bad-records: quarantine}\n")
    send(world, [Event(1, {"a": "x", "b": 1, "cols": None}), Event(1, {"a": None, "b": 2, "cols": ["b"]})])
    ingest(world.spark, world.definition())
    world.delta = NAMED
    with pytest.raises(TableError, match="`delta` now has `update-columns: cols`"):
        ingest(world.spark, world.definition())
    assert resync(world.spark, world.definition()).updated == 1
    assert rows(world) == {1: {"a": "x", "b": 2, "cols": ["b"]}}
    with pytest.raises(DefinitionError, match=r"under `delta.update-columns` a record that is applied later"):
        replay(world.spark, world.definition())
    world.delta += ", ignore-null-updates: [a]"
    assert resync(world.spark, world.definition()).updated == 0
    send(world, [Event(1, {"a": None, "b": None, "cols": ["a", "b"]})])
    ingest(world.spark, world.definition())
    assert rows(world) == {1: {"a": "x", "b": None, "cols": ["a", "b"]}}
