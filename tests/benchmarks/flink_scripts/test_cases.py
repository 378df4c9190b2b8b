"""The scripts that run beside Flink: which of them the bridge accepts, without running any."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.flink_scripts.cases import Case, bridge_script, flink_statements, load_cases
from benchmarks.flink_scripts.grammar import drawn_cases
from benchmarks.flink_scripts.sources import SOURCES
from benchmarks.flink_scripts.systems import refusal

CASES = load_cases()
TOPICS = {name: f"t-{name}" for name in SOURCES}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_accepted_unless_it_is_known_to_be_refused(case: Case) -> None:
    assert bool(refusal(case)) == bool(case.refused), refusal(case)


def test_they_are_many() -> None:
    """Of Nexmark's queries as many as issue 41 asks for, with SPLIT_INDEX."""
    counts = Counter(case.family for case in CASES if not case.refused)
    assert counts["nexmark"] >= 16 and counts.total() >= 60
    assert len({insert.sink for case in CASES for insert in case.inserts}) == sum(
        len(c.inserts) for c in CASES
    )


def test_the_scripts_of_both_systems_differ_in_options_only() -> None:
    (case,) = (case for case in CASES if case.name == "q3")
    own = bridge_script([case], "b", "h:1", TOPICS, is_last=False)
    theirs = flink_statements(case, "f", "h:1", TOPICS)
    assert "CREATE VIEW person" in own and any(s.startswith("CREATE VIEW person") for s in theirs)
    assert "scan.bounded.mode" not in own and "scan.bounded.mode" in theirs[1]
    assert case.inserts[0].statement in own and case.inserts[0].statement == theirs[-1]


@pytest.mark.parametrize("seed", range(2))
def test_drawn_scripts_are_accepted(seed: int) -> None:
    cases = drawn_cases(seed, 30)
    assert cases == drawn_cases(seed, 30) and cases != drawn_cases(seed + 1, 30)
    refused = {case.inserts[0].statement: why for case in cases if (why := refusal(case))}
    assert not refused
