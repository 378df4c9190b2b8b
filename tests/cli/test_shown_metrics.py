"""What a command shows goes on from run to run: counters, at an endpoint and at a collector."""

from __future__ import annotations

import pytest

from bridge.cli.shown_metrics import metrics_shown
from bridge.console import Screen
from bridge.metrics import BatchReport, RunName, ignore
from bridge.metrics.monitoring import Monitoring, monitored
from tests.metrics.test_otlp import collector
from tests.metrics.test_prometheus import free_address, scraped


def test_counters_go_on_from_run_to_run(capsys: pytest.CaptureFixture[str]) -> None:
    address = free_address()
    with collector() as (url, taken):
        watched = Monitoring(metrics=address, otlp=url)
        with metrics_shown(Screen(), [watched, watched, Monitoring()]):
            for records in (10, 4, 6):
                with monitored(watched, ignore, RunName("orders", "ingest")) as listen:
                    listen(BatchReport("orders", "ingest", 1, records_in=records))
            found = scraped(address)["bridge_numRecordsIn_total", frozenset()]
    assert (found, taken.metrics["bridge.numRecordsIn"].sum.data_points[0].as_int) == (20, 20)
    assert capsys.readouterr().out == f"metrics: http://{address}/metrics\n"
