"""Runs whose batches consumers read: what they report, and when they go on otherwise."""

from __future__ import annotations

import socket
import sys
import threading
from importlib import import_module
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]

from bridge.errors import DefinitionError, GapError, MissingPackageError
from bridge.metrics import BatchReport
from bridge.pipelines.ingest.run import ingest
from tests.pipelines.world import ONE, Make, key, readers, tombstone, upsert


def test_batches_are_of_the_limit_and_name_their_reader(make: Make) -> None:
    world = make(partitions=1)
    world.send([upsert(n % 4, f"v{n}") for n in range(7)] + [tombstone(0)])
    reports = world.batches({"max-offsets-per-batch": 3})
    assert [(r.records_in, r.inserted, r.updated, r.deleted, r.reader) for r in reports] == [
        (3, 3, 0, 0, "consumer"),
        (3, 1, 2, 0, "consumer"),
        (2, 0, 1, 1, "consumer"),
    ]
    assert world.rows() == [(1, "v5", ONE), (2, "v6", ONE), (3, "v3", ONE)]


def test_a_batch_that_consumers_leave_open_is_read_by_spark(make: Make) -> None:
    """A number where the table has a STRING: Flink's json reads its text, and so does the full decode."""
    world = make(partitions=1)
    world.send([upsert(1, "a"), (key(2), '{"id": 2, "name": 5}'), upsert(3, "c"), upsert(4, "d")])
    reports = world.batches({"max-offsets-per-batch": 1})
    assert readers(reports) == ["consumer", "spark", "consumer", "consumer"]
    assert world.rows() == [(1, "a", ONE), (2, "5", None), (3, "c", ONE), (4, "d", ONE)]


@pytest.mark.parametrize(("reader", "last"), [("auto", "spark"), ("consumer", "consumer")])
def test_after_two_such_batches_spark_reads_on(make: Make, reader: str, last: str) -> None:
    """Unless the pipeline file says that consumers read: then they try each batch."""
    world = make(partitions=1, sections=f"ingest: {{reader: {reader}}}\n")
    odd = [(key(n), f'{{"id": {n}, "name": {n}}}') for n in range(2)]
    world.send([*odd, upsert(5, "e"), upsert(6, "f")])
    reports = world.batches({"max-offsets-per-batch": 1})
    assert readers(reports) == ["spark", "spark", last, last]
    assert world.rows() == [(0, "0", None), (1, "1", None), (5, "e", ONE), (6, "f", ONE)]


def test_spark_reads_where_the_pipeline_says_so(make: Make) -> None:
    world = make(sections="ingest: {reader: spark}\n")
    world.send([upsert(1, "a")])
    reports = world.batches()
    assert [r.reader for r in reports] == ["spark (set by ingest.reader)"]


def test_consumers_that_cannot_read_are_refused_where_they_are_asked_for(make: Make) -> None:
    world = make(sections="ingest: {reader: consumer}\nmerge: {engine: spark}\n")
    world.send([upsert(1, "a")])
    with pytest.raises(DefinitionError) as caught:
        ingest(world.spark, world.definition())
    assert str(caught.value) == (
        "'orders': `ingest.reader: consumer` is not possible, as merge.engine is spark; leave the "
        "option out, and Spark's Kafka source reads where consumers cannot"
    )


class Lacking:
    """A decoder of a package that the workers do not have."""

    def __reduce__(self) -> Any:
        return import_module, ("no_such_package",)


def test_executors_without_a_package_leave_the_topic_to_spark(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless the pipeline file asks for consumers: then the error names the package."""
    monkeypatch.setattr("bridge.pipelines.ingest.consumer_reader.arrow_decoder", lambda _: Lacking())
    world = make(partitions=1)
    world.send([upsert(1, "a")])
    reports = world.batches()
    where = f"host {socket.gethostname()}, {sys.executable}"
    reason = f"no_such_package is not installed on the executors (No module named 'no_such_package'; {where})"
    assert [r.reader for r in reports] == [f"spark ({reason})"]
    world.send([upsert(2, "b")])
    world.sections = "ingest: {reader: consumer}\n"
    with pytest.raises(MissingPackageError, match="install no_such_package, in the driver's version"):
        ingest(world.spark, world.definition())


def test_a_run_with_a_trigger_follows_the_topic_and_its_new_partitions(
    make: Make, stop: threading.Event
) -> None:
    world = make(partitions=1)
    world.send([upsert(1, "a")])
    reports: list[BatchReport] = []

    def listener(report: BatchReport) -> None:
        reports.append(report)
        if len(reports) == 1:
            admin = AdminClient({"bootstrap.servers": world.broker.bootstrap})
            for future in admin.create_partitions([NewPartitions(world.topic, 2)]).values():
                future.result()
            world.send([upsert(2, "b")], partition=1)
        elif len(reports) == 2:
            world.send([upsert(3, "c"), tombstone(1)], partition=0)
        else:
            stop.set()

    ingest(world.spark, world.definition(run={"trigger": "200 ms"}), listener=listener, stop=stop)
    assert {r.reader for r in reports} == {"consumer"}
    assert world.rows() == [(2, "b", ONE), (3, "c", ONE)]


def test_a_topic_created_anew_during_a_run_is_a_gap(make: Make, stop: threading.Event) -> None:
    world = make(partitions=1)
    world.send([upsert(1, "a")])
    with pytest.raises(GapError, match=f"topic '{world.topic}' was deleted and created anew"):
        ingest(
            world.spark,
            world.definition(run={"trigger": "200 ms"}),
            listener=lambda _: world.recreate_topic(),
            stop=stop,
        )
    assert world.rows() == [(1, "a", ONE)]
