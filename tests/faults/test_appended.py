"""The checker of tables without a key finds each fault in handwritten histories, and nothing in a correct one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.faults.appended import AppendHistory, judge_appends
from tests.faults.checker import FAULTS
from tests.faults.history import Acked, Commit, Record, Row


def row(seq: int) -> Row:
    return seq, "plain", 7


def good() -> AppendHistory:
    """Three batches of two partitions: an aborted record, a tombstone, a key's row twice, a batch without rows."""
    return AppendHistory(
        ledger=[Acked(1, 3, 0, 1, "aborted")],
        topic=[
            Record(0, 0, 1, row(1)),
            Record(0, 3, 1, row(1)),
            Record(1, 0, 2, row(2)),
            Record(1, 1, 2, None),
            Record(1, 2, 2, row(6)),
        ],
        commits=[
            Commit(1, 0, 0, {0: 1, 1: 1}),
            Commit(2, 1, 1, {0: 3, 1: 2}),
            Commit(4, 2, 2, {0: 4, 1: 3}),
        ],
        added={1: [(0, 0), (1, 0)], 4: [(0, 3), (1, 2)]},
        table=[((0, 0), 1, row(1)), ((1, 0), 2, row(2)), ((0, 3), 1, row(1)), ((1, 2), 2, row(6))],
    )


def moved(history: AppendHistory) -> None:
    """A row of the first batch is in the version of the last one."""
    history.added = {1: [(0, 0)], 4: [(0, 3), (1, 2), (1, 0)]}


def beyond(history: AppendHistory) -> None:
    history.topic.append(Record(0, 9, 1, row(9)))
    history.table.append(((0, 9), 1, row(9)))


BREAKS: dict[str, tuple[str, Callable[[AppendHistory], object]]] = {
    "a row is there twice": ("duplicated", lambda h: h.table.append(((0, 0), 1, row(1)))),
    "a row is missing": ("lost", lambda h: h.table.pop()),
    "a row of no record": ("ghosts", lambda h: h.table.append(((0, 2), 1, row(3)))),
    "a row of a tombstone": ("ghosts", lambda h: h.table.append(((1, 1), 2, row(5)))),
    "a row of another partition": ("ghosts", lambda h: h.table.append(((2, 0), 2, row(5)))),
    "a row of an aborted record": ("aborted read", lambda h: h.table.append(((0, 1), 1, row(3)))),
    "another row": ("table differs from topic", lambda h: h.table.__setitem__(0, ((0, 0), 1, row(2)))),
    "a row of another key": (
        "table differs from topic",
        lambda h: h.table.__setitem__(0, ((0, 0), 2, row(1))),
    ),
    "a row beyond the progress": ("table differs from topic", beyond),
    "a batch is there twice": ("batches not once", lambda h: h.commits.insert(1, h.commits[0])),
    "a batch is missing": ("batches not once", lambda h: h.commits.pop(1)),
    "a commit without Delta's txn": (
        "batches not once",
        lambda h: h.commits.__setitem__(1, Commit(2, -1, 1, {0: 3, 1: 2})),
    ),
    "a row is in another version": ("batches not once", moved),
    "a commit has a row twice": ("batches not once", lambda h: h.added[1].append((0, 0))),
}


@pytest.mark.parametrize("drained", [True, False])
def test_a_good_history_is_clean(drained: bool) -> None:
    verdict = judge_appends(good(), drained=drained)
    assert verdict.clean and set(verdict.counts) == set(FAULTS), verdict.examples
    assert (verdict.records_in, verdict.records_out, verdict.commits) == (5, 4, 3)


@pytest.mark.parametrize("name", BREAKS)
def test_each_fault_is_found(name: str) -> None:
    fault, break_it = BREAKS[name]
    history = good()
    break_it(history)
    verdict = judge_appends(history, drained=False)
    assert {each for each, count in verdict.counts.items() if count} == {fault}, verdict


def test_what_is_not_read_yet_is_lost_once_all_is_drained() -> None:
    history = good()
    history.topic.append(Record(1, 3, 2, row(9)))
    assert judge_appends(history, drained=False).clean
    assert judge_appends(history, drained=True).counts["lost"] == 1
    assert judge_appends(AppendHistory(topic=history.topic), drained=True).counts["lost"] == 5
