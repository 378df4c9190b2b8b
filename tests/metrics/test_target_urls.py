"""URLs that cannot work are refused without being shown; what is shown of others has no login.

A warning is of the next batch; without one it is logged at the end, once in ten minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bridge.errors import KafkaError
from bridge.metrics import BatchReport, RunName, ignore, otlp, target_urls
from bridge.metrics.alerts import check_alert
from bridge.metrics.lineage import check_lineage
from bridge.metrics.monitoring import Monitoring, monitored
from bridge.metrics.otlp import check_url
from bridge.metrics.prometheus import parsed
from bridge.metrics.target_urls import host_of, split_login, without_login
from tests.metrics.test_prometheus import free_address

CHECKS = [check_alert, check_lineage, check_url, parsed]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize(
    "url",
    [
        "http://",
        "https://:9091/hidden",
        "https://host/hidden token",
        "https://host/hidden\ttoken",
        "https://host/hidden\u00e9",
        "https://user:hid@den@host:port/",
        "https://host:99999/hidden",
        "https://user:hidden/x@host",
        "https://foo..hidden/x",
        "https://[::1/hidden",
        "https://" + "hidden" * 20,
    ],
)
def test_urls_that_cannot_work_are_refused_without_being_shown(
    check: Callable[[str], object], url: str
) -> None:
    with pytest.raises(ValueError, match=r"^not legal") as refused:
        check(url)
    assert "hid" not in str(refused.value) and refused.value.__context__ is None


@pytest.mark.parametrize("check", CHECKS)
def test_urls_that_work(check: Callable[[str], object]) -> None:
    for url in ("http://h", "https://u:p%40x@h:1/base", "http://[::1]:9091", "http://10.0.0.1:80/a-b_c"):
        assert check(url) == url


def test_a_login_is_taken_out_of_a_url() -> None:
    assert split_login("https://me:s%403%2Ft:x@h:1/a?b=c") == ("https://h:1/a?b=c", ("me", "s@3/t:x"))
    assert split_login("https://me@[::1]:1") == ("https://[::1]:1", ("me", ""))
    assert split_login("http://h/a@b") == ("http://h/a@b", None)


def test_what_is_shown_has_no_login() -> None:
    assert without_login("https://me:s@3cret@h:1/x") == "https://h:1/x"
    assert without_login("https://me:s/3cret@h:1/x") == "https://h:1/x"
    assert without_login("a@b.prom") == "a@b.prom"
    assert host_of("https://me:secret@h:x/token") == "h"
    assert host_of("https://[::1/token") == ""


def test_a_login_is_not_in_the_text_of_a_definition() -> None:
    url = "http://user:hidden@host"
    assert "hidden" not in repr(Monitoring.of(url, None, url, url, url))


RUN = RunName("orders", "ingest", "t")


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        (("http://{at}", None, None, None, None), "metrics are not shown at http://{at}: [Errno 111] "),
        (
            (None, "{folder}/none/e", None, None, None),
            "events are not written to {folder}/none/e: [Errno 2] ",
        ),
        ((None, None, "http://{at}/token", None, None), "the alert did not reach 127.0.0.1: [Errno 111] "),
        (
            (None, None, None, "http://{at}", None),
            "metrics are not shown at http://{at}: the collector does not ",
        ),
        ((None, None, None, None, "http://{at}"), "lineage does not reach 127.0.0.1: ConnectionError"),
    ],
)
def test_a_failure_after_the_last_batch_is_logged_once(
    targets: tuple[str | None, ...],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(otlp, "TIMEOUT_SECONDS", 0.1)
    monkeypatch.setattr(target_urls, "LOGGED", {})
    at = free_address()
    metrics, events, alert, collector, lineage = (
        target and target.format(at=at, folder=tmp_path) for target in targets
    )
    for _ in range(2):
        with (
            pytest.raises(KafkaError),
            monitored(Monitoring.of(metrics, events, alert, collector, lineage), ignore, RUN),
        ):
            raise KafkaError("no broker")
    (text,) = (record.getMessage() for record in caplog.records if record.name == "bridge.metrics")
    assert text.startswith(said.format(at=at, folder=tmp_path))


def test_a_warning_that_a_batch_has_is_not_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[BatchReport] = []
    with monitored(Monitoring(metrics=f"{tmp_path}/none/a.prom"), heard.append, RUN) as listen:
        listen(BatchReport("orders", "ingest", 1))
        (tmp_path / "none").mkdir()
    assert heard[0].warning and not caplog.records
