"""Where a slot goes on: the rows behind its cursor, however Arrow cuts them into batches."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.kafka.exactly_once import _Place
from bridge.kafka.share import Cursor

CHUNK = 2

# How many rows each version has; and where the batches end.
versions = st.dictionaries(st.integers(0, 12), st.integers(1, 9), min_size=1, max_size=6)
cuts = st.lists(st.integers(1, 7), min_size=1, max_size=40)


def rows_of(counts: dict[int, int]) -> list[tuple[int, int]]:
    """(version, the how-manieth row of it), in a slot's order."""
    return [(version, n) for version in sorted(counts) for n in range(1, counts[version] + 1)]


def batches_of(rows: list[tuple[int, int]], sizes: list[int]) -> list[pa.RecordBatch]:
    at = 0
    found: list[pa.RecordBatch] = []
    while at < len(rows):
        size = sizes[len(found) % len(sizes)]
        part = rows[at : at + size]
        found.append(
            pa.RecordBatch.from_pydict({"key": [n for _, n in part], "__version": [v for v, _ in part]})
        )
        at += size
    return found


def passed(cursor: Cursor, batches: list[pa.RecordBatch]) -> tuple[list[tuple[int, int]], list[Cursor]]:
    """What is left to send, and the places after each batch."""
    place, left, upto = _Place(cursor, CHUNK), [], []
    for batch in batches:
        rest, after = place.after(batch)
        left += list(zip(rest["__version"].to_pylist(), rest["key"].to_pylist(), strict=True))
        upto.append(after)
    return left, upto


@settings(max_examples=300, deadline=None)
@given(versions, cuts, st.data())
def test_the_rest_is_what_lies_behind_the_cursor(
    counts: dict[int, int], sizes: list[int], data: st.DataObject
) -> None:
    rows = rows_of(counts)
    sent = data.draw(st.integers(0, len(rows)))
    cursor = Cursor(rows[sent - 1][0], CHUNK, rows[sent - 1][1]) if sent else Cursor()
    left, upto = passed(cursor, batches_of(rows, sizes))
    assert left == rows[sent:]
    assert upto == sorted(set(upto))
    assert upto[-1] == Cursor(rows[-1][0], CHUNK, rows[-1][1])


@settings(max_examples=100, deadline=None)
@given(versions, cuts, cuts, st.data())
def test_another_cut_goes_on_where_the_first_ended(
    counts: dict[int, int], first: list[int], second: list[int], data: st.DataObject
) -> None:
    """The run before had other batches; its cursors are places between rows all the same."""
    rows = rows_of(counts)
    batches = batches_of(rows, first)
    _, upto = passed(Cursor(), batches)
    done = data.draw(st.integers(1, len(batches)))
    sent = sum(batch.num_rows for batch in batches[:done])
    assert passed(upto[done - 1], batches_of(rows, second))[0] == rows[sent:]


@given(versions, cuts, st.integers(0, 12), st.integers(1, 9))
def test_chunks_of_a_snapshot_are_sent_in_turn(
    counts: dict[int, int], sizes: list[int], version: int, count: int
) -> None:
    """A cursor in a later chunk has this one behind it, one in an earlier chunk has all of it before it."""
    rows = rows_of(counts)
    batches = batches_of(rows, sizes)
    assert passed(Cursor(version, CHUNK + 1, count), batches)[0] == [r for r in rows if r[0] > version]
    assert passed(Cursor(version, CHUNK - 1, count), batches)[0] == [r for r in rows if r[0] >= version]
