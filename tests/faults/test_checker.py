"""The checker finds each kind of fault in handwritten histories, and nothing in a correct one."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.checker import FAULTS, Verdict, judge
from tests.faults.history import Acked, Commit, History, Record, Row, UserCommit
from tests.faults.reading import Stall


def row(seq: int) -> Row:
    return seq, "plain", 7


def good() -> History:
    """Two keys in two partitions; three batches, one of which changes nothing; a burst that was aborted."""
    return History(
        ledger=[
            Acked(1, 1, 0, 0, "plain"),
            Acked(2, 2, 1, 0, "plain"),
            Acked(1, 3, 0, 1, "aborted"),
            Acked(1, 4, 0, 3, "plain"),
            Acked(2, 5, 1, 1, "plain", tombstone=True),
            Acked(2, 6, 1, 2, "committed"),
            Acked(1, 7, 0, 4, "unknown"),
            Acked(1, 8, 0, 5, "plain"),
        ],
        topic_in=[
            Record(0, 0, 1, row(1)),
            Record(0, 3, 1, row(4)),
            Record(0, 5, 1, row(8)),
            Record(1, 0, 2, row(2)),
            Record(1, 1, 2, None),
            Record(1, 2, 2, row(6)),
        ],
        commits=[
            Commit(1, 0, 0, {0: 1, 1: 1}),
            Commit(2, 1, 1, {0: 3, 1: 1}),
            Commit(4, 2, 2, {0: 4, 1: 2}),
            Commit(5, 3, 3, {0: 6, 1: 3}),
        ],
        table=[(1, row(8)), (2, row(6))],
        topic_out=[
            Record(0, 0, 1, row(1)),
            Record(0, 2, 1, row(4)),
            Record(0, 3, 1, row(8)),
            Record(1, 0, 2, row(2)),
            Record(1, 1, 2, None),
            Record(1, 3, 2, row(6)),
        ],
    )


def test_a_good_history_is_clean() -> None:
    verdict = judge(good(), drained=True)
    assert verdict.clean, verdict.examples
    assert set(verdict.counts) == set(FAULTS)


def test_what_is_under_way_is_not_lost() -> None:
    history = good()
    del history.topic_out[2], history.topic_out[-1]
    assert judge(history, drained=False).clean
    assert judge(history, drained=True).counts["lost"] == 2


def swap(history: History) -> None:
    out = history.topic_out
    out[1], out[2] = Record(0, 2, 1, row(8)), Record(0, 3, 1, row(4))


BREAKS: dict[str, tuple[str, Callable[[History], object]]] = {
    "an acked record is not in the topic": ("lost", lambda h: h.topic_in.pop(1)),
    "another record is in its place": ("lost", lambda h: h.ledger.append(Acked(3, 9, 0, 5, "plain"))),
    "an acked tombstone became a row": ("lost", lambda h: h.topic_in.__setitem__(4, Record(1, 1, 2, row(5)))),
    "an aborted record is read": ("aborted read", lambda h: h.topic_in.insert(1, Record(0, 1, 1, row(3)))),
    "an aborted record is in the table": ("aborted read", lambda h: h.table.__setitem__(0, (1, row(3)))),
    "an aborted record is sent": ("aborted read", lambda h: h.topic_out.insert(1, Record(0, 1, 1, row(3)))),
    "a change is missing in the topic out": ("lost", lambda h: h.topic_out.pop(1)),
    "a tombstone is missing": ("lost", lambda h: h.topic_out.pop(4)),
    "a change is sent twice": ("duplicated", lambda h: h.topic_out.insert(1, Record(0, 1, 1, row(1)))),
    "a tombstone is sent twice": ("duplicated", lambda h: h.topic_out.insert(5, Record(1, 2, 2, None))),
    "a range is sent twice": ("duplicated", lambda h: h.topic_out.extend(h.topic_out)),
    "a key goes back": ("reordered", swap),
    "a key is in two partitions": (
        "reordered",
        lambda h: h.topic_out.__setitem__(2, Record(1, 9, 1, row(8))),
    ),
    "a change that never was": (
        "topic differs from table",
        lambda h: h.topic_out.append(Record(0, 9, 1, (99, "plain", 7))),
    ),
    "the topic out ends elsewhere": ("stale", lambda h: h.topic_out.pop()),
    "a key of another table": ("topic differs from table", lambda h: h.table.append((4, row(1)))),
    "a ghost is in the topic out": ("ghosts", lambda h: h.topic_out.append(Record(1, 9, 3, row(1)))),
    "a bad record is in the topic, and not kept": ("quarantine differs", lambda h: h.bad.append((0, 2))),
    "a good record is kept aside": ("quarantine differs", lambda h: h.quarantine.append((0, 0))),
    "a bad record is kept twice": (
        "quarantine differs",
        lambda h: h.bad.append((0, 2)) or h.quarantine.extend([(0, 2)] * 2),  # type: ignore[func-returns-value]
    ),
    "a quarantined record deletes a row": (
        "table differs from topic",
        lambda h: h.bad.append((0, 2)) or h.quarantine.append((0, 2)) or h.table.pop(0),  # type: ignore[func-returns-value]
    ),
    "a quarantined record is in the table": (
        "table differs from topic",
        lambda h: h.bad.append((0, 5)) or h.quarantine.append((0, 5)) or h.topic_in.pop(2),  # type: ignore[func-returns-value]
    ),
    "an acked bad record is not in the topic": ("lost", lambda h: h.ledger.append(Acked(1, 9, 0, 2, "bad"))),
    "a key is in the table twice": ("duplicated", lambda h: h.table.append((1, row(8)))),
    "a row of the table is old": ("table differs from topic", lambda h: h.table.__setitem__(0, (1, row(4)))),
    "a row of the table is missing": ("table differs from topic", lambda h: h.table.pop()),
    "a ghost is in the table": ("table differs from topic", lambda h: h.table.append((3, row(1)))),
    "a batch is there twice": (
        "batches not once",
        lambda h: h.commits.insert(2, Commit(3, 1, 1, {0: 3, 1: 1})),
    ),
    "a batch is missing": ("batches not once", lambda h: h.commits.pop(1)),
    "offsets go back": (
        "batches not once",
        lambda h: h.commits.__setitem__(2, Commit(4, 2, 2, {0: 2, 1: 2})),
    ),
    "a partition is forgotten": (
        "batches not once",
        lambda h: h.commits.__setitem__(2, Commit(4, 2, 2, {0: 4})),
    ),
    "a commit without Delta's txn": (
        "batches not once",
        lambda h: h.commits.__setitem__(3, Commit(5, -1, 3, {0: 6, 1: 3})),
    ),
}


@pytest.mark.parametrize("name", BREAKS)
def test_each_fault_is_found(name: str) -> None:
    fault, break_it = BREAKS[name]
    history = good()
    break_it(history)
    verdict = judge(history, drained=True)
    assert verdict.counts[fault], verdict
    assert any(example.startswith(f"{fault}: ") for example in verdict.examples)


def again(*seqs: int | None, drained: bool = True) -> Verdict:
    """Key 2 of `good`, whose changes are 2, None, 6, sent at-least-once."""
    history = good()
    del history.topic_out[3:]
    rows = [None if seq is None else row(seq) for seq in seqs]
    history.topic_out += [Record(1, n, 2, r) for n, r in enumerate(rows)]
    return judge(history, drained=drained, exactly_once=False)


@pytest.mark.parametrize(
    ("seqs", "faults"),
    [
        pytest.param((2, None, 6), set(), id="once"),
        pytest.param((2, None, 2, None, 6), set(), id="again from the start"),
        pytest.param((2, None, 6, None, 6), set(), id="again from the middle"),
        pytest.param((2, 2, None, None, 6, 6), set(), id="each twice"),
        pytest.param((2, None, 6, 2), {"stale"}, id="a zombie's value is the last"),
        pytest.param((2, None, 6, None), {"stale"}, id="a zombie's tombstone is the last"),
        pytest.param((2, 6), {"reordered"}, id="one is passed over"),
        pytest.param((2, 6, 2, None, 6), {"reordered"}, id="one is passed over at first"),
        pytest.param((2, None), {"lost", "stale"}, id="the last one is missing"),
        pytest.param((2, None, 5, 6), {"topic differs from table"}, id="one that never was"),
    ],
)
def test_at_least_once(seqs: tuple[int | None, ...], faults: set[str]) -> None:
    verdict = again(*seqs)
    assert {name for name, count in verdict.counts.items() if count} == faults, verdict
    assert again(2, drained=False).clean


def grown() -> History:
    """Partition 2 was added: it has key 1 from its last change on."""
    history = good()
    history.topic_in[2] = Record(2, 0, 1, row(8), 9)
    history.commits[-1] = Commit(5, 3, 3, {0: 6, 1: 3, 2: 1})
    history.topic_out[2] = Record(2, 0, 1, row(8), 9)
    history.ledger[-1] = Acked(1, 8, 2, 0, "plain")
    return history


@pytest.mark.parametrize("once", [True, False])
def test_added_partitions(once: bool) -> None:
    """Order is required within each partition only; the newest timestamp decides which record is the last."""
    verdict = judge(grown(), drained=True, exactly_once=once, grown=True)
    assert verdict.clean, verdict.examples
    assert judge(grown(), drained=True, exactly_once=True).counts["reordered"] == 1
    late = grown()
    late.topic_out.insert(2, Record(0, 3, 1, row(1), 99))
    assert judge(late, drained=True, exactly_once=once, grown=True).counts["stale"] == 1
    short = grown()
    del short.topic_out[1]
    assert judge(short, drained=True, exactly_once=once, grown=True).counts["lost"] == 1
    swapped = grown()
    out = swapped.topic_out
    out[0], out[1] = Record(0, 0, 1, row(4)), Record(0, 2, 1, row(1))
    assert judge(swapped, drained=True, exactly_once=once, grown=True).counts["reordered"] == 1


def test_a_key_of_two_partitions_in_one_batch_is_the_newest_s() -> None:
    history = grown()
    history.topic_in[1] = Record(0, 3, 1, row(4), 10)
    history.commits[2:] = [Commit(4, 2, 2, {0: 6, 1: 3, 2: 1})]
    history.commits.pop(1)
    assert judge(history, drained=False).counts["table differs from topic"] == 1
    history.table[0] = (1, row(4))
    assert judge(history, drained=False).counts["table differs from topic"] == 0


def ordered() -> History:
    """Changes that are ordered by their numbers: key 1's change 4 comes after 8, and key 2's deletion 7 before 6."""
    history = good()
    history.by_sequence = True
    history.topic_in = [
        Record(0, 0, 1, row(1), order=1),
        Record(0, 3, 1, row(8), order=8),
        Record(0, 5, 1, row(4), order=4),
        Record(1, 0, 2, row(2), order=2),
        Record(1, 1, 2, None, order=7),
        Record(1, 2, 2, row(6), order=6),
    ]
    history.ledger = [Acked(1, 8, 0, 3, "plain"), Acked(1, 4, 0, 5, "plain")]
    history.table = [(1, row(8))]
    history.topic_out = [
        Record(0, 0, 1, row(1)),
        Record(0, 2, 1, row(8)),
        Record(1, 0, 2, row(2)),
        Record(1, 1, 2, None),
    ]
    return history


ORDERED_BREAKS: dict[str, tuple[str, Callable[[History], object]]] = {
    "a late change is applied": ("table differs from topic", lambda h: h.table.__setitem__(0, (1, row(4)))),
    "a late change inserts a deleted row": (
        "table differs from topic",
        lambda h: h.table.append((2, row(6))),
    ),
    "a late change is sent": (
        "topic differs from table",
        lambda h: h.topic_out.insert(2, Record(0, 3, 1, row(4))),
    ),
    "it goes back": ("reordered", lambda h: h.topic_out.insert(2, Record(0, 3, 1, row(4)))),
    "one that never was": (
        "topic differs from table",
        lambda h: h.topic_out.insert(0, Record(0, 0, 1, row(9))),
    ),
    "one is sent twice": ("duplicated", lambda h: h.topic_out.insert(2, Record(0, 3, 1, row(8)))),
    "a tombstone is missing": ("ghosts", lambda h: h.topic_out.pop()),
}


@pytest.mark.parametrize("name", ORDERED_BREAKS)
def test_changes_that_are_ordered_by_their_numbers(name: str) -> None:
    verdict = judge(ordered(), drained=True)
    assert verdict.clean, verdict.examples
    fault, break_it = ORDERED_BREAKS[name]
    history = ordered()
    break_it(history)
    assert judge(history, drained=True).counts[fault], judge(history, drained=True)


def test_a_user_s_rows_among_ordered_changes() -> None:
    """A row that a user has changed counts as the one that was sent; after a RESTORE numbers may go back."""
    history = ordered()
    history.topic_in[1] = Record(0, 3, 1, row(10), order=10)
    history.ledger = []
    history.table = [(1, (10, "user", 7))]
    history.topic_out[1:2] = [Record(0, 2, 1, row(10)), Record(0, 3, 1, (10, "user", 7))]
    assert judge(history, drained=True).counts["table differs from topic"] == 1
    history.user_commits = [UserCommit(6)]
    assert judge(history, drained=True).clean
    history.topic_out.insert(1, Record(0, 1, 1, row(10)))
    history.topic_out.insert(2, Record(0, 1, 1, row(1)))
    assert judge(history, drained=True).counts["reordered"] == 1
    history.user_commits.append(UserCommit(3, 1))
    assert judge(history, drained=True).clean


def test_a_hole_before_what_is_there_is_found_though_not_all_is_there_yet() -> None:
    history = good()
    del history.topic_out[1]
    assert judge(history, drained=False).counts["lost"] == 1


def test_no_fault_goes_untested() -> None:
    assert {fault for fault, _ in BREAKS.values()} == set(FAULTS)


@pytest.mark.parametrize(
    "module",
    [
        *("appended", "history", "checker", "documents", "intervals"),
        *("parquet", "reading", "vectors", "writer", "../reader"),
    ],
)
def test_it_shares_no_code_with_the_bridge(module: str) -> None:
    """Nor do the modules that it imports."""
    here = Path(__file__).parent
    tree = ast.parse((here / f"{module}.py").read_text(encoding="utf-8"))
    imported = {
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
        )
    }
    assert not any(name.partition(".")[0] == "bridge" for name in imported)
    assert {n for n in imported if n.startswith("tests")} <= {
        "tests.faults.appended",
        "tests.faults.checker",
        "tests.faults.documents",
        "tests.faults.history",
        "tests.faults.intervals",
        "tests.faults.parquet",
        "tests.faults.sums",
        "tests.faults.vectors",
        "tests.reader",
    }


def test_a_stall_is_a_wait_in_one_place() -> None:
    stall = Stall()
    for now, end in ((0.0, 5), (1.0, 5), (2.0, 7), (5.0, 7), (6.0, 9)):
        stall.look(now, {0: end, 1: 0}, {0: 9, 1: 0})
    assert stall.longest == 3.0
    stall.look(50.0, {0: 9, 1: 0}, {0: 10, 1: 0})
    assert stall.longest == 3.0
