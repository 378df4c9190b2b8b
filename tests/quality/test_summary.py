"""The sentences that every report begins with."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bridge.quality.summary import headline, in_order, scope, sentences, state_of, trend_note
from bridge.quality.verdict import ExpectationTrend, History, Outcome, Verdict
from tests.quality.verdicts import BROKEN, FAILED, HISTORY, MET, NOW, PASSED, RAISED, STARTED, at, verdict

CRITICAL = replace(FAILED, severity="critical")


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (PASSED, "Passed: the one expectation is met"),
        (verdict(MET, MET), "Passed: all 2 expectations are met"),
        (verdict(MET, FAILED), "Passed with warnings: 1 of 2 expectations is not met"),
        (verdict(replace(FAILED, severity="info")), "Passed with warnings: 1 of 1 expectation is not met"),
        (BROKEN, "Failed: 2 of 3 expectations are not met"),
    ],
)
def test_the_headline_counts(result: Verdict, expected: str) -> None:
    assert headline(result) == expected


@pytest.mark.parametrize(
    ("outcome", "state"), [(MET, "met"), (FAILED, "warned"), (CRITICAL, "failed"), (RAISED, "unknown")]
)
def test_states(outcome: Outcome, state: str) -> None:
    assert state_of(outcome) == state


def test_failures_come_first_the_most_severe_before_the_others() -> None:
    info = replace(FAILED, severity="info")
    assert in_order(verdict(MET, info, FAILED, CRITICAL)) == [CRITICAL, FAILED, info, MET]


def test_new_failures_are_counted() -> None:
    was_met = ExpectationTrend(((at(5), True),), at(5), None)
    one = History((), {FAILED.identity: was_met})
    both = History((), {FAILED.identity: was_met, RAISED.identity: was_met})
    assert "It was met in the last run." in sentences(verdict(MET, FAILED), one, NOW)
    assert "One of these was met in the last run." in sentences(BROKEN, one, NOW)
    assert "2 of these were met in the last run." in sentences(BROKEN, both, NOW)
    assert len(sentences(BROKEN, History(), NOW)) == 3


def test_trend_note_of_an_expectation_that_was_never_met() -> None:
    never = History((), {FAILED.identity: ExpectationTrend(((at(4), False), (at(5), False)), None, at(4))})
    assert trend_note(FAILED, never, STARTED) == (
        "Failing since 6 May 2024, 03:08 UTC (3 runs); never met in the stored results"
    )
    assert trend_note(FAILED, History(), STARTED) is None
    assert trend_note(MET, HISTORY, STARTED) is None


def test_the_lag_is_shown_where_it_is_known() -> None:
    assert scope(PASSED, replace(NOW, lag=None)) == ["Checked 1,234,567 rows."]
    assert scope(PASSED, replace(NOW, lag=0))[1] == "The table is up to date with its topic."
    assert scope(PASSED, replace(NOW, lag=1))[1] == "The table is 1 record behind its topic."
