"""A run's metrics endpoint is asked for one pipeline's values."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.errors import DefinitionError
from bridge.metrics import BatchReport, RunName, ignore, prometheus
from bridge.metrics.prometheus import exporting
from bridge.pages.pipeline_line import scrape
from tests.metrics.test_prometheus import free_address


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
