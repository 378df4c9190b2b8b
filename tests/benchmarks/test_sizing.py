"""What a record costs is the difference of two jobs; the page is made of that."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.jobs import Ran
from benchmarks.results import Entry
from benchmarks.sizing import Cost, cores, cost, page, shuffled


def entry(cpu: float, mb: float, wrong: str | None = None) -> Entry:
    return Entry("w", "bridge", 1, Ran(1.0, [], [(1.0, mb)], None, cpu, 0.0), wrong)


def test_starting_does_not_count_as_a_record() -> None:
    found = cost("x", (1_000_000, entry(30, 500), 10_000_000), (3_000_000, entry(50, 700), 50_000_000))
    assert found == Cost("x", start=20.0, cpu=10.0, shuffle_mb=20.0, peak_mb=700.0)
    assert cost("x", (1, entry(1, 1), 0), (2, entry(1, 1, "torn"), 0)).wrong == "torn"


def test_cores_of_the_busiest_hours() -> None:
    assert cores(21.6, 1000) == pytest.approx(1.0)


def test_shuffles_are_counted_by_stage(tmp_path: Path) -> None:
    name = "internal.metrics.shuffle.write.bytesWritten"
    stages = [[{"Name": name, "Value": 7}, {"Name": "x", "Value": 9}], [], [{"Name": name, "Value": "5"}]]
    lines = [
        json.dumps({"Event": "SparkListenerStageCompleted", "Stage Info": {"Accumulables": a}})
        for a in stages
    ]
    (tmp_path / "events").write_text("\n".join([*lines, json.dumps({"Event": "SparkListenerJobEnd"})]))
    assert shuffled(tmp_path / "events") == 12
    assert shuffled(None) == 0


def test_the_page() -> None:
    text = page(
        [Cost("ingest, spark", 20.0, 43.2, 12.0, 1500.0)],
        command="c",
        commit="`1`",
        date="2026-11-25",
        machine="m",
    )
    assert "| ingest, spark | 43.2 | 20 | 12 | 1,500 |" in text
    assert "| 1,000 million | 2 |" in text and "{" not in text.replace("{every: 1 d}", "")
