"""The checker of combined values finds each fault in handwritten ones, and nothing in correct ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.faults.history import Commit, Record, Row
from tests.faults.sums import CombinedHistory, judge_sums


def row(seq: int, writer: str = "plain") -> Row:
    return seq, writer, 7


def good() -> CombinedHistory:
    """Three values of a key are combined, and two of another one, of which a tombstone takes one."""
    return CombinedHistory(
        topic=[
            Record(0, 0, 1, row(1)),
            Record(0, 1, 1, row(2, "committed")),
            Record(0, 3, 1, row(4)),
            Record(1, 0, 2, row(3)),
            Record(1, 1, 2, None),
            Record(1, 2, 2, row(6)),
        ],
        commits=[Commit(1, 0, 0, {0: 2, 1: 1}), Commit(2, 1, 1, {0: 4, 1: 3})],
        table=[
            (1, (7, "plain", 7, 397, 856, (1, 2, 4))),
            (2, (6, "plain", 7, 91, 91, (1, 6))),
        ],
    )


def changed(place: int, value: object) -> Callable[[CombinedHistory], None]:
    def change(history: CombinedHistory) -> None:
        values: Any = [*history.table[0][1]]
        values[place] = value
        history.table[0] = (1, tuple(values))

    return change


BREAKS: dict[str, tuple[str, Callable[[CombinedHistory], object]]] = {
    "a record counts twice": ("table differs from topic", changed(0, 9)),
    "a record does not count": ("table differs from topic", changed(0, 5)),
    "a later value is the first": ("table differs from topic", changed(1, "committed")),
    "a value is not the least": ("table differs from topic", changed(3, 702)),
    "a value is not the greatest": ("table differs from topic", changed(4, 702)),
    "an item is not there": ("table differs from topic", changed(5, (1, 2))),
    "a row is missing": ("table differs from topic", lambda h: h.table.pop()),
    "a row is there twice": ("duplicated", lambda h: h.table.append(h.table[0])),
    "a batch twice": ("batches not once", lambda h: h.commits.append(Commit(3, 1, 1, {0: 4, 1: 3}))),
}


@pytest.mark.parametrize("drained", [True, False])
def test_a_correct_history(drained: bool) -> None:
    assert not judge_sums(good(), drained=drained).examples


@pytest.mark.parametrize("what", BREAKS)
def test_each_fault_is_found(what: str) -> None:
    fault, break_it = BREAKS[what]
    history = good()
    break_it(history)
    assert judge_sums(history, drained=True).counts[fault]


def test_records_after_the_last_commit_count_at_the_end_only() -> None:
    history = good()
    history.topic.append(Record(0, 5, 3, row(13)))
    assert judge_sums(history, drained=False).clean
    assert judge_sums(history, drained=True).counts["table differs from topic"] == 1
