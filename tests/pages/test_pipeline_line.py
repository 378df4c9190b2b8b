"""One pipeline, looked at from outside: stopped, never run, by name, with a broker and without, with metrics.

A run's metrics endpoint is asked for one pipeline's values.

What runs leave behind is read from outside: leases, the publish log, events.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer

from bridge.bridge_folders import publish_log_file
from bridge.definition import Definition, DeltaTarget
from bridge.embedded.broker import Broker
from bridge.errors import BridgeError, DefinitionError, GapError
from bridge.lease_owner import LeaseOwner, current_process
from bridge.metrics import BatchReport, RunName, ignore, now_ms, prometheus
from bridge.metrics.events import Events
from bridge.metrics.monitoring import Monitoring
from bridge.metrics.prometheus import exporting
from bridge.pages.pipeline_line import (
    LeaseState,
    Line,
    Look,
    PublishLogReader,
    Watched,
    last_event,
    lease_state,
    scrape,
)
from bridge.publish_progress import PublishProgress
from tests.history.logs import Log
from tests.kafka.topics import Fresh
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


def test_the_lag_of_a_stopped_ingest_by_partition(fresh: Fresh, broker: Broker, tmp_path: Path) -> None:
    topic = fresh("orders", partitions=3)
    definition = pipeline(tmp_path, servers=broker.bootstrap, topic=topic)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for partition, records in enumerate((35, 40, 0)):
        for _ in range(records):
            producer.produce(topic, b"k", b"v", partition=partition)
    assert producer.flush(30) == 0
    log, at = Log.at(tmp_path / "table"), now_ms()
    log.batch(0, 0, topic=topic, timestamp=at - 400_000)
    log.batch(30, 0, topic=topic, timestamp=at - 2_000, newest=at - 3_500, engine="driver")
    line = ingest(definition)
    assert (line.state, line.lag, line.version) == ("stopped", 45, 1)
    assert line.lag_by_partition == {f"{topic}-0": 5, f"{topic}-1": 40, f"{topic}-2": 0}
    assert (line.freshness_seconds, line.engine, line.records_per_second) == (1.5, "driver", 0.1)
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


def test_a_state_in_a_table(tmp_path: Path) -> None:
    """The progress of an ingest is in its table; whether it runs is not seen, nor how far a publish is."""
    definition = pipeline(tmp_path)
    state = DeltaTarget(path=str(tmp_path / "state"))
    definition = replace(definition, run=replace(definition.run, checkpoint="", state=state))
    Log.at(tmp_path / "table").batch(30)
    ingested, published = lines_of(Watched(definition))
    for line in (ingested, published):
        assert line.state == "unknown"
        assert line.reason is not None and "are in run.state, a table, which only Spark reads" in line.reason
    assert (ingested.version, published.version) == (0, None)


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


def test_the_values_of_a_pipeline() -> None:
    address = free_address()
    report = BatchReport(
        pipeline="orders",
        verb="ingest",
        batch=0,
        records_in=7,
        pending_records=3,
        reader="consumer",
        engine="spark",
    )
    with exporting(address, ignore, RunName("orders", "ingest", "t")) as listen:
        listen(report)
        listen(report)
        with exporting(address, ignore, RunName("customers", "publish", "t")):
            found = scrape(address)
    assert found is not None
    values = found.of("orders", "ingest")
    assert (values["numRecordsIn_total"], values["pendingRecords"]) == (14, 3)
    assert "changes_total" not in values  # has a label of its own
    assert found.reader("orders", "ingest") == "consumer"
    assert found.of("customers", "publish")["numRecordsOut_total"] == 0
    assert (found.of("orders", "publish"), found.reader("customers", "publish")) == ({}, None)
    assert scrape(address) is None


def test_files_and_gateways_are_not_asked(tmp_path: Path) -> None:
    """They keep the values of runs that have ended."""
    assert scrape(str(tmp_path / "orders.prom")) is None
    assert scrape("http://127.0.0.1:1") is None


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "is_installed", lambda: False)
    with pytest.raises(DefinitionError, match=r"pip install 'changelog-bridge\[metrics\]'"):
        scrape("127.0.0.1:1")


PROGRESS = PublishProgress("orders", "the-table", version=7, batch=3)


def owner(**fields: object) -> LeaseOwner:
    here = current_process("orders", "ingest", "a-run", since="2026-01-01 00:00:00 UTC", every=2.0)
    return replace(here, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "silent_seconds", "wanted"),
    [
        (owner().to_json(), 1, LeaseState(True, True)),
        (owner().to_json(), 60, LeaseState(True, False)),
        (owner(host="elsewhere").to_json(), 5, LeaseState(True, True)),
        (owner(host="elsewhere").to_json(), 60, LeaseState(True, False)),
        (owner(pid=os.getppid(), started="0").to_json(), 1, LeaseState(True, False)),
        (owner(released=True).to_json(), 1, LeaseState(True, False)),
        ('{"format": 1, "pip', 1, LeaseState(True, False)),
    ],
    ids=["beats", "silent", "beats elsewhere", "silent elsewhere", "gone", "released", "half written"],
)
def test_a_lease(text: str, silent_seconds: int, wanted: LeaseState, tmp_path: Path) -> None:
    file = tmp_path / "ingest.lease.json"
    file.write_text(text)
    at = now_ms()
    os.utime(file, (at / 1000 - silent_seconds,) * 2)
    assert lease_state(str(tmp_path), "ingest", ["orders"], at) == wanted


def test_a_process_that_is_here_holds_its_lease_without_a_heartbeat(tmp_path: Path) -> None:
    """A machine may be too busy to beat."""
    from bridge.lease_owner import start_time

    parent = os.getppid()
    text = owner(pid=parent, started=start_time(parent)).to_json()
    (tmp_path / "publish.lease.json").write_text(text)
    assert lease_state(str(tmp_path), "publish", ["orders"], now_ms() + 3_600_000).is_held


def test_no_lease_and_one_of_another_pipeline(tmp_path: Path) -> None:
    assert lease_state(str(tmp_path / "nowhere"), "ingest", ["orders"], 0) == LeaseState(False, False)
    (tmp_path / "ingest.lease.json").write_text(owner().to_json())
    assert lease_state(str(tmp_path), "ingest", ["customers"], now_ms()) == LeaseState(False, False)


def write(folder: Path, progress: PublishProgress, at_ms: int) -> Path:
    file = folder / "publish" / publish_log_file(progress.batch)
    file.parent.mkdir(exist_ok=True)
    file.write_text(progress.to_json())
    os.utime(file, (at_ms / 1000,) * 2)
    return file


def test_a_publish_log_is_followed(tmp_path: Path) -> None:
    log = PublishLogReader(str(tmp_path), "orders")
    assert (log.last(), log.written_ms, log.version_at(0)) == (None, None, None)
    write(tmp_path, PROGRESS, 10_000)
    first = write(tmp_path, replace(PROGRESS, version=9, batch=4), 20_000)
    assert log.last() == replace(PROGRESS, version=9, batch=4)
    assert (log.written_ms, log.version_at(15_000), log.version_at(25_000)) == (
        20_000,
        (7, 15_000),
        (9, 25_000),
    )
    assert log.version_at(5_000) == (7, 10_000)
    first.unlink()
    half = write(tmp_path, replace(PROGRESS, version=12, batch=5), 30_000)
    whole = half.read_text()
    half.write_text(whole[:40])
    assert log.last() == PROGRESS
    half.write_text(whole)
    assert log.last() == replace(PROGRESS, version=12, batch=5)


def test_a_publish_log_that_is_not_its_own(tmp_path: Path) -> None:
    file = write(tmp_path, PROGRESS, 10_000)
    with pytest.raises(DefinitionError, match="belongs to pipeline 'orders', not 'customers'"):
        PublishLogReader(str(tmp_path), "customers").last()
    file.write_text("{}")
    with pytest.raises(GapError, match=r"none of the 1 files in .* can be read"):
        PublishLogReader(str(tmp_path), "orders").last()
    file.write_text(json.dumps({"bridge": {"format": 2}}))
    with pytest.raises(DefinitionError, match="was written by a newer bridge"):
        PublishLogReader(str(tmp_path), "orders").last()


def test_the_last_event_of_a_run(tmp_path: Path) -> None:
    file = str(tmp_path / "events.jsonl")
    runs = [("orders", "ingest")]
    assert last_event(file, runs) is None
    orders, customers = (Events(file, RunName(name, "ingest")) for name in ("orders", "customers"))
    orders.write("started")
    orders.failed(BridgeError("the topic is gone"))
    for _ in range(100):
        customers.write("batch")
    with open(file, "a") as opened:
        opened.write('{"pipeline": "orders", "ev')
    found = last_event(file, runs)
    assert found is not None
    assert (found["event"], found["message"]) == ("failed", "the topic is gone")
    assert last_event(file, [("orders", "publish")]) is None
