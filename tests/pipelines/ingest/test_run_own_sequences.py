"""`delta.sequence-by` in a table of several topics: the greatest sequence of each counts for its own columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F

from bridge.definition import Definition
from bridge.errors import DefinitionError, TableError
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest.once import ingest_once
from bridge.pipelines.ingest.replay import replay
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.operations.maintain import maintain
from bridge.pipelines.resync.topic_to_table import resync
from bridge.pipelines.runtime.preflight import ingest_table
from tests.docs.pages import DOCS, Page
from tests.pipelines.world import DEBEZIUM, Make, Record, World

COLUMNS = {
    "customers": "id BIGINT, name STRING, version INT, PRIMARY KEY (id) NOT ENFORCED",
    "payments": "id BIGINT, paid INT, at BIGINT, PRIMARY KEY (id) NOT ENFORCED",
}
SEQUENCE = {"customers": "version", "payments": "at"}
NAMES = tuple(COLUMNS)
Event = tuple[str, int, int, Any, bool]
"""Pipeline, key, sequence, value, and whether it sets the row."""


@pytest.fixture
def topics(make: Make) -> dict[str, World]:
    return worlds(make, ".")


def worlds(make: Make, folder: str) -> dict[str, World]:
    more = {"options": DEBEZIUM, "cleanup": "delete", "partitions": 2, "folder": folder}
    return {
        name: make(
            columns=columns, delta=f"path: table, merge-columns: all, sequence-by: {SEQUENCE[name]}", **more
        )
        for name, columns in COLUMNS.items()
    }


def definition(topics: dict[str, World], name: str, **run: object) -> Definition:
    return topics[name].definition(name, {"checkpoint": f"checkpoint-{name}", **run})


def record(event: Event) -> Record:
    name, id, sequence, value, sets = event
    row = {"id": id, "name" if name == "customers" else "paid": value, SEQUENCE[name]: sequence}
    change = {"before": None, "after": row, "op": "c"} if sets else {"before": row, "after": None, "op": "d"}
    return None, json.dumps(change)


def applied(topics: dict[str, World], *events: Event, **run: object) -> None:
    """Each pipeline that has one of the events ingests all of its own."""
    for name in NAMES:
        if own := [record(event) for event in events if event[0] == name]:
            topics[name].send(own, partition=0)
            ingest(topics[name].spark, definition(topics, name, **run))


def rows(topics: dict[str, World]) -> list[tuple[Any, ...]]:
    table = topics["customers"].table()
    for name in ("name", "version", "paid", "at"):
        if name not in table.columns:
            table = table.withColumn(name, F.lit(None))
    return sorted(map(tuple, table.select("id", "name", "version", "paid", "at").collect()), key=str)


def oracle(events: Sequence[Event]) -> list[tuple[Any, ...]]:
    """The full join of what counts of each pipeline; of equal sequences the later one."""
    last: dict[tuple[str, int], Event] = {}
    for event in events:
        known = last.get(event[:2])
        if known is None or event[2] >= known[2]:
            last[event[:2]] = event
    found: dict[int, dict[str, tuple[Any, int]]] = {}
    for name, id, sequence, value, sets in last.values():
        if sets:
            found.setdefault(id, {})[name] = value, sequence
    none = None, None
    return sorted(
        ((id, *row.get(NAMES[0], none), *row.get(NAMES[1], none)) for id, row in found.items()), key=str
    )


@pytest.mark.parametrize("reader", ["consumer", pytest.param("spark", marks=pytest.mark.slow)])
def test_late_changes_of_a_pipeline_have_no_effect_on_its_columns(
    topics: dict[str, World], reader: str
) -> None:
    """The batches of docs/wide-tables.md."""
    for world in topics.values():
        world.sections = f"ingest: {{reader: {reader}}}\n"
    for _, sent, expected in Page(DOCS / "wide-tables.md").rows("Run"):
        events = []
        for text in sent.replace("`", "").split(", "):
            name, id, *rest, sequence = text.split()
            value = None if rest == ["delete"] else rest[0] if name == "customers" else int(rest[0])
            events.append((name, int(id), int(sequence), value, rest != ["delete"]))
        applied(topics, *events)
        shown = [
            [None if word == "-" else word for word in row.split()]
            for row in expected.replace("`", "").split(", ")
        ]
        assert [[None if v is None else str(v) for v in row] for row in rows(topics)] == shown
    for name in NAMES:
        assert verify(topics[name].spark, definition(topics, name)).equal


@pytest.mark.slow
def test_drawn_histories(make: Make) -> None:
    """Late, equal sequences, deletions and inserts after them, over batches of any size, runs, engines and readers."""
    event = st.tuples(
        st.sampled_from(NAMES),
        st.integers(1, 3),
        st.integers(0, 4),
        st.integers(0, 9),
        st.integers(0, 2).map(bool),
    )
    number = iter(range(100))

    @given(
        st.lists(st.lists(event, min_size=1, max_size=12), min_size=1, max_size=3),
        st.integers(1, 12),
        st.sampled_from([("driver", "consumer"), ("driver", "spark"), ("spark", "spark")]),
    )
    @settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    def check(runs: list[list[Event]], batch: int, ways: tuple[str, str]) -> None:
        topics, done = worlds(make, f"of{next(number)}"), list[Event]()
        for world in topics.values():
            world.sections = "ingest: {{reader: {1}}}\nmerge: {{engine: {0}}}\n".format(*ways)
        for events in runs:
            typed = [(n, id, s, f"n{v}" if n == "customers" else v, sets) for n, id, s, v, sets in events]
            applied(topics, *typed, **{"max-offsets-per-batch": batch})
            done += typed
            assert rows(topics) == oracle(done)
        for name in {event[0] for event in done}:
            assert verify(topics[name].spark, definition(topics, name)).equal

    check()


@pytest.mark.slow
def test_a_resync_leaves_the_order_and_the_deletions_of_others(topics: dict[str, World]) -> None:
    customers, table = topics["customers"], f"delta.`{topics['customers'].folder}/table`"
    events: list[Event] = [
        ("customers", 1, 5, "a", True),
        ("customers", 2, 5, "b", False),
        ("payments", 1, 5, 10, True),
        ("payments", 2, 5, None, False),
    ]
    applied(topics, *events)
    customers.spark.sql(f"UPDATE {table} SET name = 'wrong', version = 9, paid = 99 WHERE id = 1")
    assert resync(customers.spark, definition(topics, "customers")).updated == 1
    assert rows(topics) == [(1, "a", 5, 99, 5)]
    # Another order of one pipeline is refused until a resync, which begins a memory of its own.
    customers.delta = customers.delta.replace("version", "[version, name]")
    with pytest.raises(
        TableError, match=r"with `sequence-by: version`, and `delta` now has `sequence-by: vers"
    ):
        ingest(customers.spark, definition(topics, "customers"))
    resync(customers.spark, definition(topics, "customers"))
    late: list[Event] = [
        ("customers", 1, 4, "late", True),
        ("customers", 3, 1, "c", True),
        ("payments", 2, 4, 1, True),
        ("payments", 1, 5, 10, True),
    ]
    applied(topics, *late)
    assert rows(topics) == oracle([*events, *late]) == [(1, "a", 5, 10, 5), (3, "c", 1, None, None)]
    for name in NAMES:
        assert maintain(customers.spark, definition(topics, name)).warning is None
        assert verify(customers.spark, definition(topics, name)).equal


@pytest.mark.slow
def test_a_table_of_one_pipeline_keeps_its_order_and_its_deletions_when_it_is_shared(
    topics: dict[str, World],
) -> None:
    customers = topics["customers"]
    shared, customers.delta = customers.delta, "path: table, sequence-by: version"
    events: list[Event] = [("customers", 1, 5, "a", True), ("customers", 2, 5, None, False)]
    applied(topics, *events)
    customers.delta = shared
    assert ingest_table(customers.spark, definition(topics, "customers"), changes=False) is not None
    customers.delta = shared.replace(", sequence-by: version", "")
    customers.send([record(("customers", 9, 1, "z", True))], partition=0)
    with pytest.raises(TableError, match=r"with `sequence-by: version`, and `delta` now has neither"):
        ingest(customers.spark, definition(topics, "customers"))
    customers.delta = shared
    more: list[Event] = [
        ("customers", 2, 4, "late", True),
        ("customers", 1, 4, "late", True),
        ("payments", 2, 1, 3, True),
    ]
    applied(topics, *more)
    assert rows(topics) == oracle([*events, ("customers", 9, 1, "z", True), *more])


@pytest.mark.slow
def test_quarantined_records_and_rows_of_once_have_their_place_in_the_order_of_the_pipeline(
    topics: dict[str, World],
) -> None:
    customers = topics["customers"]
    customers.sections = "ingest: {bad-records: quarantine}\n"
    for id in (1, 2, 3):
        bad = f'{{"after": {{"id": {id}, "name": "bad", "version": "x"}}, "op": "c"}}'
        customers.send([(None, bad)], partition=1)
    events: list[Event] = [
        ("customers", 1, 4, "a", True),
        ("customers", 2, 1, "b", True),
        ("customers", 3, 4, None, False),
        ("payments", 3, 1, 3, True),
    ]
    applied(topics, *events)
    customers.spark.sql(
        f"UPDATE delta.`{customers.folder}/table_quarantine` SET value = "
        "encode(replace(decode(value, 'UTF-8'), '\"x\"', '3'), 'UTF-8')"
    )
    assert replay(customers.spark, definition(topics, "customers")).replayed == 3
    expected = [(1, "a", 4, None, None), (2, "bad", 3, None, None), (3, None, None, 3, 1)]
    assert rows(topics) == expected
    file = customers.folder / "rows.json"
    documents = [{"id": 2, "name": "old", "version": 2}, {"id": 3, "name": "old", "version": 3}]
    file.write_text("\n".join(map(json.dumps, [*documents, {"id": 4, "name": "d", "version": 1}])))
    ingest_once(customers.spark, definition(topics, "customers"), f"json:{file}")
    assert rows(topics) == [*expected, (4, "d", 1, None, None)]
    with pytest.raises(DefinitionError, match="has added rows of json:"):
        resync(customers.spark, definition(topics, "customers"))
    assert resync(customers.spark, definition(topics, "payments")).version is not None


@pytest.mark.slow
def test_a_condition_deletes_the_columns_of_its_pipeline(topics: dict[str, World]) -> None:
    payments = topics["payments"]
    payments.delta += ', apply-as-delete: "paid < 0"'
    applied(topics, ("customers", 1, 1, "a", True), ("payments", 1, 2, 5, True), ("payments", 2, 2, -1, True))
    assert rows(topics) == [(1, "a", 1, 5, 2)]
    applied(topics, ("payments", 1, 3, -1, True), ("payments", 2, 1, 9, True))
    assert rows(topics) == [(1, "a", 1, None, None)]
    assert verify(payments.spark, definition(topics, "payments")).equal
