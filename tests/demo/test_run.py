"""The demo empties only folders that a demo created, and its threads end with what it promises."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.console import Screen
from bridge.demo import pageviews, run
from bridge.demo.run import prepare_folder
from bridge.errors import DefinitionError
from bridge.metrics.documents import dashboard
from tests.metrics.prometheus_server import asked, needed, scraping

NOT_IN_THE_DEMO = {"by_spark"}
"""Panels of what the demo does not do: a batch that only Spark can read or merge."""


def test_only_a_folder_of_the_demo_is_emptied(tmp_path: Path) -> None:
    made, others = tmp_path / "demo", tmp_path / "lake"
    prepare_folder(made)
    (made / "lake").mkdir()
    prepare_folder(made)
    assert not (made / "lake").exists()
    others.mkdir()
    prepare_folder(others)
    (others / ".bridge-demo").unlink()
    (others / "orders").mkdir()
    with pytest.raises(
        DefinitionError, match=r"lake: the demo deletes everything in its folder, .* \(it has no file"
    ):
        prepare_folder(others)
    assert (others / "orders").is_dir()


@pytest.mark.slow
@pytest.mark.parametrize("demo", [run.run, pageviews.run], ids=["orders", "page views"])
def test_its_threads_verify_what_they_wrote(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    demo: Callable[[SparkSession, Path, Screen, threading.Event], None],
) -> None:
    """For about a minute, while they write, ingest, publish and check at the same time."""
    monkeypatch.chdir(Path(__file__).parents[2])
    demo(spark, tmp_path / "demo", Screen(quiet=True), threading.Event())
    assert "equal" in capsys.readouterr().out


class LastingScreen(Screen):
    """Shows the result for some seconds, while the demo's metrics are there, and notes what it printed."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self.shown, self.seen = threading.Event(), threading.Event()

    def info(self, text: str) -> None:
        self.said.append(text)

    def table(self, title: str, rows: Mapping[str, str]) -> None:
        self.shown.set()
        self.seen.wait(60)


@pytest.mark.slow
@needed
def test_prometheus_has_data_for_each_panel(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a demo that runs; each panel at some moment of it."""
    monkeypatch.chdir(Path(__file__).parents[2])
    screen = LastingScreen()
    with ThreadPoolExecutor(1) as pool:
        demo = pool.submit(run.run, spark, tmp_path / "demo", screen, threading.Event())
        while not (found := re.search(r"metrics: http://(\S+)/metrics", "\n".join(screen.said))):
            assert not demo.done(), demo.exception()
            time.sleep(0.1)
        missing = {panel["title"]: panel["targets"][0]["expr"] for panel in dashboard()["panels"]}
        with scraping(tmp_path, found[1]) as server:
            deadline = time.monotonic() + 240
            while missing and time.monotonic() < deadline and not demo.done():
                missing = {title: expr for title, expr in missing.items() if not asked(server, expr)}
                if screen.shown.is_set():
                    time.sleep(3)
                    missing = {title: expr for title, expr in missing.items() if not asked(server, expr)}
                    break
                time.sleep(0.2)
            screen.seen.set()
        demo.result()
    assert missing.keys() <= NOT_IN_THE_DEMO
