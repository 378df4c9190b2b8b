"""The document says what a run has found, and has no heading for what it has not."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from benchmarks.base_tables import Laid
from benchmarks.found import Found
from benchmarks.goals import at_least, void
from benchmarks.performance import Report, rendered, written
from benchmarks.plots import Plot
from benchmarks.topics import Load
from tests.benchmarks.made_up import Ground

_GOALS = [
    at_least("publish", "records/s", 100.0, 36.0, 0.35),
    at_least("ingest", "records/s", 100.0, 399.0, 4.0),
    void(at_least("wrong", "records/s", 1.0, 1.0, 1.0), "torn"),
]
_FOUND = Found(_GOALS, minutes={"batches": 7.25, "start": 1.0})
_REPORT = Report("make bench", "`0123456789ab`", "2026-11-23", "2 cores", 600.0, 0.1, _FOUND, [])


def _headings(text: str) -> list[str]:
    return re.findall("^## (.*)$", text, re.MULTILINE)


def test_goals_alone() -> None:
    text = rendered(_REPORT, "plots")
    assert _headings(text) == ["Goals"]
    assert "| publish | 100 | 36 | records/s | 0.36 | ≥ 0.35 |  | met |" in text
    assert "| ingest | 100 | 399 | records/s | 3.99 | ≥ 4 |  | missed |" in text
    assert "| wrong | 1 | 1 | records/s | – | ≥ 1 |  | VOID: torn |" in text
    assert "| commit | `0123456789ab` |" in text
    assert "| commits of `bridge/` since | `git rev-list --count 0123456789ab..HEAD -- bridge` |" in text
    assert "| duration | 10 min: batches 7.2, start 1.0 |" in text
    assert "more than 10 % of the job's own CPU" in text
    assert "in any order" not in text


def test_jobs_and_curves_where_there_are_some(tmp_path: Path) -> None:
    ground = Ground()
    load = Load.random(100, 10, 1)
    entries = [
        ground.bridge(f"rows {laid.value}", ground.topic(laid.value, load), laid=laid) for laid in Laid
    ]
    plots = {"curve": Plot("A curve", "x", "y", {"bridge": [(1.0, 2.0), (2.0, 3.0)]})}
    path = tmp_path / "found.md"
    written(replace(_REPORT, entries=entries, found=Found(_GOALS, plots)), path)
    text = path.read_text(encoding="utf-8")
    assert _headings(text) == ["Goals", "Curves", "All jobs"]
    assert "![A curve](found/curve.svg)" in text and (tmp_path / "found" / "curve.svg").is_file()
    assert "| rows unordered | bridge |" in text
    assert '"unordered" or "clustered by key" have 40 files' in text
