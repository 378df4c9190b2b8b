"""`delta.aggregate`: changes combine their values with those of their row; equal to a fold in plain Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import strategies as st
from pyspark.sql import functions as F

from bridge.errors import BridgeError, DefinitionError, TableError
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest.replay import replay
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.resync.topic_to_table import resync
from tests.docs.pages import DOCS, Page
from tests.pipelines.folds import Event, aggregated, check_any_cut, record, sending
from tests.pipelines.world import DEBEZIUM, Make, World, making

COLUMNS = "id BIGINT, n INT, low DECIMAL(5, 2), seen STRING, tags ARRAY<STRING>, a STRING"
TABLE = f"{COLUMNS}, PRIMARY KEY (id) NOT ENFORCED"
RULES = {"n": "sum", "low": "min", "seen": "first", "tags": "collect-set"}
MOST = RULES | {"n": "max", "seen": "max"}


def target(rules: Mapping[str, str], more: str = "") -> str:
    return f"path: table, aggregate: {{{', '.join(f'{n}: {rule}' for n, rule in rules.items())}}}{more}"


make = making(columns=TABLE, delta=target(RULES), cleanup="delete", partitions=1)


def send(world: World, events: Sequence[Event]) -> None:
    world.send([record(event) for event in events])


def rows(world: World) -> dict[int, dict[str, Any]]:
    found = world.table().withColumn("low", F.col("low").cast("string")).collect()
    return {row["id"]: {n: row[n] for n in ("n", "low", "seen", "tags", "a")} for row in found}


EVENTS = st.lists(
    st.builds(
        Event,
        st.integers(0, 2),
        st.none()
        | st.fixed_dictionaries(
            {
                "n": st.none() | st.integers(-9, 9),
                "low": st.none() | st.sampled_from(["1.00", "2.50"]),
                "seen": st.none() | st.sampled_from("xyz"),
                "tags": st.none() | st.lists(st.none() | st.sampled_from("pqr"), max_size=2),
                "a": st.none() | st.sampled_from("uv"),
            }
        ),
    ),
    min_size=1,
    max_size=30,
)

WAYS = {
    "consumer, driver": "",
    "consumer, spark": ", properties: {delta.enableRowTracking: 'true'}",
    "spark, driver": "",
    "spark, spark": "",
}
SECTIONS = {"spark, driver": "ingest: {reader: spark}\n", "spark, spark": "merge: {engine: spark}\n"}


@pytest.mark.slow
@pytest.mark.parametrize(("way", "options"), [*((way, {}) for way in WAYS), ("consumer, driver", DEBEZIUM)])
def test_any_cut_into_batches_gives_the_rows_of_the_oracle(
    way: str, options: Mapping[str, Any], make: Make
) -> None:
    rules = MOST if options else RULES
    reports = check_any_cut(
        EVENTS,
        lambda folder: make(
            folder=folder,
            options=options,
            delta=target(rules, WAYS[way]),
            sections=SECTIONS.get(way, ""),
        ),
        sending(cdc=bool(options)),
        rows,
        lambda events: aggregated(events, rules),
    )
    words = {tuple((told or "").partition(" ")[0] for told in (r.reader, r.engine)) for r in reports}
    assert {", ".join(each) for each in words} == {way}


@pytest.mark.slow
def test_the_commits_of_the_page(make: Make) -> None:
    """Those of docs/aggregates.md, each applied by a run of its own."""
    world = make()
    for _, records, after in Page(DOCS / "aggregates.md").rows("Round"):
        for text in records.strip("`").split("`, `"):
            id, n, low, seen, tags = text.split(" ") if " delete" not in text else (text[0], *"----")
            row = {"n": int(n), "low": low, "seen": seen, "tags": [*tags], "a": None} if n != "-" else None
            send(world, [Event(int(id), row)])
        ingest(world.spark, world.definition())
        found = sorted(rows(world).items())
        told = [f"{id} {r['n']} {r['low']} {r['seen']} {''.join(r['tags'])}" for id, r in found]
        assert told == after.strip("`").split("`, `")
    assert verify(world.spark, world.definition()).equal


@pytest.mark.slow
@pytest.mark.parametrize("way", ["consumer, driver", "spark, spark"])
def test_a_sum_that_does_not_fit_stops_the_run(way: str, make: Make) -> None:
    """In the batch, and of the row; nothing is written then."""
    world = make(sections=SECTIONS.get(way, ""))
    row = {"n": 2**31 - 1, "low": None, "seen": None, "tags": None, "a": None}
    send(world, [Event(1, row)])
    ingest(world.spark, world.definition())
    send(world, [Event(1, row)])
    with pytest.raises(BridgeError, match="the sum of column 'n' does not fit its type INT") as raised:
        ingest(world.spark, world.definition())
    assert "delta.aggregate" in str(raised.value)
    assert rows(world) == {1: row}
    assert verify(world.spark, world.definition()).equal
    with pytest.raises(BridgeError, match="the sum of column 'n' does not fit its type INT"):
        resync(world.spark, world.definition())


@pytest.mark.slow
def test_a_table_gets_it_by_a_resync(make: Make) -> None:
    world = make(delta="path: table", sections="ingest: {bad-records: quarantine}\n")
    row = {"n": 1, "low": None, "seen": "x", "tags": ["b", "a"], "a": None}
    send(world, [Event(1, row), Event(1, row | {"seen": "y"})])
    ingest(world.spark, world.definition())
    world.delta = target(RULES)
    with pytest.raises(TableError, match="`delta` now has `aggregate: n: sum, low: min"):
        ingest(world.spark, world.definition())
    assert resync(world.spark, world.definition()).updated == 1
    assert rows(world) == {1: row | {"n": 2, "tags": ["a", "b"]}}
    with pytest.raises(DefinitionError, match=r"under `delta.aggregate` a record that is applied later"):
        replay(world.spark, world.definition())
    world.sql("ALTER TABLE t ADD CONSTRAINT small CHECK (n < 3)")
    with pytest.raises(TableError, match=r"before it is combined with its row \(delta.aggregate\): .*small"):
        ingest(world.spark, world.definition())
