"""A webhook hears each cause once in ten minutes, without keys and values, and never stops or slows a run."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from base64 import b64decode
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bridge.errors import BadRecordError, KafkaError, QualityError
from bridge.metrics import BatchReport, RunName, alerts
from bridge.metrics.alerts import SCHEMA, body, check_alert
from bridge.metrics.monitoring import Monitoring, monitored
from tests.metrics.odd_servers import garbled
from tests.metrics.test_prometheus import free_address, gateway

RUN = RunName("orders", "ingest", "t")
LOST = BatchReport("orders", "ingest", 3, lost=2)


@pytest.fixture(autouse=True)
def _memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was told is remembered in a folder of this test's own."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def played(url: str, *reports: BatchReport, error: BaseException | None = None) -> list[BatchReport]:
    heard: list[BatchReport] = []
    with monitored(Monitoring.of(None, None, url), heard.append, RUN) as listen:
        for report in reports:
            listen(report)
        if error is not None:
            raise error
    return heard


def posted(*reports: BatchReport, error: BaseException | None = None, times: int = 1) -> list[dict[str, Any]]:
    with gateway() as (url, bodies):
        for _ in range(times):
            if error is None:
                played(f"{url}/hook", *reports)
            else:
                with pytest.raises(type(error)):
                    played(f"{url}/hook", *reports, error=error)
    return [json.loads(text.partition("\n")[2]) for text in bodies]


def test_bad_records_are_told_once() -> None:
    bad = BatchReport("orders", "ingest", 3, bad_records=2)
    (told,) = posted(bad, bad, BatchReport("orders", "ingest", 5), times=2)
    assert {k: v for k, v in told.items() if k != "at"} == {
        "schema": SCHEMA, "cause": "bad-records", "pipeline": "orders", "verb": "ingest", "topic": "t",
        "text": "batch 3: 2 records could not be applied",
    }  # fmt: skip


def test_a_run_that_died_is_told_by_the_next_one() -> None:
    with gateway() as (url, bodies):
        for died in ("`ingest` of 'orders' in process 7", None):
            with monitored(Monitoring.of(None, None, f"{url}/hook"), lambda _: None, RUN, died=died):
                pass
    (told,) = [json.loads(text.partition("\n")[2]) for text in bodies]
    assert told["cause"] == "failed"
    assert (
        told["text"]
        == "the run before this one was killed, crashed or stalled: `ingest` of 'orders' in process 7"
    )


def test_it_is_told_again_after_ten_minutes(tmp_path: Path) -> None:
    bad = BatchReport("orders", "ingest", 3, lost=2)
    with gateway() as (url, bodies):
        played(url, bad)
        (remembered,) = tmp_path.glob("changelog-bridge-alert-*")
        os.utime(remembered, (time.time() - 601, time.time() - 601))
        played(url, bad)
        played(url, bad)
    assert len(bodies) == 2


@pytest.mark.parametrize(
    ("error", "cause", "text"),
    [
        (KafkaError("no broker at b:9092"), "failed", "it failed: no broker at b:9092"),
        (BadRecordError("t-0 at offset 1, row (id: 7): bad"), "bad-records", "it failed: BadRecordError"),
        (QualityError("id 7 is twice"), "gate", "it failed: QualityError"),
        (ValueError("id 7"), "failed", "it failed: ValueError"),
    ],
)
def test_a_run_that_fails(error: Exception, cause: str, text: str) -> None:
    (told,) = posted(error=error)
    assert (told["cause"], told["text"]) == (cause, text)


def test_a_run_that_the_user_ends_is_no_failure() -> None:
    assert posted(error=KeyboardInterrupt()) == []


def test_nobody_there_is_a_warning_of_the_next_batch_that_names_no_path() -> None:
    heard = until_warned(f"http://{free_address()}/token")
    assert heard[-1].warning == "the alert did not reach 127.0.0.1: [Errno 111] Connection refused"


def test_what_answers_no_http_is_a_warning() -> None:
    with garbled() as address:
        heard = until_warned(f"http://{address}/token")
    assert heard[-1].warning == "the alert did not reach 127.0.0.1: BadStatusLine"


def test_a_webhook_gets_the_login_of_its_url() -> None:
    headers: list[Mapping[str, str]] = []
    with gateway(headers=headers) as (url, _):
        played(url.replace("//", "//me:s%403cret@"), BatchReport("orders", "ingest", 3, lost=2))
    (found,) = headers
    assert b64decode(found["Authorization"].removeprefix("Basic ")) == b"me:s@3cret"


def until_warned(url: str) -> list[BatchReport]:
    """The reports of batches, of which the first has bad records, until one has a warning."""
    bad, good = BatchReport("orders", "ingest", 3, bad_records=2), BatchReport("orders", "ingest", 4)
    heard: list[BatchReport] = []
    with monitored(Monitoring.of(None, None, url), heard.append, RUN) as listen:
        listen(bad)
        deadline = time.monotonic() + 20
        while not heard[-1].warning and time.monotonic() < deadline:
            time.sleep(0.01)
            listen(good)
    return heard


def test_a_webhook_that_refuses_is_asked_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alerts, "RETRY_SECONDS", 0.01)
    with gateway(first=[500]) as (url, bodies):
        assert [report.warning for report in played(url, LOST)] == [None]
    assert len(bodies) == 2


def test_what_did_not_arrive_is_told_by_the_next_run(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(alerts, "RETRY_SECONDS", 0.01)
    with gateway(first=[500, 503]) as (url, bodies):
        for _ in range(3):
            played(url, LOST)
    assert len(bodies) == 3, "two that were refused, one that arrived, none after that"
    assert caplog.messages == ["the alert did not reach 127.0.0.1: HTTPError 503"]


def test_of_runs_that_fail_at_once_one_tells() -> None:
    begin = threading.Barrier(4)
    with gateway() as (url, bodies), ThreadPoolExecutor(4) as pool:

        def run() -> None:
            begin.wait()
            played(url, LOST)

        for done in [pool.submit(run) for _ in range(4)]:
            done.result()
    assert len(bodies) == 1


def test_a_webhook_that_names_another_place_did_not_take_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What follows would be a GET without the alert."""
    monkeypatch.setattr(alerts, "RETRY_SECONDS", 0.01)
    with gateway(answer=302, location="/there") as (url, _):
        played(url, LOST)
    assert caplog.messages == ["the alert did not reach 127.0.0.1: it redirects"]


def test_a_slow_webhook_does_not_slow_the_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.metrics.alerts.TIMEOUT_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begun = time.monotonic()
        with monitored(
            Monitoring.of(None, None, f"http://127.0.0.1:{silent.getsockname()[1]}"), lambda _: None, RUN
        ) as listen:
            listen(BatchReport("orders", "ingest", 3, bad_records=2))
            assert time.monotonic() - begun < 0.4
        assert time.monotonic() - begun < 5


def test_slack_and_teams_have_messages_of_their_own() -> None:
    slack = body("https://hooks.slack.com/services/x", RUN, "failed", "it failed")
    assert slack == {"text": "*ingest orders*: it failed"}
    teams = body("https://a.webhook.office.com/x", RUN, "failed", "it failed")
    card = teams["attachments"][0]["content"]
    assert [part["text"] for part in card["body"]] == ["ingest orders", "it failed"]


def test_other_urls_are_refused_without_being_shown() -> None:
    with pytest.raises(
        ValueError, match=r"^not legal; legal values are URLs that begin with https:// or http://$"
    ):
        check_alert("hooks.slack.com/token")
