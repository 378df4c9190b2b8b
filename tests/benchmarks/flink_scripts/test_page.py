"""The page of a run."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.flink_scripts.cases import Case, Insert
from benchmarks.flink_scripts.page import Drawn, rendered
from benchmarks.flink_scripts.systems import Outcome

CASE = Case("q1", "nexmark", (Insert("q1", "a INT", "SELECT 1"),))


def test_a_difference_is_a_row() -> None:
    known = replace(CASE, name="q2", differs="ties | in another order")
    outcomes = [Outcome(CASE, "equal", rows=1200), Outcome(known, "different", "only Flink: 1 rows")]
    drawn = [Drawn(7, [Outcome(replace(CASE, name="d7_0", family="drawn"), "failed", "a reason")])]
    text = rendered(
        outcomes, drawn, command="make flink-scripts", events=100, commit="`1a2b3c4d5e6f`", date="today"
    )
    assert "| `q2` | different | ties \\| in another order |" in text
    assert "| `d7_0` | failed | a reason |" in text
    assert "| `q1` | equal | 1,200 |" in text
    assert (
        "Of Nexmark's 2 queries 1 are equal over 100 events" in text and "seed 7: 1 scripts: 1 failed" in text
    )
    assert "Measured by `make flink-scripts` at `1a2b3c4d5e6f` on\ntoday." in text
    assert [o.is_expected for o in [*outcomes, *drawn[0].outcomes]] == [True, True, False]
