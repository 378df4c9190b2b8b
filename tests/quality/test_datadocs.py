"""Data Docs are built by Great Expectations, offline, and keep earlier runs."""

from __future__ import annotations

import socket
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from bridge.errors import BridgeError
from bridge.quality.datadocs import data_docs
from bridge.quality.suite import Suite, load
from bridge.quality.verdict import Outcome, Verdict
from tests.quality.test_suite import ORDERS
from tests.quality.verdicts import PASSED


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("something wants to reach the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def verdict_of(suite: Suite) -> Verdict:
    """One expectation failed, one raised, with an example key."""
    outcomes = [
        Outcome(e.expectation_type, "", (), True, "all 9 values pass", "", 0, 0.0) for e in suite.expectations
    ]
    outcomes[0] = replace(
        outcomes[0], success=False, observed="1 key twice", example_keys=({"order_id": "secret-key"},)
    )
    outcomes[4] = replace(outcomes[4], success=False, reason="column 'status' is gone", unexpected_count=None)
    return replace(PASSED, success=False, expectations=tuple(outcomes))


def test_a_site_with_every_run(tmp_path: Path) -> None:
    suite = load(ORDERS)
    verdict = verdict_of(suite)
    index = data_docs(tmp_path / "docs", suite, verdict)
    later = replace(
        verdict,
        started_at=verdict.started_at + timedelta(hours=1),
        subject=replace(verdict.subject, run="run-8"),
    )
    data_docs(tmp_path / "docs", suite, later)
    pages = sorted((tmp_path / "docs" / "validations").rglob("*.html"))
    assert [page.relative_to(tmp_path / "docs" / "validations").parts[:2] for page in pages] == [
        ("orders", "run-7"),
        ("orders", "run-8"),
    ]
    text = pages[0].read_text(encoding="utf-8")
    assert pages[0].name == "lake-orders-version-1042.html" and "1 key twice" in text
    assert "secret-key" not in "".join(p.read_text("utf-8") for p in (tmp_path / "docs").rglob("*.*ml"))
    assert index.read_text(encoding="utf-8").count("run-8") > 0
    assert len(load(ORDERS)) == len(suite)  # the context it leaves behind changes nothing


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    suite = load(ORDERS)
    with pytest.raises(BridgeError, match="file: Data Docs cannot be written: "):
        data_docs(tmp_path / "file", suite, verdict_of(suite))
