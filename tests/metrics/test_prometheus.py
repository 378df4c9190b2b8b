"""Metrics are shown at an address, in a file and through a push gateway; no failure there reaches the pipeline."""

from __future__ import annotations

import re
import socket
import threading
import time
import urllib.request
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from prometheus_client import pushadd_to_gateway
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from bridge.errors import DefinitionError
from bridge.metrics import prometheus
from bridge.metrics.prometheus import exporting, parsed, shown
from bridge.metrics.reports import BatchReport, ignore
from tests.metrics.odd_servers import garbled

REPORT = BatchReport(
    "orders", "ingest", 4, topic="t", records_in=7, bytes_in=70, inserted=2, pending_records=5, seconds=0.2,
    reader="consumer", engine="driver (2 of 9 files)", committed_ms=2000, read_ms=1500,
    newest_record_ms=1000, oldest_record_ms=500,
)  # fmt: skip


def free_address() -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{taken.getsockname()[1]}"


def scraped(address: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Samples by name and labels, those of the pipeline left out; parsed as OpenMetrics."""
    asked = urllib.request.Request(
        f"http://{address}/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"}
    )
    with urllib.request.urlopen(asked, timeout=10) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))  # type: ignore[no-untyped-call]
    own = {"pipeline", "verb", "topic"}
    return {
        (s.name, frozenset((k, v) for k, v in s.labels.items() if k not in own)): s.value
        for family in families
        for s in family.samples
    }


def warnings_of(target: str, reports: int = 1) -> list[str | None]:
    heard: list[BatchReport] = []
    with exporting(target, heard.append) as listen:
        for _ in range(reports):
            listen(REPORT)
    return [report.warning for report in heard]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("9464", ("127.0.0.1", 9464)),
        (":9464", ("127.0.0.1", 9464)),
        ("0.0.0.0:80", ("0.0.0.0", 80)),
        ("[::1]:80", ("::1", 80)),
        ("a/b.prom", "a/b.prom"),
        ("https://gateway:9091", "https://gateway:9091"),
    ],
)
def test_targets(text: str, place: object) -> None:
    assert parsed(text) == place


@pytest.mark.parametrize(
    "text", ["", "localhost", "foo..bar:9464", "h:\u00b2", "a.txt", "h:99999", "h:-1", "ftp://x"]
)
def test_other_targets_are_refused(text: str) -> None:
    with pytest.raises(
        ValueError, match=r"not legal; legal values are an address such as 127\.0\.0\.1:9464, a file"
    ):
        parsed(text)


def test_without_a_target_the_listener_is_the_one_given() -> None:
    with exporting(None, ignore) as listen:
        assert listen is ignore


def test_an_address_answers_until_the_last_run_has_ended() -> None:
    address = free_address()
    with exporting(address, ignore):
        for _ in range(2):
            with exporting(address, ignore) as listen:
                listen(REPORT)
        found = scraped(address)
        assert found["bridge_numRecordsIn_total", frozenset()] == 14
        assert found["bridge_currentFetchEventTimeLag", frozenset()] == 500
        assert found["bridge_currentEmitEventTimeLag", frozenset()] == 1000
        assert found["bridge_pendingRecords", frozenset()] == 5
        assert found["bridge_changes_total", frozenset({("kind", "+I")})] == 4
        way = frozenset({("reader", "consumer"), ("engine", "driver")})
        assert found["bridge_batches_total", way] == 2
        assert found["bridge_freshness_seconds_bucket", frozenset({("le", "2.5")})] == 2
        assert not [name for name, _ in found if "Out" in name]
    with pytest.raises(OSError, match="refused"):
        scraped(address)


@pytest.mark.parametrize("reports", [300, pytest.param(200_000, marks=pytest.mark.slow)])
def test_threads_report_while_others_scrape(reports: int) -> None:
    """The longer form takes a minute."""
    address, threads = free_address(), 4
    seen: list[float] = []
    with exporting(address, ignore) as listen:

        def report(number: int) -> None:
            for _ in range(reports):
                listen(replace(REPORT, pipeline=f"orders{number % 2}"))

        with ThreadPoolExecutor(threads) as pool:
            done = [pool.submit(report, number) for number in range(threads)]
            while not all(each.done() for each in done):
                seen.append(scraped(address).get(("bridge_commits_total", frozenset()), 0.0))
        for each in done:
            each.result()
        assert scraped(address)["bridge_commits_total", frozenset()] == threads // 2 * reports
    assert seen == sorted(seen)


def test_a_taken_address_is_a_warning_of_the_first_batch() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert warnings_of(address, 2) == [
            f"metrics are not shown at {address}: [Errno 98] Address already in use",
            None,
        ]


def test_a_file_is_replaced_after_each_batch(tmp_path: Path) -> None:
    file = tmp_path / "orders.prom"
    with exporting(str(file), ignore) as listen:
        listen(REPORT)
        text = file.read_text()
    assert 'bridge_numRecordsIn_total{pipeline="orders",topic="t",verb="ingest"} 7.0' in text
    assert file.exists() and list(tmp_path.iterdir()) == [file]


def test_a_file_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    (warning,) = warnings_of(f"{tmp_path}/none/orders.prom")
    assert warning is not None and warning.startswith(
        f"metrics are not shown at {tmp_path}/none/orders.prom: "
    )


def first_warning(target: str) -> str:
    """The first warning of batches that are reported until one has it."""
    heard: list[str] = []
    with exporting(target, lambda report: heard.append(report.warning or "")) as listen:
        wait_until(lambda: listen(REPORT) or bool(heard[-1]))
    return heard[-1]


def wait_until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@contextmanager
def gateway(
    *,
    answer: int = 202,
    first: Sequence[int] = (),
    location: str | None = None,
    headers: list[Mapping[str, str]] | None = None,
) -> Iterator[tuple[str, list[str]]]:
    """An HTTP server that takes what a push gateway takes; it adds the headers of each request to `headers`. It answers
    the `first` requests otherwise, and may name another `location`."""
    bodies: list[str] = []
    answers = iter(first)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(
                f"{self.path}\n{self.rfile.read(int(self.headers['Content-Length'])).decode(errors='replace')}"
            )
            if headers is not None:
                headers.append(dict(self.headers))
            self.send_response(next(answers, answer))
            if location is not None:
                self.send_header("Location", location)
            self.end_headers()

        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", bodies
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_gateway_gets_the_last_values_at_the_end() -> None:
    with gateway() as (url, bodies):
        assert warnings_of(url) == [None]
    assert bodies[-1].startswith("/metrics/job/changelog_bridge/pipeline/orders/verb/ingest\n")
    assert 'bridge_numBytesIn_total{pipeline="orders",topic="t",verb="ingest"} 70.0' in bodies[-1]


def test_at_a_gateway_each_run_has_a_group_of_its_own() -> None:
    """A push replaces all metrics of its group, also those of other processes."""
    back = replace(REPORT, pipeline="back", verb="publish")
    with gateway() as (url, bodies), exporting(url, ignore) as listen:
        listen(REPORT)
        listen(back)
    groups = dict(body.split("\n", 1) for body in bodies)
    assert sorted(groups) == [
        f"/metrics/job/changelog_bridge/pipeline/{run}" for run in ("back/verb/publish", "orders/verb/ingest")
    ]
    for path, text in groups.items():
        assert set(re.findall(r'pipeline="(\w+)"', text)) == {path.split("/")[5]}


def test_a_gateway_that_refuses_one_run_gets_the_others(caplog: pytest.LogCaptureFixture) -> None:
    with gateway(first=[400]) as (url, bodies), exporting(url, ignore) as listen:
        listen(REPORT)
        listen(replace(REPORT, pipeline="back"))
    assert len(bodies) == 2 and caplog.messages == [f"metrics are not shown at {url}: HTTPError 400"]


def test_a_gateway_that_is_not_there_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "PUSH_SECONDS", 0.01)
    url, heard = f"http://{free_address()}", []
    said = threading.Event()

    def hear(report: BatchReport) -> None:
        heard.append(report.warning)
        if report.warning:
            said.set()

    with exporting(url, hear) as listen:
        while not said.wait(0.05):
            listen(REPORT)
    assert f"metrics are not shown at {url}: " in str(heard[-1])


@pytest.mark.parametrize("target", ["foo..bar:9464", "http://{garbled}", "http://me:s3cret@h:port"])
def test_what_answers_no_http_and_what_no_host_has_stop_nothing(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prometheus, "PUSH_SECONDS", 0.01)
    with garbled() as address:
        warning = first_warning(target.format(garbled=address))
    assert warning.startswith("metrics are not shown at ") and "s3cret" not in warning


def test_a_gateway_that_answers_nonsense_once_gets_the_next_push(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "PUSH_SECONDS", 0.01)
    with garbled() as address, gateway() as (url, bodies):
        targets = iter([f"http://{address}"])
        monkeypatch.setattr(
            "prometheus_client.pushadd_to_gateway",
            lambda at, *rest, **more: pushadd_to_gateway(next(targets, at), *rest, **more),
        )
        with exporting(url, ignore) as listen:
            listen(REPORT)
            wait_until(lambda: bool(bodies))


def test_a_gateway_gets_the_login_of_its_url() -> None:
    headers: list[Mapping[str, str]] = []
    with gateway(headers=headers) as (url, _):
        assert warnings_of(url.replace("//", "//me:s%403cret@")) == [None]
    assert {b64decode(found["Authorization"].removeprefix("Basic ")) for found in headers} == {b"me:s@3cret"}


def test_a_password_in_a_url_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "PUSH_SECONDS", 0.01)
    address, said = free_address(), threading.Event()
    warnings: list[str] = []

    def hear(report: BatchReport) -> None:
        if report.warning:
            warnings.append(report.warning)
            said.set()

    with exporting(f"http://me:secret@{address}", hear) as listen:
        while not said.wait(0.05):
            listen(REPORT)
    assert f"metrics are not shown at http://{address}: " in warnings[0] and "secret" not in warnings[0]
    assert shown(f"https://me:secret@{address}/x") == f"https://{address}/x"


def test_two_warnings_are_one(tmp_path: Path) -> None:
    heard: list[BatchReport] = []
    with exporting(f"{tmp_path}/none/a.prom", heard.append) as listen:
        listen(BatchReport("orders", "ingest", 0, warning="a key is bad"))
    assert str(heard[0].warning).startswith("a key is bad; metrics are not shown at")


def test_without_the_library_the_error_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "find_spec", lambda name: None)
    command = r"run\.metrics needs prometheus-client: pip install 'changelog-bridge\[metrics\]'"
    with pytest.raises(DefinitionError, match=command), exporting("9464", ignore):
        pass
