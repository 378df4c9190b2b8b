"""A collector gets metrics and traces as the official protobufs read them; none of its failures stops a run."""

from __future__ import annotations

import re
import threading
import time
from base64 import b64decode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from bridge.errors import DefinitionError, KafkaError
from bridge.metrics import BatchReport, RunName, Step, ignore, otlp
from bridge.metrics.monitoring import Monitoring, monitored
from bridge.metrics.otlp import check_url, tracing
from tests.metrics.test_prometheus import free_address, gateway

WROTE = BatchReport(
    "orders", "ingest", 4, topic="t", version=9, table="id-1", records_in=7, inserted=2, seconds=0.5,
    committed_ms=10_000, oldest_record_ms=8_000, engine="driver",
    steps=(Step("read", 9_500, 0.2), Step("merge", 9_700, 0.3)),
)  # fmt: skip
SENT = BatchReport(
    "back", "publish", 2, topic="u", version=9, first_version=8, table="id-1", records_out=3, seconds=0.1,
    committed_ms=11_000,
)  # fmt: skip

WHAT = ("traces", "metrics", "traces and metrics")


class Collector:
    """What a collector was sent."""

    def __init__(self, pause: float) -> None:
        self.pause, self.spans = pause, list[Span]()
        self.metrics: dict[str, Any] = {}
        self.resources: list[dict[str, str]] = []

    def take(self, path: str, body: bytes) -> None:
        time.sleep(self.pause)
        if path == "/v1/traces":
            traces = ExportTraceServiceRequest.FromString(body)
            self.spans += [s for r in traces.resource_spans for scope in r.scope_spans for s in scope.spans]
            return
        assert path == "/v1/metrics"
        for of in ExportMetricsServiceRequest.FromString(body).resource_metrics:
            self.resources.append({a.key: a.value.string_value for a in of.resource.attributes})
            self.metrics |= {metric.name: metric for scope in of.scope_metrics for metric in scope.metrics}

    def span(self, name: str) -> Span:
        (found,) = (span for span in self.spans if span.name == name)
        return found


@contextmanager
def collector(pause: float = 0.0, refused: str = "") -> Iterator[tuple[str, Collector]]:
    taken = Collector(pause)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            taken.take(self.path, self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(404 if self.path == refused else 200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", taken
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_published_version_is_linked_to_the_batch_that_wrote_it() -> None:
    with collector() as (url, taken):
        for run, report in (
            (RunName("orders", "ingest", "t"), WROTE),
            (RunName("back", "publish", "u"), SENT),
        ):
            with monitored(Monitoring.of(None, None, None, url), ignore, run) as listen:
                listen(report)
    wrote, sent = taken.span("ingest batch"), taken.span("publish batch")
    assert [link.span_id for link in sent.links][-1] == wrote.span_id and len(sent.links) == 2
    assert sent.links[-1].trace_id == wrote.trace_id != sent.trace_id
    read, merge = taken.span("read"), taken.span("merge")
    assert {read.parent_span_id, merge.parent_span_id} == {wrote.span_id}
    assert read.trace_id == merge.trace_id == wrote.trace_id and read.span_id != merge.span_id
    assert (merge.start_time_unix_nano, merge.end_time_unix_nano) == (9_700_000_000, 10_000_000_000)
    assert (wrote.start_time_unix_nano, wrote.end_time_unix_nano) == (9_500_000_000, 10_000_000_000)
    said = {a.key: a.value for a in wrote.attributes}
    assert said["bridge.pipeline"].string_value == "orders" and said["bridge.records_in"].int_value == 7
    assert said["bridge.engine"].string_value == "driver"
    assert taken.span("ingest run").status.code == 1


def test_metrics_are_those_of_the_registry() -> None:
    with (
        collector() as (url, taken),
        tracing(url, ignore, RunName("orders", "ingest", "t"), "host/7") as listen,
    ):
        listen(WROTE)
        listen(WROTE)
    records, lease = taken.metrics["bridge.numRecordsIn"], taken.metrics["bridge.lease_info"]
    (point,) = records.sum.data_points
    assert point.as_int == 14 and records.sum.is_monotonic and records.unit == "{records}"
    assert {a.key: a.value.string_value for a in point.attributes} == {
        "pipeline": "orders", "verb": "ingest", "topic": "t",
    }  # fmt: skip
    assert lease.gauge.data_points[0].as_int == 1 and lease.unit == "1"
    (seconds,) = taken.metrics["bridge.batch_seconds"].histogram.data_points
    assert (seconds.count, seconds.sum, seconds.min, seconds.max) == (2, 1.0, 0.5, 0.5)
    assert sum(seconds.bucket_counts) == 2 and taken.metrics["bridge.batch_seconds"].unit == "s"
    assert taken.resources[-1]["service.name"] == "changelog-bridge"


def test_the_error_of_a_run_is_the_status_of_its_span_and_no_text() -> None:
    with (
        collector() as (url, taken),
        pytest.raises(KafkaError),
        tracing(url, ignore, RunName("orders", "ingest", "t")),
    ):
        raise KafkaError("id 7 is gone")
    failed = taken.span("ingest run").status
    assert (failed.code, failed.message) == (2, "KafkaError")


def test_a_collector_that_is_not_there_is_a_warning_and_its_spans_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(otlp, "EVERY_SECONDS", 0.01)
    monkeypatch.setattr(otlp, "TIMEOUT_SECONDS", 0.1)
    url, heard, said = f"http://{free_address()}", [], threading.Event()

    def hear(report: BatchReport) -> None:
        heard.append(report.warning)
        if report.warning:
            said.set()

    with tracing(url, hear) as listen:
        while not said.wait(0.02):
            listen(WROTE)
    assert heard[-1] in [f"metrics are not shown at {url}: the collector does not take {x}" for x in WHAT]


def test_a_slow_collector_slows_no_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "EVERY_SECONDS", 0.01)
    with collector(pause=0.5) as (url, taken), tracing(url, ignore) as listen:
        time.sleep(0.1)  # it waits for the collector by now
        began = time.monotonic()
        for _ in range(20):
            listen(WROTE)
        assert time.monotonic() - began < 0.4
    assert len([span for span in taken.spans if span.name == "ingest batch"]) == 20


def test_a_collector_gets_the_login_of_its_url() -> None:
    headers: list[Mapping[str, str]] = []
    with (
        gateway(answer=200, headers=headers) as (url, _),
        tracing(url.replace("//", "//me:s%403cret@"), ignore, RunName("orders", "ingest")) as listen,
    ):
        listen(WROTE)
    logins = {b64decode(found["Authorization"].removeprefix("Basic ")) for found in headers}
    assert logins == {b"me:s@3cret"} and len(headers) > 1


def test_a_collector_without_traces_gets_metrics(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    with (
        collector(refused="/v1/traces") as (url, taken),
        tracing(url, ignore, RunName("orders", "ingest")) as listen,
    ):
        listen(WROTE)
    assert taken.metrics["bridge.numRecordsIn"].sum.data_points[0].as_int == 7
    told = [record.getMessage() for record in caplog.records if record.name == "bridge.metrics"]
    assert told == [f"metrics are not shown at {url}: the collector does not take traces"]
    # Commands that ran before in this process may have the bridge's own warnings on standard error.
    assert not re.search("export|/v1/", capsys.readouterr().err), "the library prints the path of the URL"


@pytest.mark.parametrize("parent", ["", ".of.a.missing.package"])
def test_without_the_sdk_it_is_refused_with_the_command(parent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python raises where a package above it is missing, too."""
    monkeypatch.setattr(otlp, "find_spec", lambda _: find_spec(f"nowhere{parent}"))
    with (
        pytest.raises(DefinitionError, match=r"run\.otlp needs .*: pip install 'changelog-bridge\[otel\]'"),
        tracing("http://127.0.0.1:4318", ignore),
    ):
        pass


def test_urls() -> None:
    assert check_url("http://collector:4318/") == "http://collector:4318"
    with pytest.raises(ValueError, match="legal values are URLs of a collector such as"):
        check_url("collector:4318")
