"""The pages, the dashboard and the alerts are those of the registry, and Prometheus takes them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from bridge.metrics import BatchReport, PartitionRead, RunName, Step, ignore, now_ms
from bridge.metrics.documents import DASHBOARD, PAGE, dashboard, rows
from bridge.metrics.prometheus import exporting
from bridge.metrics.registry import METRICS, Kind
from bridge.metrics.steps import step, watched
from tests.metrics.prometheus_server import asked, needed, scraping
from tests.metrics.test_prometheus import free_address

ALERTS = Path("docs/alerts.md")
RULES, RULES_TEST = Path("conf/observability/rules.yaml"), Path("tests/metrics/alerts_test.yaml")


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    return list(group["rules"])


def test_the_page_and_the_dashboard_are_written_from_the_registry() -> None:
    assert [line for line in PAGE.read_text().splitlines() if line.startswith("| `bridge_")] == rows()
    assert json.loads(DASHBOARD.read_text()) == dashboard()


def test_alerts_are_about_metrics_that_there_are() -> None:
    suffixes = {Kind.COUNTER: [""], Kind.GAUGE: [""], Kind.HISTOGRAM: ["_bucket", "_sum", "_count"]}
    known = {f"{metric.exposed}{suffix}" for metric in METRICS for suffix in suffixes[metric.kind]}
    for rule in rules():
        assert set(re.findall(r"bridge_\w+", rule["expr"])) <= known, rule["alert"]


def test_each_alert_has_a_runbook_and_a_test() -> None:
    tests = RULES_TEST.read_text()
    for rule in rules():
        assert f"\n### {rule['alert']}\n" in ALERTS.read_text()
        assert rule["annotations"]["runbook"] == f"docs/alerts.md#{rule['alert'].lower()}"
        assert f'alertname="{rule["alert"]}"' in tests


@pytest.mark.skipif(shutil.which("promtool") is None, reason="Debian's package prometheus is not installed")
def test_alerts_fire_and_are_silent_where_they_should(tmp_path: Path) -> None:
    shutil.copy(RULES, tmp_path / "rules.yaml")
    shutil.copy(RULES_TEST, tmp_path / "test.yaml")
    done = subprocess.run(
        ["promtool", "test", "rules", "test.yaml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@needed
def test_prometheus_has_data_for_each_panel(tmp_path: Path) -> None:
    address, name = free_address(), RunName("orders", "ingest", "t")
    with (
        scraping(tmp_path, address) as server,
        exporting(address, ignore, name, "host/7") as listen,
        watched(name, 0),
        step("merge", "merging"),
    ):
        missing, deadline = ["all"], time.monotonic() + 30
        while missing and time.monotonic() < deadline:
            for verb in ("ingest", "publish", "insert", "check", "verify"):
                listen(_report(verb))
            time.sleep(0.2)
            missing = [
                p["title"] for p in dashboard()["panels"] if not asked(server, p["targets"][0]["expr"])
            ]
    assert missing == []


def _report(verb: str) -> BatchReport:
    """A report with a value for each metric."""
    now = now_ms()
    report = BatchReport(
        "orders", verb, 4, topic="t", version=4, pending_records=3, oldest_record_ms=now - 900,
        newest_record_ms=now - 500, read_ms=now - 300, committed_ms=now, event_time_lag_seconds=1.0,
        watermark_ms=now - 5000, engine="spark (the table is partitioned)", reader="consumer", send_seconds=0.1,
        seconds=0.4, steps=(Step("read", now, 0.1),), partitions=(PartitionRead("t", 0, 1, 5, 9),), log_commits=3,
        expectations={"met": 3},
    )  # fmt: skip
    return replace(report, records_in=7, bytes_in=70, records_out=5, bytes_out=50, inserted=1)
