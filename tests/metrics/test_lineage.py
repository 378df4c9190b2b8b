"""Events of OpenLineage go to a file or a collector; none that is dead, slow or missing stops or slows a run."""

from __future__ import annotations

import json
import socket
import threading
import time
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bridge.errors import DefinitionError, KafkaError, QualityError
from bridge.metrics import BatchReport, PartitionRead, RunName, lineage
from bridge.metrics.datasets import Dataset, Flow
from bridge.metrics.lineage import check_lineage
from bridge.metrics.monitoring import Monitoring, monitored
from tests.metrics.openlineage import checked, events_in, facet_of
from tests.metrics.test_prometheus import free_address, gateway

RUN = RunName("orders", "ingest", "t")
COUNTED = (("ingest", "orders"),)
FLOW = Flow(
    (Dataset("kafka://b:9092", "t", is_table=False, counted=COUNTED),),
    (Dataset("file", "/lake/orders", is_table=True, counted=COUNTED),),
)


def read(first: int, end: int) -> PartitionRead:
    return PartitionRead("t", 0, first, end, 100)


REPORT = BatchReport(
    "orders",
    "ingest",
    3,
    topic="t",
    version=7,
    records_in=5,
    inserted=2,
    deleted=1,
    partitions=(read(10, 15),),
)


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("API_KEY", "ENDPOINT", "NAMESPACE", "PARENT_ID"):
        monkeypatch.delenv(f"OPENLINEAGE_{name}", raising=False)


def played(
    target: str,
    *reports: BatchReport,
    error: BaseException | None = None,
    flow: Flow = FLOW,
    stop: threading.Event | None = None,
) -> list[BatchReport]:
    heard: list[BatchReport] = []
    watched = Monitoring.of(None, None, None, lineage=target)
    with monitored(watched, heard.append, RUN, flow=lambda: flow, stop=stop) as listen:
        for report in reports:
            listen(report)
        if error is not None:
            raise error
    return heard


def test_a_run_that_ends(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    again = BatchReport("orders", "ingest", 4, version=8, records_in=1, updated=1, partitions=(read(15, 16),))
    assert played(str(file), REPORT, again) == [REPORT, again]
    start, end = events_in(file)
    assert (start["eventType"], end["eventType"]) == ("START", "COMPLETE")
    assert start["run"]["runId"] == end["run"]["runId"] and end["run"]["runId"][14] == "7"
    assert (end["job"]["namespace"], end["job"]["name"]) == ("default", "orders.ingest")
    assert end["job"]["facets"]["jobType"]["processingType"] == "BATCH"
    assert facet_of(end, "inputs", 0, "inputStatistics")["rowCount"] == 6
    assert facet_of(end, "inputs", 0, "bridge_kafkaOffsets")["partitions"] == [
        {"partition": 0, "from": 10, "to": 16}
    ]
    assert facet_of(end, "outputs", 0, "outputStatistics")["rowCount"] == 4
    assert facet_of(end, "outputs", 0, "version")["datasetVersion"] == "8"
    assert "version" not in start["outputs"][0]["facets"]


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (KafkaError("no broker at b:9092"), "FAIL", "no broker at b:9092"),
        (QualityError("id 4711 is twice"), "FAIL", "QualityError"),
        (ValueError("id 4711"), "FAIL", "ValueError"),
        (KeyboardInterrupt(), "ABORT", None),
    ],
)
def test_a_run_that_fails_or_is_ended(
    tmp_path: Path, error: BaseException, kind: str, message: str | None
) -> None:
    file = tmp_path / "events.jsonl"
    with pytest.raises(type(error)):
        played(str(file), error=error, flow=Flow(FLOW.inputs, FLOW.outputs, gate=True))
    last = events_in(file)[-1]
    assert last["eventType"] == kind
    assert last["run"].get("facets", {}).get("errorMessage", {}).get("message") == message
    (gate,) = facet_of(last, "inputs", 0, "dataQualityAssertions")["assertions"]
    assert gate["success"] is not isinstance(error, QualityError)


def test_a_run_that_is_told_to_stop_is_aborted(tmp_path: Path) -> None:
    stop, file = threading.Event(), tmp_path / "events.jsonl"
    stop.set()
    played(str(file), stop=stop)
    assert events_in(file)[-1]["eventType"] == "ABORT"


def test_a_run_that_goes_on_tells_its_sums_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lineage, "EVERY_SECONDS", 0.1)
    file = tmp_path / "events.jsonl"
    with monitored(
        Monitoring.of(None, None, None, lineage=str(file)), lambda _: None, RUN, flow=lambda: FLOW
    ) as listen:
        for batches in (50, 100):
            for _ in range(50):
                listen(REPORT)
            while facets(file, "RUNNING")[-1:] != [5 * batches]:
                time.sleep(0.02)
    counts = facets(file, "RUNNING")
    assert counts == sorted(counts) and len(counts) <= 6, "a batch is no event"
    assert facets(file, "COMPLETE") == [500]


def test_the_gate_and_topics_that_are_counted_together(tmp_path: Path) -> None:
    topics = tuple(replace(FLOW.inputs[0], name=name, shares_counts=True) for name in ("t", "u"))
    played(str(tmp_path / "e"), replace(REPORT, unexpected_rows=2), flow=Flow(topics, gate=False))
    end = events_in(tmp_path / "e")[-1]
    assert [set(d["inputFacets"]) for d in end["inputs"]] == [
        {"dataQualityAssertions", "bridge_kafkaOffsets"},
        {"dataQualityAssertions"},
    ]
    (gate,) = facet_of(end, "inputs", 1, "dataQualityAssertions")["assertions"]
    assert (gate["assertion"], gate["success"], gate["severity"]) == ("gate", False, "warn")


def facets(file: Path, kind: str) -> list[int]:
    """The records that events of a kind count."""
    found = events_in(file) if file.exists() else []
    return [facet_of(e, "inputs", 0, "inputStatistics")["rowCount"] for e in found if e["eventType"] == kind]


def posted(bodies: list[str]) -> list[dict[str, Any]]:
    return [checked(json.loads(text.partition("\n")[2])) for text in bodies]


def test_a_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "shop")
    monkeypatch.setenv("OPENLINEAGE_PARENT_ID", "airflow/dag/task/01994e9c-0000-7000-8000-000000000001")
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "hidden-key")
    headers: list[Mapping[str, str]] = []
    with gateway(headers=headers) as (url, bodies):
        assert played(f"{url}/base", REPORT) == [REPORT]
    assert {text.partition("\n")[0] for text in bodies} == {"/base/api/v1/lineage"}
    assert {found["Authorization"] for found in headers} == {"Bearer hidden-key"}
    assert "hidden-key" not in str(bodies)
    start, end = posted(bodies)
    assert (start["eventType"], end["eventType"], end["job"]["namespace"]) == ("START", "COMPLETE", "shop")
    parent = end["run"]["facets"]["parent"]
    assert (parent["job"]["namespace"], parent["job"]["name"]) == ("airflow", "dag/task")
    assert parent["run"]["runId"] == "01994e9c-0000-7000-8000-000000000001"


def test_a_collector_gets_the_login_of_its_url() -> None:
    headers: list[Mapping[str, str]] = []
    with gateway(headers=headers) as (url, _):
        assert played(url.replace("//", "//me:s%403cret@"), REPORT) == [REPORT]
    logins = {b64decode(found["Authorization"].removeprefix("Basic ")) for found in headers}
    assert logins == {b"me:s@3cret"} and len(headers) == 2


def test_what_a_collector_refuses_is_a_warning() -> None:
    heard: list[BatchReport] = []
    with (
        gateway(answer=401) as (url, _),
        monitored(
            Monitoring.of(None, None, None, lineage=url), heard.append, RUN, flow=lambda: FLOW
        ) as listen,
    ):
        while not (heard and heard[-1].warning):
            listen(REPORT)
            time.sleep(0.01)
    assert heard[-1].warning == "lineage does not reach 127.0.0.1: HTTPError 401"


def test_a_dead_collector_is_a_warning_of_the_next_batch_without_secrets(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("WARNING")
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "hidden-key")
    address, heard = free_address(), list[BatchReport]()
    watched = Monitoring.of(None, None, None, lineage=f"http://user:hidden@{address}/hidden")
    with monitored(watched, heard.append, RUN, flow=lambda: FLOW) as listen:
        while not (heard and heard[-1].warning):
            listen(REPORT)
            time.sleep(0.01)
    assert heard[-1].warning == "lineage does not reach 127.0.0.1: ConnectionError"
    assert "hidden" not in f"{watched} {caplog.text}"


def test_a_slow_collector_slows_no_batch_and_gets_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lineage, "TIMEOUT_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        begun = time.monotonic()
        played(url, *[REPORT] * 100)
        assert 0.4 < time.monotonic() - begun < 4
        for _ in range(20):
            played(url, REPORT)
        assert time.monotonic() - begun < 6, "of this one it is known that it takes long"


def test_a_file_that_cannot_be_written_and_a_flow_that_is_not_known(tmp_path: Path) -> None:
    def broken() -> Flow:
        raise KafkaError("no topic matches")

    heard: list[BatchReport] = []
    watched = Monitoring.of(None, None, None, lineage=f"{tmp_path}/none/events.jsonl")
    with monitored(watched, heard.append, RUN, flow=broken) as listen:
        listen(REPORT)
        while not heard[-1].warning or "reach" not in heard[-1].warning:
            listen(REPORT)
            time.sleep(0.01)
    warnings = [str(report.warning) for report in heard if report.warning]
    assert (
        warnings[-1]
        == f"lineage does not reach {tmp_path}/none/events.jsonl: [Errno 2] No such file or directory"
    )
    assert len(warnings) == 1 or warnings[0] == "lineage has no datasets: no topic matches"


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lineage, "find_spec", lambda name: None)
    command = r"run\.lineage needs openlineage-python: pip install 'changelog-bridge\[lineage\]'"
    with pytest.raises(DefinitionError, match=command):
        played("events.jsonl")


@pytest.mark.parametrize(
    "text", ["events.jsonl", "/var/log/e", "https://u:p@host/base", "http://marquez:5000"]
)
def test_targets(text: str) -> None:
    assert check_lineage(text) == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("s3://b/hidden", r"not legal; legal values are a file, and the URL of a collector that begins with"),
        ("http://", r"not legal: a URL needs a host"),
        ("http://h:1?key=hidden", r"not legal: a collector gets no query; give its key in the environment"),
    ],
)
def test_other_targets_are_refused_without_being_shown(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as refused:
        check_lineage(text)
    assert "hidden" not in str(refused.value)
