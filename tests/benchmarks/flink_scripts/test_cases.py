"""The scripts that run beside Flink: which of them the bridge accepts, without running any."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.flink_scripts.cases import Case, bridge_script, flink_statements, load_cases, sink_topic
from benchmarks.flink_scripts.grammar import drawn_cases
from benchmarks.flink_scripts.manuals import manual_cases
from benchmarks.flink_scripts.sources import SOURCES, Printed, placed
from benchmarks.flink_scripts.systems import refusal
from bridge.expressions.signatures import SIGNATURES

CASES = [*load_cases(), *manual_cases()]
PAGE = Path(__file__).parents[3] / "docs" / "sql-conformance.md"
TOPICS = {name: f"t-{name}" for name in SOURCES}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_accepted_unless_it_is_known_to_be_refused(case: Case) -> None:
    assert bool(refusal(case)) == bool(case.refused), refusal(case)


def test_they_are_many() -> None:
    """Of Nexmark's queries as many as issue 41 asks for, and as the page counts."""
    counts = Counter(case.family for case in CASES if not case.refused)
    found = re.search(r"Of Nexmark's 24 queries (\d+) are equal", PAGE.read_text())
    assert found and counts["nexmark"] == int(found[1]) >= 17
    assert counts.total() - counts["manuals"] >= 95
    sinks = [sink_topic("t", insert) for case in CASES for insert in case.inserts]
    assert len(set(sinks)) == len(sinks)


def test_the_scripts_of_both_systems_differ_in_options_only() -> None:
    (case,) = (case for case in CASES if case.name == "q3")
    own = bridge_script([case], "b", "h:1", TOPICS, is_last=False)
    theirs = flink_statements(case, "f", "h:1", TOPICS)
    assert "CREATE VIEW person" in own and any(s.startswith("CREATE VIEW person") for s in theirs)
    assert "scan.bounded.mode" not in own and "scan.bounded.mode" in theirs[1]
    assert case.inserts[0].statement in own and case.inserts[0].statement == theirs[-1]


def test_inserts_of_a_set_are_one_statement() -> None:
    (case,) = (case for case in CASES if case.name == "statement_set")
    assert flink_statements(case, "f", "h:1", TOPICS)[-1].startswith(
        "EXECUTE STATEMENT SET BEGIN INSERT INTO"
    )
    assert bridge_script([case], "b", "h:1", TOPICS, is_last=False).count("; INSERT INTO") == 2


def test_only_the_places_of_a_printed_table_are_replaced() -> None:
    text = "CREATE TABLE t (a INT) WITH (\n  'topic'   = 'theirs', 'properties.bootstrap.servers' = '...'\n)"
    assert placed(text, "ours", "h:1", {}) == (
        "CREATE TABLE t (a INT) WITH (\n  'topic'   = 'ours', 'properties.bootstrap.servers' = 'h:1'\n)"
    )
    assert "WITH ('scan.startup.mode' = 'earliest-offset'," in Printed("t", "t", text).ddl("ours", "h:1", {})
    latest = text.replace("'topic'", "'scan.startup.mode' = 'latest-offset', 'topic'")
    assert "earliest-offset" not in Printed("t", "t", latest).ddl("ours", "h:1", {})


@pytest.mark.parametrize("seed", range(2))
def test_drawn_scripts_are_accepted(seed: int) -> None:
    cases = drawn_cases(seed, 30)
    assert cases == drawn_cases(seed, 30) and cases != drawn_cases(seed + 1, 30)
    refused = {"; ".join(case.statements): why for case in cases if (why := refusal(case))}
    assert not refused


def test_drawn_scripts_have_each_part_of_the_grammar() -> None:
    text = " ".join(
        statement
        for seed in range(8)
        for case in drawn_cases(seed, 20)
        for statement in [*case.views, *case.statements]
    )
    for part in ("FULL JOIN", "RIGHT JOIN", "UNION ALL", "CREATE VIEW", "STATEMENT SET", "TABLE hits"):
        assert part in text, part
    names = {signature.name for signature in SIGNATURES}
    assert sum(f"CAST({name}(" in text for name in names) > 50
