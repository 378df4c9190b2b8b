"""What is held, missed and void, and how it is shown."""

from __future__ import annotations

from io import StringIO
from math import nan
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks import goals
from benchmarks.found import Found
from benchmarks.goals import Outcome, at_least, at_most, exit_code, faster, void
from benchmarks.jobs import Commit, Ran
from benchmarks.performance import Report, rendered, written
from benchmarks.plots import Plot, svg
from benchmarks.results import Entry

HELD = at_least("fast", "records/s", 20_000, 90_000, 4.0)
MISSED = at_least("slow", "records/s", 20_000, 79_999, 4.0)
SHOWN = at_least("beside", "records/s", 3.0, 1.0, 0.0)


def shown(*outcomes: Outcome) -> str:
    console = Console(width=160, file=StringIO())
    console.print(goals.table(outcomes))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_a_goal_is_held_missed_or_none() -> None:
    assert (HELD.ratio, HELD.held, HELD.verdict, HELD.goal_text) == (4.5, True, "met", "≥ 4")
    assert (MISSED.held, MISSED.verdict) == (False, "missed")
    assert (SHOWN.held, SHOWN.verdict, SHOWN.goal_text) == (True, "", "")


def test_a_goal_just_missed_is_not_rounded_to_held() -> None:
    assert MISSED.ratio == 4.0 and not MISSED.held


def test_less_is_better_where_the_goal_says_at_most() -> None:
    flat, grows = at_most("m", "MB", 1000, 1200, 1.25), at_most("m", "MB", 1000, 1300, 1.25)
    assert (flat.held, grows.held, flat.goal_text) == (True, False, "≤ 1.25")


def test_without_a_goal_nothing_is_missed() -> None:
    rows = [compare("x", "s", 1.0, 3.0, 0.0) for compare in (at_least, at_most, faster)]
    assert [row.verdict for row in rows] == ["", "", ""] and exit_code(rows) == 0


def test_of_times_the_baseline_is_divided_by_the_bridge() -> None:
    quick, slow = faster("start", "s", 2.0, 2.5, 0.67), faster("start", "s", 2.0, 4.0, 0.67)
    assert (quick.ratio, quick.held, slow.ratio, slow.held) == (0.8, True, 0.5, False)


def test_a_disturbed_row_is_void_but_no_table_is_wrong() -> None:
    gone = void(HELD, None, "bridge: others used the machine in each round")
    assert gone.verdict == "VOID: bridge: others used the machine in each round"
    assert exit_code([HELD, gone]) == 1


def test_a_wrong_table_voids_its_row_whatever_the_speed() -> None:
    gone = void(HELD, "bridge: 1 rows are missing")
    assert gone.json() == {
        "name": "fast",
        "baseline": 20_000,
        "bridge": 90_000,
        "ratio": None,
        "goal": 4.0,
        "held": False,
    }
    assert gone.verdict == "VOID: bridge: 1 rows are missing"


def test_exit_codes() -> None:
    assert exit_code([HELD, SHOWN]) == 0
    assert exit_code([HELD, MISSED]) == 1
    assert exit_code([MISSED, void(HELD, "wrong")]) == 2


def test_the_table_shows_ratio_goal_and_verdict() -> None:
    text = shown(HELD, MISSED, SHOWN, void(HELD, "wrong"))
    lines = [line.split() for line in text.splitlines()]
    assert lines[1] == ["fast", "20,000", "90,000", "records/s", "4.50", "≥", "4", "met"]
    assert lines[2][-1] == "missed"
    assert lines[3] == ["beside", "3", "1", "records/s", "0.33"]
    assert lines[4] == ["fast", "20,000", "90,000", "records/s", "≥", "4", "VOID:", "wrong"]


def ran(seconds: float) -> Ran:
    batches = [Commit(n, 100.0 + n, "MERGE", {}, "spark") for n in range(3)]
    return Ran(seconds, batches, [(0.5, 900.0), (1.0, 1100.0)])


def entry(system: str, seconds: float = 10.0, wrong: str | None = None, failed: bool = False) -> Entry:
    return Entry("1,000 records", system, 1000, None if failed else ran(seconds), wrong)


@pytest.mark.parametrize(
    "other", [entry("bridge", wrong="2 rows are missing"), entry("bridge", wrong="ended", failed=True)]
)
def test_a_comparison_with_a_wrong_or_failed_job_is_void(other: Entry) -> None:
    found = Found()
    found.add(at_least, "x", "records/s", 1.0, 9.0, 4.0, of=(entry("recipe"), other))
    assert found.outcomes[0].verdict == f"VOID: bridge: {other.wrong}"


def test_the_document_has_every_row_job_and_plot_and_is_the_same_again(tmp_path: Path) -> None:
    plot = Plot(
        "Throughput", "records in a batch", "records/s", {"bridge": [(1e5, 2e4), (1e6, 9e4)]}, log_x=True
    )
    jobs = [entry("recipe", 40.0), entry("bridge")]
    found = Found([HELD, MISSED], {"batch-size": plot}, jobs)
    report = Report("make bench", "unknown", "2026-01-31", "2 cores", 600.0, 0.1, found, jobs)
    written(report, tmp_path / "performance.md")
    text = (tmp_path / "performance.md").read_text(encoding="utf-8")
    assert text == rendered(report, "performance")
    assert "| fast | 20,000 | 90,000 | records/s | 4.50 | ≥ 4 |  | met |" in text
    assert "| 1,000 records | recipe | 40.0 | 25 | 3 by spark | 1.00 | 1,100 | correct |" in text
    assert "![Throughput](performance/batch-size.svg)" in text
    assert (tmp_path / "performance" / "batch-size.svg").read_text(encoding="utf-8") == svg(plot)


def test_a_plot_has_a_line_per_series_and_escapes_its_words() -> None:
    drawn = svg(Plot("a < b", "x", "y", {"one": [(0, 0), (10, 5)], "two": [(1, 1), (2, nan)], "nothing": []}))
    assert drawn.count("<polyline") == 2 and "a &lt; b" in drawn and "nothing" not in drawn
    assert 'points="80.0,344.0 530.0,40.0"' in drawn


def test_a_plot_without_points_and_a_logarithm_of_nothing_are_errors() -> None:
    with pytest.raises(ValueError, match="plot 'empty' has no points"):
        svg(Plot("empty", "x", "y", {"one": []}))
    with pytest.raises(ValueError, match="a logarithmic axis cannot show 0"):
        svg(Plot("zero", "x", "y", {"one": [(0, 1)]}, log_x=True))
