"""The judge of scripts and jobs finds what is wrong in their topics, and nothing in what is right."""

from __future__ import annotations

import pytest

from tests.faults.checker import Verdict, judge
from tests.faults.derived import JOB, SCRIPT, Sent, final, judge_output, outputs
from tests.faults.history import Commit, History, Record, UserCommit, changes, states

ODD, GROUPS = outputs("f1", SCRIPT)
(TABLE,) = outputs("f1", JOB)
STATES = [
    {1: (1, "plain", 7), 2: (2, "committed", 7)},
    {1: (4, "plain", 7), 2: (3, "plain", 7)},
    {2: (5, "plain", 7)},
]
RIGHT = [
    Sent(1, (1, "PLAIN", 7), (0, 0)),
    Sent(2, (2, "COMMITTED", 7), (1, 0)),
    Sent(1, (4, "PLAIN", 7), (0, 1)),
    Sent(2, None, (1, 1)),
    Sent(1, None, (0, 2)),
    Sent(2, (5, "PLAIN", 7), (1, 2)),
]


def found(sent: list[Sent], *, exactly_once: bool = True) -> dict[str, int]:
    verdict = Verdict()
    judge_output(ODD, STATES, sent, verdict, exactly_once=exactly_once)
    return {fault: count for fault, count in verdict.counts.items() if count}


def test_what_is_right_is_clean() -> None:
    assert found(RIGHT) == {} and final(ODD, STATES[-1], RIGHT)
    assert found([*RIGHT[:2], *RIGHT[4:]]) == {}, "a state that no run has seen"
    assert GROUPS.of(STATES[1]) == {"plain": (2, 7)}
    assert TABLE.of(STATES[1]) == STATES[1]


@pytest.mark.parametrize(
    ("sent", "faults"),
    [
        (RIGHT[:5], {"lost": 1}),
        ([*RIGHT[:3], *RIGHT[4:4], RIGHT[3], RIGHT[5]], {"ghosts": 1}),
        ([*RIGHT[:2], RIGHT[3], RIGHT[4]], {"lost": 1}),
        ([RIGHT[0], RIGHT[1], RIGHT[4]], {"stale": 1}),
        ([*RIGHT[:3], RIGHT[2], *RIGHT[3:]], {"duplicated": 1}),
        ([RIGHT[2], RIGHT[0], RIGHT[4], RIGHT[1], *RIGHT[5:]], {"reordered": 1}),
        ([*RIGHT[:2], Sent(1, (1, "plain", 7), (0, 1)), *RIGHT[2:]], {"topic differs from table": 1}),
        ([*RIGHT[:5], Sent(2, (5, "PLAIN", 7), (2, 0))], {"reordered": 1}),
        ([*RIGHT, Sent(9, (9, "PLAIN", 7), (0, 3))], {"ghosts": 1, "topic differs from table": 1}),
    ],
)
def test_each_fault_is_found(sent: list[Sent], faults: dict[str, int]) -> None:
    assert found(sent) == faults


def test_at_least_once_may_repeat() -> None:
    assert found([*RIGHT[:3], RIGHT[0], RIGHT[2], *RIGHT[3:]], exactly_once=False) == {}
    assert found([*RIGHT, RIGHT[0]], exactly_once=False) == {"ghosts": 1}


def test_what_a_user_writes_and_takes_back_is_part_of_the_history() -> None:
    """A RESTORE takes back rows and offsets, no batch numbers; the ingest applies the records once more."""
    topic = [Record(0, n, n % 2, (n, "plain", 7)) for n in range(8)]
    commits = [
        Commit(1, 0, 0, {0: 4}),
        Commit(3, 1, 1, {0: 6}),
        Commit(5, 2, 2, {0: 8}),
    ]
    users = [UserCommit(2), UserCommit(4, restored=2)]
    at = [*states(topic, commits, users)]
    assert at[0] == {0: (2, "plain", 7), 1: (3, "plain", 7)}
    assert at[1] == at[0] and at[2] == {0: (4, "plain", 7), 1: (5, "user", 7)} | {1: (5, "plain", 7)}
    assert at[3] == at[1] and at[4] == {0: (6, "plain", 7), 1: (7, "plain", 7)}
    history = History(topic_in=topic, commits=commits, user_commits=users, table=[*at[-1].items()])
    expected, _ = changes(history)
    assert [row and row[0] for row in expected[0]] == [2, 4, 2, 6]
    out = [(key, row) for key, rows in expected.items() for row in rows]
    history.topic_out = [Record(key, n, key, row) for n, (key, row) in enumerate(out)]
    assert judge(history, drained=True).clean
    assert judge(history, drained=True, exactly_once=False).clean
    assert judge(history, drained=True, exactly_once=False, grown=True).clean
    again = Commit(5, 1, 1, {0: 8})
    history.commits = [*commits[:2], again]
    assert judge(history, drained=True).counts["batches not once"]
    history.commits, history.user_commits = commits, []
    assert judge(history, drained=True).counts["duplicated"]
    written = [UserCommit(9)]
    assert [*states([Record(0, 0, 1, (5, "plain", 7))], [Commit(1, 0, 0, {0: 1})], written)][-1] == {
        1: (5, "user", 7)
    }
