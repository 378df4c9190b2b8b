"""`delta.update-columns`: a column of the record names the columns that it sets; equal to a fold in plain Python."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import strategies as st
from pyspark.sql import functions as F

from bridge.errors import BadRecordError, DefinitionError, TableError
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest.consumer_support import refuse_unsupported
from bridge.pipelines.ingest.replay import replay
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.resync.topic_to_table import resync
from tests.docs.pages import DOCS, Page
from tests.pipelines.folds import Event, check_any_cut, partly_updated, record, sending
from tests.pipelines.world import DEBEZIUM, Make, World, making
from tests.refusals import refusal

COLUMNS = "id BIGINT, a STRING, b INT, cols ARRAY<STRING>, PRIMARY KEY (id) NOT ENFORCED"
NAMED = "path: table, update-columns: cols"
SKIP = "ingest: {bad-records: skip}\n"


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
                "l": st.none() | st.lists(st.none() | st.integers(0, 2), max_size=2),
                "m": st.none() | st.sampled_from(["1.00", "-2.50"]),
                "cols": st.none() | st.lists(st.sampled_from(["a", "b", "l", "m", "id"]), max_size=3),
            }
        ),
    ),
    min_size=1,
    max_size=30,
)


OF_TYPES = COLUMNS.replace("cols", "l ARRAY<INT>, m DECIMAL(5, 2), cols")
WAYS = {
    "consumer, driver": {},
    "consumer, spark": {"delta": NAMED + ", properties: {delta.enableRowTracking: 'true'}"},
    "spark, driver": {"sections": "ingest: {reader: spark}\n"},
    "spark, spark": {"sections": "merge: {engine: spark}\n"},
}
"""Readers and engines, each with what a pipeline file has for it."""


def of_types(world: World) -> dict[int, dict[str, Any]]:
    found = world.table().withColumn("m", F.col("m").cast("string"))
    return {row["id"]: {n: row[n] for n in ("a", "b", "l", "m", "cols")} for row in found.collect()}


@pytest.mark.slow
@pytest.mark.parametrize(("way", "options"), [*((way, {}) for way in WAYS), ("consumer, driver", DEBEZIUM)])
def test_any_cut_into_batches_gives_the_rows_of_the_oracle(
    way: str, options: Mapping[str, Any], make: Make
) -> None:
    reports = check_any_cut(
        EVENTS,
        lambda folder: make(folder=folder, options=options, columns=OF_TYPES, **WAYS[way]),
        sending(cdc=bool(options)),
        of_types,
        lambda events: partly_updated(events, "cols"),
    )
    words = {tuple((told or "").partition(" ")[0] for told in (r.reader, r.engine)) for r in reports}
    assert {", ".join(each) for each in words} == {way}


@pytest.mark.slow
@pytest.mark.parametrize("of_table", [True, False])
def test_columns_not_null(of_table: bool, make: Make) -> None:
    """Those of the DDL have a value in each record, and those of the table in each row: no row of key 2 has one."""
    world = make(columns=COLUMNS.replace("b INT", "b INT NOT NULL"), sections=SKIP)
    if of_table:
        columns = "id BIGINT, a STRING, b INT NOT NULL, cols ARRAY<STRING>"
        world.sql(f"CREATE TABLE t ({columns}) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    send(world, [Event(1, {"a": "x", "b": 1, "cols": None})])
    assert [report.reader for report in world.batches()] == ["consumer"]
    send(world, [Event(id, {"a": "y", "b": 5, "cols": ["a"]}) for id in (1, 2)])
    (report,) = world.batches()
    expected = {1: {"a": "y", "b": 1, "cols": ["a"]}}
    if of_table:
        assert report.reader == "spark (column 'b' is NOT NULL, and a change leaves the value of its row)"
    else:
        assert report.reader == "consumer"
        expected[2] = {"a": "y", "b": None, "cols": ["a"]}
    assert (report.bad_records, rows(world)) == (of_table, expected)


def test_a_gate_judges_rows_with_the_values_that_they_keep(make: Make) -> None:
    world = make(sections="quality: {suite: suite.json, gate: warn}\n")
    suite = {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "b"}}
    (world.folder / "suite.json").write_text(json.dumps({"name": "s", "expectations": [suite]}))
    definition = world.definition()
    reason = "only Spark gives the gate the values that rows keep (delta.update-columns)"
    assert refusal(lambda: refuse_unsupported(definition, definition.topic)) == reason


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
