"""Maintenance never deletes a file that a registered publish still needs, and never stops an ingest."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.definition import Definition, Maintenance
from bridge.delta import optimize_vacuum
from bridge.delta.feed_consumers import MARGIN_SECONDS, FeedConsumers
from bridge.errors import DefinitionError, GapError, TableError
from bridge.metrics import Summary
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.operations.maintain import maintain, maintain_table
from bridge.pipelines.operations.status import status
from bridge.pipelines.publish.run import publish
from bridge.pipelines.runtime.preflight import open_whole_table
from tests.delta.tables import VECTORS, create_fed
from tests.pipelines.world import Make, World, upsert


@pytest.fixture
def careless(spark: SparkSession) -> SparkSession:
    """A session in which Delta allows VACUUM without retention."""
    session = spark.newSession()
    session.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    return session


@pytest.fixture
def world(make: Make, spark: SparkSession, lake: Path) -> World:
    """A table of three rows that `orders` has published up to version 1."""
    world = make()
    columns = "id BIGINT, name STRING, amount DECIMAL(10, 2)"
    create_fed(spark, lake / "table", columns, more=VECTORS)
    _sql(world, "INSERT INTO {} VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', 1)")
    publish(spark, world.definition())
    return world


def _sql(world: World, statement: str) -> None:
    world.spark.sql(statement.format(f"delta.`{world.folder}/table`"))


def _keeping_nothing(definition: Definition) -> Definition:
    return replace(definition, maintenance=Maintenance(retain_seconds=0))


def _behind(world: World) -> None:
    """Two versions that `orders` has not published, one of them with change files."""
    _sql(world, "UPDATE {} SET name = 'x' WHERE id = 2")
    _sql(world, "DELETE FROM {} WHERE id = 3")


@pytest.mark.slow
def test_a_publish_that_is_behind_misses_nothing(world: World, careless: SparkSession) -> None:
    _behind(world)
    definition = _keeping_nothing(world.definition())
    done = maintain(careless, definition)
    assert done.files_deleted == 0 and done.files_compacted and done.retained_hours
    assert MARGIN_SECONDS / 3600 <= done.retained_hours < 2
    assert done.held_back and done.held_back.startswith("orders: at version 1, ")
    sent = publish(world.spark, definition)
    assert (sent.records_out, sent.tombstones) == (2, 1)
    state = status(world.spark, definition)
    assert state.consumers == ("orders: at version 6, up to date",) and state.pending_versions == 0
    assert state.last_optimize and state.last_vacuum
    # Neither OPTIMIZE nor VACUUM is a change.
    again = maintain(careless, definition)
    assert again.retained_hours == MARGIN_SECONDS / 3600
    assert publish(world.spark, definition).records_out == 0
    assert len(world.received()) == 5


@pytest.mark.slow
def test_without_the_guard_the_publish_finds_a_gap(world: World, careless: SparkSession) -> None:
    """A user's own OPTIMIZE and VACUUM do not know what a publish needs."""
    _behind(world)
    definition = world.definition()
    table = open_whole_table(careless, definition)
    optimize_vacuum.optimize(table)
    assert optimize_vacuum.vacuum(table, 0.0)
    with pytest.raises(GapError, match=r"have been vacuumed; run `bridge resync FILE`"):
        publish(world.spark, definition)


@pytest.mark.slow
def test_a_publish_that_is_forgotten_holds_nothing_back(world: World, careless: SparkSession) -> None:
    _behind(world)
    definition = _keeping_nothing(world.definition())
    with pytest.raises(
        DefinitionError, match=r"--forget-consumer other: no such publish .* registered: orders"
    ):
        maintain(careless, definition, forget="other")
    done = maintain(careless, definition, forget="orders")
    assert (done.forgotten, done.consumers, done.held_back) == ("orders", (), None)
    assert done.retained_hours == 0 and done.files_deleted


def test_a_publish_that_cannot_register_says_so_once_and_goes_on(world: World) -> None:
    notices = world.folder / "table" / "_bridge"
    (notices / "consumers" / "orders.json").unlink()
    (notices / "consumers").rmdir()
    (notices / "consumers").write_text("in the way")
    _behind(world)
    summary = publish(world.spark, world.definition())
    assert summary.records_out == 2 and summary.warning is not None
    assert summary.warning.count("/consumers cannot be written (") == 1
    assert "VACUUM may delete files it still needs" in summary.warning


def _ingested(world: World, every: str, run: dict[str, object]) -> Summary:
    """One run of the pipeline; with an interval it is stopped after its second maintenance."""
    world.sections = f"maintenance: {{every: {every}, retain: 8 d}}\n"
    stop, log = threading.Event(), world.folder / "table" / "_delta_log"

    def vacuums() -> int:
        return sum("VACUUM END" in file.read_text() for file in log.glob("*.json"))

    def watch(enough: int) -> None:
        deadline = time.monotonic() + 120
        while vacuums() < enough and time.monotonic() < deadline:
            time.sleep(0.2)
        stop.set()

    if "trigger" in run:
        threading.Thread(target=watch, args=[vacuums() + 2]).start()
    return ingest(world.spark, world.definition("kept", run=run), stop=stop)


@pytest.mark.slow
def test_an_ingest_looks_after_its_table_when_that_is_due(make: Make) -> None:
    world = make()
    world.send([upsert(1, "a")])
    assert _ingested(world, "1 d", {}).maintained == 1
    world.send([upsert(2, "b")])
    assert _ingested(world, "1 d", {}).maintained == 0  # by the log it is not due
    world.send([upsert(3, "c")])
    summary = _ingested(world, "1 s", {"trigger": "500 ms"})
    assert summary.maintained > 1 and summary.warning is None
    assert len(world.rows()) == 3
    assert {c["operation"] for c in world.history()} >= {"MERGE", "OPTIMIZE", "VACUUM START", "VACUUM END"}


@pytest.mark.versions
def test_maintenance_that_fails_is_a_warning(make: Make, spark: SparkSession) -> None:
    world = make()
    world.send([upsert(1, "a")])
    world.sections = "maintenance: {every: 1 d, retain: 0 h}\n"
    summary = ingest(spark, world.definition())
    assert summary.maintained == 0 and summary.inserted == 1 and summary.warning is not None
    assert (
        "VACUUM to the last 0 hours is refused, as the table promises its readers 168 hours"
        in summary.warning
    )
    with pytest.raises(TableError, match=r"Raise `maintenance.retain`, or leave it out"):
        maintain(spark, world.definition())


@pytest.mark.slow
def test_the_slowest_publish_counts_and_one_that_is_lost_does_not(
    world: World, careless: SparkSession
) -> None:
    _behind(world)
    table = replace(open_whole_table(careless, world.definition()))
    consumers = FeedConsumers(table)
    consumers.register("slow", 0, "x")
    consumers.register("lost", -7, "x")
    (Path(consumers.place) / "former.json").write_text(json.dumps(_notice("another-table")))
    done = maintain_table(table, Maintenance(optimize=False, retain_seconds=0), consumers)
    assert [line.partition(",")[0] for line in done.consumers] == [
        "lost: at version -7",
        "orders: at version 1",
        "slow: at version 0",
    ]
    assert done.held_back and done.held_back.startswith("slow: at version 0, 3 versions and ")
    assert done.warning and "publish 'lost' is at version -7, and the log of table" in done.warning
    (Path(consumers.place) / "orders.json").write_text("{")
    with pytest.raises(TableError, match=r"what the publish 'orders' still needs.*--forget-consumer orders"):
        maintain_table(table, Maintenance(), consumers)


def _notice(table_id: str) -> dict[str, Any]:
    return {"pipeline": "former", "version": 0, "table_id": table_id, "at": 0, "checkpoint": "x"}


def test_retention_times_are_read_as_delta_writes_them(world: World) -> None:
    table = open_whole_table(world.spark, world.definition())
    seconds_of = {
        "interval 30 days": 2_592_000,
        "1 week 2 hours": 612_000,
        "INTERVAL 90 minutes": 5400,
        "interval 1500 milliseconds": 1.5,
    }
    for text, seconds in seconds_of.items():
        given = replace(table, properties={optimize_vacuum.FILE_RETENTION: text})
        assert optimize_vacuum.retention_seconds(given, optimize_vacuum.FILE_RETENTION) == seconds
    assert optimize_vacuum.retention_seconds(table, optimize_vacuum.LOG_RETENTION) == 30 * 86_400
    with pytest.raises(TableError, match="= 'soon' is not an interval"):
        optimize_vacuum.retention_seconds(
            replace(table, properties={optimize_vacuum.LOG_RETENTION: "soon"}), optimize_vacuum.LOG_RETENTION
        )


@pytest.mark.slow
def test_optimize_in_a_loop_beside_an_ingest(make: Make, spark: SparkSession) -> None:
    """Whoever loses tries again: each batch is committed once, and the table is the fold of the topic."""
    world = make(partitions=1)
    rounds, keys, of_a_batch = 5, 40, 10  # one batch leaves files of others, which OPTIMIZE joins
    world.send([upsert(n % keys, f"v{n}") for n in range(rounds * keys)])
    ingest(spark, world.definition(run={"max-offsets-per-batch": of_a_batch}), stop=_after(world, 1))
    stop, optimized, lost = threading.Event(), [0], [0]

    def optimize() -> None:
        table = open_whole_table(spark.newSession(), world.definition("orders", run={"trigger": "1 s"}))
        while not stop.is_set():
            try:
                optimized[0] += optimize_vacuum.optimize(table).removed > 0
            except TableError:
                lost[0] += 1

    other = threading.Thread(target=optimize)
    other.start()
    try:
        ingest(spark, world.definition(run={"max-offsets-per-batch": of_a_batch}))
    finally:
        stop.set()
        other.join()
    print(f"{optimized[0]} OPTIMIZE done, {lost[0]} given up")
    assert optimized[0] > 0
    assert {row[0]: row[1] for row in world.rows()} == {n: f"v{(rounds - 1) * keys + n}" for n in range(keys)}
    batches = [json.loads(c["userMetadata"])["bridge"]["batch"] for c in world.history() if c["userMetadata"]]
    assert sorted(batches) == list(range(rounds * keys // of_a_batch))


def _after(world: World, batches: int) -> threading.Event:
    """Is set once the log holds so many batches."""
    stop, log = threading.Event(), world.folder / "table" / "_delta_log"

    def watch() -> None:
        while sum("MERGE" in file.read_text() for file in log.glob("*.json")) < batches:
            time.sleep(0.1)
        stop.set()

    threading.Thread(target=watch).start()
    return stop
