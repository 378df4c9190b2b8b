"""Medians of rounds that had the machine to themselves."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from benchmarks.jobs import Ran
from benchmarks.results import Entry
from benchmarks.rounds import Rounds, compared, in_turn


def entry(seconds: float, *, foreign: float = 0.0, wrong: str | None = None) -> Entry:
    return Entry("x", "bridge", 1000, Ran(seconds, [], [], None, 10.0, foreign), wrong)


def test_a_round_that_others_disturbed_is_played_again_and_does_not_count() -> None:
    jobs = iter([entry(9.0, foreign=2.0), entry(2.0), entry(1.0), entry(4.0)])
    (rounds,) = in_turn(3, [lambda: next(jobs)])
    assert rounds is not None and len(rounds.entries) == 4 and rounds.wrong is None
    assert rounds.median(lambda e: e.rate) == 500.0
    assert rounds.spread(lambda e: e.ran.seconds if e.ran else 0.0) == "1–4"


def test_a_machine_that_others_use_all_the_time_voids_the_row() -> None:
    (rounds,) = in_turn(1, [lambda: entry(1.0, foreign=5.0)])
    assert rounds is not None and len(rounds.entries) == 2
    assert rounds.disturbed == "bridge: others used the machine in each round" and rounds.wrong is None
    row = compared("x", "s", lambda e: e.rate, 1.0, Rounds((entry(1.0),)), rounds)
    assert row.verdict == "VOID: bridge: others used the machine in each round" and row.ratio is None


def test_a_tolerance_lets_disturbed_rounds_count() -> None:
    assert entry(1.0, foreign=1.1).disturbed
    assert not replace(entry(1.0, foreign=1.1), tolerance=0.2).disturbed


def test_a_number_that_a_job_does_not_have_voids_the_row() -> None:
    rounds = Rounds((entry(1.0),))
    row = compared("x", "s", lambda e: e.number("p99"), 1.0, rounds, rounds)
    assert row.verdict == "VOID: too few batches"


def test_ways_take_turns_and_one_that_cannot_be_had_is_none() -> None:
    order: list[str] = []
    number = itertools.count(1)

    def way(name: str) -> Entry:
        order.append(name)
        return entry(float(next(number)))

    found = in_turn(2, [lambda: way("a"), lambda: way("b"), lambda: None])
    assert order == ["a", "b", "a", "b"] and found[2] is None


def test_one_wrong_table_voids_all_rounds() -> None:
    rounds = Rounds((entry(1.0), entry(2.0, wrong="3 rows are missing")))
    assert rounds.wrong == "bridge: 3 rows are missing"
    assert rounds.typical.ran is not None and rounds.typical.ran.seconds == pytest.approx(2.0)
