"""One pipeline, looked at from outside: stopped, never run, by name, with a broker and without, with metrics."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer

from bridge.definition import Definition
from bridge.embedded.broker import Broker
from bridge.lease_owner import current_process
from bridge.metrics import BatchReport, RunName, ignore, now_ms
from bridge.metrics.events import Events
from bridge.metrics.monitoring import Monitoring
from bridge.metrics.prometheus import exporting
from bridge.pages.pipeline_line import Line, Look, Watched
from bridge.publish_progress import PublishProgress
from tests.history.logs import Log
from tests.metrics.test_prometheus import free_address
from tests.pages.files import pipeline


def lines_of(watched: Watched) -> list[Line]:
    return Look("orders.yaml", watched).lines(now_ms())


def ingest(definition: Definition) -> Line:
    (line,) = lines_of(Watched(definition, ("ingest",)))
    return line


def rate(watched: Watched) -> float:
    (line,) = lines_of(watched)
    assert line.records_per_second is not None
    return line.records_per_second


def lease(definition: Definition, side: str = "ingest") -> None:
    folder = Path(definition.run.checkpoint)
    folder.mkdir(exist_ok=True)
    owner = current_process(definition.name, side, "a-run", since="2026-01-01 00:00:00 UTC", every=2.0)
    (folder / f"{side}.lease.json").write_text(owner.to_json())


def test_the_lag_of_a_stopped_ingest_by_partition(
    broker: Broker, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    topic = unique("orders")
    broker.create_topic(topic, partitions=3)
    definition = pipeline(tmp_path, servers=broker.bootstrap, topic=topic)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for partition, records in enumerate((35, 40, 0)):
        for _ in range(records):
            producer.produce(topic, b"k", b"v", partition=partition)
    assert producer.flush(30) == 0
    log, at = Log.at(tmp_path / "table"), now_ms()
    log.batch(0, 0, topic=topic, timestamp=at - 400_000)
    log.batch(30, 0, topic=topic, timestamp=at - 2_000, newest=at - 3_500, engine="delta-rs")
    line = ingest(definition)
    assert (line.state, line.lag, line.version) == ("stopped", 45, 1)
    assert line.lag_by_partition == {f"{topic}-0": 5, f"{topic}-1": 40, f"{topic}-2": 0}
    assert (line.freshness_seconds, line.engine, line.records_per_second) == (1.5, "delta-rs", 0.1)
    assert line.last_commit_seconds is not None and 2 <= line.last_commit_seconds < 60
    assert line.reason is None


def test_without_a_broker_the_rest_is_there(tmp_path: Path) -> None:
    definition = pipeline(tmp_path)
    Log.at(tmp_path / "table").batch(30)
    lease(definition)
    line = ingest(definition)
    assert (line.state, line.version, line.lag) == ("running", 0, None)
    assert line.reason is not None and "127.0.0.1:1" in line.reason


def test_a_pipeline_that_never_ran(tmp_path: Path) -> None:
    (line,) = lines_of(Watched(pipeline(tmp_path)))
    assert (line.verb, line.state, line.reason) == (None, "never ran", None)


def test_a_publish(tmp_path: Path) -> None:
    definition = pipeline(tmp_path)
    log, at = Log.at(tmp_path / "table"), now_ms()
    for _ in range(5):
        log.batch(3, pipeline="other", counts=(30, 0, 0), timestamp=at)
    folder = Path(definition.run.checkpoint) / "publish"
    folder.mkdir(parents=True)
    progress = PublishProgress("orders", "the-table", version=2, batch=0)
    (folder / f"{0:020}.json").write_text(progress.to_json())
    (line,) = lines_of(Watched(definition))
    assert (line.verb, line.state, line.version, line.lag) == ("publish", "stopped", 2, 2)
    assert line.last_commit is not None
    assert line.records_per_second == 0  # it is not known what it had sent before
    (folder / f"{1:020}.json").write_text(replace(progress, version=4).to_json())
    first = folder / f"{0:020}.json"
    os.utime(first, (first.stat().st_atime, at / 1000 - 100))  # what came before it is not known any more
    assert rate(Watched(definition)) == pytest.approx(60 / 100, rel=0.2)
    os.utime(first, (first.stat().st_atime, at / 1000 - 4000))
    assert rate(Watched(definition)) == 60 / 300


def test_the_rate_is_that_of_the_time_which_the_commits_cover(tmp_path: Path) -> None:
    """Of a log of many commits the newest 200 are read: they may be those of the last seconds."""
    definition = pipeline(tmp_path)
    log, at = Log.at(tmp_path / "table"), now_ms()
    for number in range(250):
        log.batch(1000 * (number + 1), counts=(1000, 0, 0), timestamp=at - (250 - number) * 500)
    found = rate(Watched(definition, ("ingest",)))
    assert found == pytest.approx(2000, rel=0.2)
    folder = Path(definition.run.checkpoint) / "publish"
    folder.mkdir(parents=True)
    for number, (version, seconds) in enumerate(((20, 200), (149, 50), (249, 1))):
        file = folder / f"{number:020}.json"
        file.write_text(PublishProgress("orders", "the-table", version=version, batch=number).to_json())
        os.utime(file, (at / 1000 - seconds, at / 1000 - seconds))
    assert rate(Watched(definition, ("publish",))) == pytest.approx(100_000 / 50, rel=0.2)


def test_a_table_of_a_catalog(tmp_path: Path) -> None:
    definition = pipeline(tmp_path, delta="table: a.b.c")
    lease(definition)
    line = ingest(definition)
    assert (line.state, line.lag) == ("running", None)
    assert line.reason == "delta.table names a table of a catalog, which only Spark finds"


def test_a_place_that_only_spark_reads(tmp_path: Path) -> None:
    line = ingest(pipeline(tmp_path, delta="path: 'dbfs:/lake/orders'"))
    assert line.reason == "only Spark reads dbfs:"


def test_texts_of_other_errors_are_not_shown(tmp_path: Path) -> None:
    log = Log.at(tmp_path / "table")
    log.commit("MERGE", userMetadata='{"bridge": {"format": 1, "password": "hidden-word"}}')
    line = ingest(pipeline(tmp_path))
    assert line.reason == "KeyError"


def test_metrics_of_a_run_go_first(tmp_path: Path) -> None:
    address = free_address()
    definition = pipeline(tmp_path, delta="table: a.b.c", run=f", metrics: '{address}'")
    at = now_ms()
    report = BatchReport(
        pipeline="orders",
        verb="ingest",
        batch=0,
        records_in=120,
        pending_records=9,
        newest_record_ms=at - 2_000,
        read_ms=at - 1_000,
        committed_ms=at,
        reader="consumer",
        engine="spark",
    )
    with exporting(address, ignore, RunName("orders", "ingest", "t")) as listen:
        listen(report)
        line = ingest(definition)
    assert (line.state, line.lag, line.freshness_seconds, line.reader) == ("running", 9, 2.0, "consumer")
    assert line.records_per_second is not None and line.records_per_second > 0
    assert ingest(definition).state == "never ran"


def test_the_last_error_is_shown_until_the_next_run(tmp_path: Path) -> None:
    definition = pipeline(tmp_path, run=", events: events.jsonl")
    lease(definition)
    events = Events(str(definition.run.monitoring.events), RunName("orders", "ingest"))
    events.failed(ValueError("may hold anything"))
    assert ingest(definition).error == "ValueError"
    events.write("batch", {"reader": "spark (why)"})
    line = ingest(definition)
    assert (line.error, line.reader) == (None, "spark (why)")


def test_a_pipeline_of_a_script_has_the_lease_and_the_events_of_its_run(tmp_path: Path) -> None:
    definition = pipeline(tmp_path, "script.sources-orders")
    events = str(tmp_path / "events.jsonl")
    Events(events, RunName("script", "run")).failed(ValueError())
    (tmp_path / "script.lease.json").write_text("{}")
    watched = Watched(
        definition,
        ("ingest",),
        Monitoring(events=events),
        lease=(str(tmp_path), "script"),
        run=("script", "run"),
    )
    (line,) = lines_of(watched)
    assert (line.state, line.error) == ("stopped", "ValueError")
