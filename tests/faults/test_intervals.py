"""The checker of histories finds each fault in handwritten ones, and nothing in a correct one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.faults.history import Acked, Commit, Record, Row
from tests.faults.intervals import IntervalHistory, judge_intervals


def row(seq: int) -> Row:
    return seq, "plain", 7


def good() -> IntervalHistory:
    """A late change splits a row, a deletion ends one, and another comes before the row that it would have ended."""
    return IntervalHistory(
        ledger=[Acked(1, 4, 0, 2, "aborted")],
        topic=[
            Record(0, 0, 1, row(1), order=1),
            Record(0, 1, 1, row(9), order=9),
            Record(0, 3, 1, row(5), order=5),
            Record(0, 4, 1, None, order=12),
            Record(1, 0, 2, None, order=7),
            Record(1, 1, 2, row(6), order=6),
        ],
        commits=[Commit(1, 0, 0, {0: 2, 1: 1}), Commit(2, 1, 1, {0: 5, 1: 2})],
        table=[(1, row(1), 1, 5), (1, row(5), 5, 9), (1, row(9), 9, 12), (2, row(6), 6, 7)],
    )


BREAKS: dict[str, tuple[str, Callable[[IntervalHistory], object]]] = {
    "a row is missing": ("lost", lambda h: h.table.pop()),
    "a row is there twice": ("duplicated", lambda h: h.table.append(h.table[0])),
    "a row that was not split": ("table differs from topic", lambda h: h.table.append((1, row(1), 1, 9))),
    "a row that did not end": ("table differs from topic", lambda h: h.table.append((2, row(6), 6, None))),
    "a row of an aborted record": ("aborted read", lambda h: h.table.append((1, row(4), 4, 5))),
    "a batch twice": ("batches not once", lambda h: h.commits.append(Commit(3, 1, 1, {0: 5, 1: 2}))),
}


@pytest.mark.parametrize("drained", [True, False])
def test_a_correct_history(drained: bool) -> None:
    assert judge_intervals(good(), drained=drained).clean


@pytest.mark.parametrize("what", BREAKS)
def test_each_fault_is_found(what: str) -> None:
    fault, break_it = BREAKS[what]
    history = good()
    break_it(history)
    assert judge_intervals(history, drained=True).counts[fault]


def test_records_after_the_last_commit_count_at_the_end_only() -> None:
    history = good()
    history.topic.append(Record(0, 5, 3, row(13), order=13))
    assert judge_intervals(history, drained=False).clean
    assert judge_intervals(history, drained=True).counts["lost"] == 1
