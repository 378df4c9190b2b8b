"""A warning is of the next batch; without one it is logged at the end, once in ten minutes."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.errors import KafkaError
from bridge.metrics import BatchReport, RunName, error_texts, ignore, otlp
from bridge.metrics.monitoring import Monitoring, monitored
from tests.metrics.test_prometheus import free_address

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
    monkeypatch.setattr(error_texts, "LOGGED", {})
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
