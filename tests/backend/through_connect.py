"""What is different through Spark Connect: ranges in place of a stream, tasks, conflicts. `test_connect_server` runs it
with a session of a server."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bridge.backend import backend_of
from bridge.delta.delta_errors import attempts
from bridge.errors import BridgeError, GapError
from bridge.kafka.task_errors import TaskErrors
from bridge.pipelines.ingest.once import ingest_once
from bridge.pipelines.ingest.replay import replay
from bridge.pipelines.ingest.run import ingest
from bridge.session import session_settings
from tests.pipelines.world import Make, key, value


def doubled(parts: Iterable[int]) -> Iterator[tuple[int, int]]:
    yield from ((part * 2, os.getpid()) for part in parts)


def failing(parts: Iterable[int]) -> Iterator[int]:
    raise GapError(f"gone at {next(iter(parts))}")


def asleep(parts: Iterable[int]) -> Iterator[int]:
    time.sleep(60)
    yield 0


def test_the_session_is_one_of_spark_connect(spark: SparkSession) -> None:
    assert "connect" in type(spark).__module__
    child = backend_of(spark).child()
    child.conf.set("spark.sql.shuffle.partitions", "7")
    assert spark.conf.get("spark.sql.shuffle.partitions") != "7"


def test_a_client_that_clones_no_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of Spark 4.0 and Databricks Connect 17.3; the user's session stays the active one."""
    monkeypatch.delattr(type(spark), "cloneSession", raising=False)
    active = SparkSession.getActiveSession()
    child = backend_of(spark).child()
    assert backend_of(child).application != backend_of(spark).application
    assert child.range(3).count() == 3 and SparkSession.getActiveSession() is active


def test_tasks_their_errors_and_their_end(spark: SparkSession) -> None:
    backend = backend_of(spark)
    found = backend.run_tasks(doubled, [1, 2, 3])
    assert sorted(number for number, _ in found) == [2, 4, 6] and os.getpid() not in dict(found).values()
    errors = TaskErrors()
    with pytest.raises(Exception) as failed:  # noqa: PT011 (its text is that of a worker)
        backend.run_tasks(errors.task(failing), [5])
    assert str(errors.error(failed.value)) == "gone at 5"
    ended = threading.Event()

    def run() -> None:
        with pytest.raises(Exception, match=r"(?i)cancel"):
            backend.run_tasks(asleep, [1], tag="sleepers")
        ended.set()

    thread = threading.Thread(target=run)
    thread.start()
    while not ended.is_set():
        backend.cancel("sleepers")
        time.sleep(0.1)
    thread.join()


@pytest.mark.parametrize("reader", ["spark", "auto"])
def test_ranges_are_read_between_chosen_offsets(make: Make, spark: SparkSession, reader: str) -> None:
    world = make(sections=f"ingest: {{reader: {reader}}}\n")
    world.send([(key(n), value(n, "a")) for n in range(30)])
    definition = world.definition(run={"max-offsets-per-batch": 20})
    summary = ingest(spark, definition)
    assert (summary.batches, summary.records_in) == (2, 30)
    world.send([(key(n), value(n, "b")) for n in range(10)] + [(key(29), None)])
    ingest(spark, definition)
    assert [(row[0], row[1]) for row in world.rows()] == sorted(
        [(n, "b" if n < 10 else "a") for n in range(29)], key=str
    )


def test_a_corrected_record_is_replayed(make: Make, spark: SparkSession) -> None:
    world = make(sections="ingest: {bad-records: quarantine}\n", partitions=1, cleanup="delete")
    world.send([(key(1), "{"), (key(2), "{"), (key(2), value(2, "newer"))])
    ingest(spark, world.definition())
    spark.sql(f"UPDATE delta.`{world.folder}/table_quarantine` SET value = CAST('{value(1, 'a')}' AS BINARY)")
    done = replay(spark, world.definition())
    assert (done.replayed, done.overtaken, done.still_bad) == (2, 1, 0)
    assert [row[:2] for row in world.rows()] == [(1, "a"), (2, "newer")]


def test_rows_from_elsewhere_get_their_intervals(make: Make, spark: SparkSession) -> None:
    """Their fold reads a batch several times: the client takes no plan with an observed frame twice."""
    columns = "id BIGINT, name STRING, at BIGINT, PRIMARY KEY (id) NOT ENFORCED"
    delta = "path: table, sequence-by: at, history: scd2"
    world = make(columns=columns, delta=delta, partitions=1, cleanup="delete")

    def row(name: str, at: int) -> str:
        return json.dumps({"id": 1, "name": name, "at": at})

    world.send([(key(1), row("topic", 20))])
    ingest(spark, world.definition())
    file = world.folder / "rows.json"
    file.write_text(row("elsewhere", 10))
    ingest_once(spark, world.definition(), f"json:{file}")
    assert sorted((found[1], found[2]) for found in world.rows()) == [("elsewhere", 10), ("topic", 20)]


def test_a_merge_that_lost_to_another_writer_is_repeated(
    make: Make, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer updates the row again and again, until a batch has lost to it; then it is quiet."""
    world, tried = make(), list[int]()
    world.send([(key(1), value(1, "first"))])
    ingest(spark, world.definition())

    def counted() -> Iterator[int]:
        for attempt in attempts():
            tried.append(attempt)
            yield attempt

    monkeypatch.setattr("bridge.delta.merge_spark.attempts", counted)
    other, done = backend_of(spark).child(), threading.Event()

    def update() -> None:
        while not done.wait(0.5) and max(tried, default=0) == 0:
            with suppress(PySparkException):  # it may lose, too
                other.sql(f"UPDATE delta.`{world.folder}/table` SET amount = amount + 1")

    thread = threading.Thread(target=update)
    thread.start()
    number = 0
    try:
        while max(tried, default=0) == 0:
            number += 1
            world.send([(key(1), value(1, f"name {number}"))])
            ingest(spark, world.definition())
    finally:
        done.set()
        thread.join()
    assert [row[1] for row in world.rows()] == [f"name {number}"]


def test_a_setting_that_the_compute_refuses_is_named(spark: SparkSession) -> None:
    with (
        pytest.raises(BridgeError, match=r"refuses the setting spark\.sql\.warehouse\.dir"),
        session_settings(spark, {"spark.sql.warehouse.dir": "/nowhere"}),
    ):
        pass
