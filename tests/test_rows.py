"""The fold of a changelog: by examples, and by laws over random histories."""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bridge.rows import Change, Interval, RowKind, compact, intervals, replay


def change(kind: str, key: int, value: int | None = None, *position: int) -> Change:
    return Change(RowKind(kind), key, None if value is None else {"v": value}, position)


def test_replay_adds_and_removes() -> None:
    table = replay([change("+I", 1, 10), change("+I", 2, 20), change("+U", 1, 11), change("-D", 2)])
    assert table == {1: {"v": 11}}


def test_replay_goes_on_from_a_table_and_leaves_it_alone() -> None:
    before: dict[Hashable, dict[str, int]] = {1: {"v": 10}}
    assert replay([change("-D", 1), change("+I", 3, 30)], before) == {3: {"v": 30}}
    assert before == {1: {"v": 10}}


def test_delete_of_an_unknown_key_is_nothing() -> None:
    assert replay([change("-D", 9), change("-U", 9)]) == {}


def test_an_update_that_moves_a_key_leaves_the_new_one() -> None:
    """UPDATE t SET id = 2 WHERE id = 1, as the change feed gives it: two keys, one version."""
    feed = [change("+U", 2, 10, 5), change("-U", 1, 10, 5)]
    assert {c.key: c.kind for c in compact(feed)} == {1: RowKind.UPDATE_BEFORE, 2: RowKind.UPDATE_AFTER}
    assert replay(compact(feed), {1: {"v": 10}}) == {2: {"v": 10}}


def test_swapped_keys_in_one_version() -> None:
    """1 -> 2 and 2 -> 1 in one UPDATE: each key has a retraction and an add at the same position."""
    feed = [change("+U", 2, 10, 5), change("-U", 2, 20, 5), change("+U", 1, 20, 5), change("-U", 1, 10, 5)]
    assert replay(compact(feed), {1: {"v": 10}, 2: {"v": 20}}) == {1: {"v": 20}, 2: {"v": 10}}


histories = st.lists(
    st.tuples(st.sampled_from(["+I", "-U", "+U", "-D"]), st.integers(0, 3), st.integers(0, 99)), max_size=30
).map(lambda steps: [change(kind, key, value, position) for position, (kind, key, value) in enumerate(steps)])


@given(histories)
def test_compacting_does_not_change_what_a_history_folds_to(history: list[Change]) -> None:
    assert replay(compact(history)) == replay(history)
    assert len({c.key for c in compact(history)}) == len(compact(history))


@given(histories, st.integers(0, 30))
def test_cuts_do_not_matter(history: list[Change], cut: int) -> None:
    assert replay(compact(history[cut:]), replay(compact(history[:cut]))) == replay(history)


@given(histories, st.integers(0, 30))
def test_replaying_a_tail_again_does_not_matter(history: list[Change], cut: int) -> None:
    assert replay(compact(history[cut:]), replay(history)) == replay(history)


late = st.lists(
    st.tuples(st.sampled_from(["+U", "-D"]), st.integers(0, 2), st.integers(0, 4), st.integers(0, 99)),
    max_size=20,
)


@given(late, st.randoms(use_true_random=False))
def test_by_a_sequence_the_order_of_batches_does_not_matter(
    steps: list[tuple[str, int, int, int]], dice: Random
) -> None:
    """A table that compares sequences, and remembers those of deletions, has the greatest change of each key after each
    batch, as long as changes of the same sequence keep their order."""
    history = [
        Change(RowKind(kind), key, {"v": value}, (position,), (sequence,))
        for position, (kind, key, sequence, value) in enumerate(steps)
    ]
    batches: dict[int, list[Change]] = {}
    first: dict[tuple[Hashable, Any], int] = {}
    for change in history:
        batch = max(dice.randrange(4), first.get((change.key, change.sequence), 0))
        first[change.key, change.sequence] = batch
        batches.setdefault(batch, []).append(change)
    newest: dict[Hashable, Change] = {}
    done: list[Change] = []
    for _, batch_changes in sorted(batches.items()):
        for change in compact(batch_changes):
            if change.key not in newest or change.sequence >= newest[change.key].sequence:
                newest[change.key] = change
        done += batch_changes
        assert replay(newest.values()) == replay(compact(done))


def at(kind: str, value: int | None, sequence: int) -> Change:
    return Change(RowKind(kind), 1, None if value is None else {"v": value}, (), (sequence,))


def test_a_history_has_a_row_from_each_change_to_the_next() -> None:
    history = [at("+U", 10, 1), at("+U", 30, 3), at("-D", None, 5), at("+I", 80, 8)]
    rows = [Interval({"v": 10}, 1, 3), Interval({"v": 30}, 3, 5), Interval({"v": 80}, 8)]
    assert intervals(history) == {1: rows}
    late = [at("+U", 20, 2), at("-D", None, 4), at("-D", None, 0), at("+U", 31, 3)]
    split = [Interval({"v": 10}, 1, 2), Interval({"v": 20}, 2, 3), Interval({"v": 31}, 3, 4), rows[2]]
    assert intervals([*history, *late]) == {1: split}
    assert intervals([at("+U", 1, 1), at("-D", None, 1)]) == {}


@given(late, st.randoms(use_true_random=False))
def test_the_rows_of_a_history_follow_each_other(
    steps: list[tuple[str, int, int, int]], dice: Random
) -> None:
    """They do not overlap, the last one is the row that the greatest sequence leaves, and changes of other sequences
    may come in any order."""
    history = [
        Change(RowKind(kind), key, {"v": value}, (position,), (sequence,))
        for position, (kind, key, sequence, value) in enumerate(steps)
    ]
    found = intervals(history)
    for rows in found.values():
        assert all(a.start < a.end <= b.start for a, b in itertools.pairwise(rows))
    current = {key: rows[-1].row for key, rows in found.items() if rows[-1].end is None}
    assert current == replay(compact(history))
    order = {sequence: dice.random() for sequence in range(5)}
    mixed = sorted(history, key=lambda c: order[c.sequence[0]])
    assert intervals(mixed) == intervals([*mixed, *history]) == found
