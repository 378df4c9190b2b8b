"""The demo empties only folders that a demo created, and its threads end with what it promises."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.console import Screen
from bridge.demo import pageviews, run
from bridge.demo.run import prepare_folder
from bridge.errors import DefinitionError


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
