"""What a client of Spark Connect says without a server: each refusal, its files, its errors."""

from __future__ import annotations

import os
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bridge.backend import Feature
from bridge.backend.connect import REFUSED, SERVERLESS, ClientFiles, ConnectBackend
from tests.backend.test_connect_server import ROOT, SUITES

COMPUTE = (
    "use a Spark that the bridge starts, spark-submit, or on Databricks compute with dedicated access mode"
)


@pytest.mark.parametrize("feature", list(REFUSED))
def test_each_refusal_says_why_or_names_the_compute_that_can(feature: Feature) -> None:
    reason = REFUSED[feature]
    assert "Spark Connect" in reason or "server" in reason or COMPUTE in reason


def test_files_are_those_of_the_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = ClientFiles()
    assert files.qualified("a b") == f"file:{tmp_path}/a b"
    assert (
        files.qualified("s3a://bucket/a") == "s3a://bucket/a" and files.local_path("s3a://bucket/a") is None
    )
    for name in ("a b", "a%20b?c#d"):
        for path in (name, f"{tmp_path}/{name}", f"file:{tmp_path}/{name}", f"file://{tmp_path}/{name}"):
            assert files.local_path(path) == tmp_path / name
    assert files.names("a b") == [] == files.names("s3a://bucket/a")
    os.mkdir("a b")
    (tmp_path / "a b" / "1").touch()
    assert files.names("a b") == ["1"]
    assert files.settings()("fs.s3a.access.key") is None


def test_the_page_shows_what_is_refused() -> None:
    page = (Path(__file__).parents[2] / "docs" / "spark-connect.md").read_text(encoding="utf-8")
    shown = page.partition("<!-- refused -->\n")[2].splitlines()[2:]
    assert shown == [f"| {feature.value} | {reason} |" for feature, reason in REFUSED.items()]


@pytest.mark.parametrize("suite", SUITES)
def test_the_suites_that_run_through_a_server_exist(suite: str) -> None:
    file, _, test = suite.partition("::")
    text = (ROOT / file).read_text(encoding="utf-8")
    assert f"def {test.partition('[')[0] or 'test_'}" in text


def test_a_session_may_be_collected_in_a_thread_of_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """That thread cannot wait for itself to end, as `close` does."""
    threads, ignored = ThreadPoolExecutor(1), list[object]()
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)

    class Session:
        class client:
            close = threads.shutdown

    session: Any = Session()
    ConnectBackend(session)
    gone = weakref.ref(session)
    held = [session]
    del session
    threads.submit(held.clear).result()
    assert gone() is None and ignored == []


def test_the_page_shows_what_serverless_compute_refuses() -> None:
    page = (Path(__file__).parents[2] / "docs" / "databricks.md").read_text(encoding="utf-8")
    shown = page.partition("<!-- serverless -->\n")[2].partition("\n\n")[0].splitlines()[2:]
    assert shown == [f"| {f.value} | {why} |" for f, why in SERVERLESS.items() if f not in REFUSED]
    assert set(SERVERLESS) == set(Feature)
