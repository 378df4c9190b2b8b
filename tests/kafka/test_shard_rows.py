"""A shard sends the rows after its cursor, however Arrow cuts them into batches."""

from __future__ import annotations

from itertools import groupby, pairwise
from operator import itemgetter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.errors import KafkaError
from bridge.kafka.shard_rows import RANK, SHARD, VERSION, UnsentRows, join_equal_ranks, split_by_shard
from bridge.kafka.shard_state import Cursor

CHUNK = 2

# How many rows each version has; and where the batches end.
versions = st.dictionaries(st.integers(0, 12), st.integers(1, 9), min_size=1, max_size=6)
cuts = st.lists(st.integers(1, 7), min_size=1, max_size=40)


def rows_of(counts: dict[int, int]) -> list[tuple[int, int]]:
    """Return (version, number of the row within it), in a shard's order."""
    return [(version, n) for version in sorted(counts) for n in range(1, counts[version] + 1)]


def batches_of(rows: list[tuple[int, int]], sizes: list[int]) -> list[pa.RecordBatch]:
    at = 0
    batches: list[pa.RecordBatch] = []
    while at < len(rows):
        size = sizes[len(batches) % len(sizes)]
        part = rows[at : at + size]
        batches.append(
            pa.RecordBatch.from_pydict({"key": [n for _, n in part], VERSION: [v for v, _ in part]})
        )
        at += size
    return batches


def passed(cursor: Cursor, batches: list[pa.RecordBatch]) -> tuple[list[tuple[int, int]], list[Cursor]]:
    """Return the unsent rows, and the cursor after each batch."""
    unsent, left, upto = UnsentRows(cursor, CHUNK), [], []
    for batch in batches:
        rest, after = unsent.next(batch)
        left += list(zip(rest[VERSION].to_pylist(), rest["key"].to_pylist(), strict=True))
        upto.append(after)
    return left, upto


@settings(max_examples=300, deadline=None)
@given(versions, cuts, st.data())
def test_only_rows_after_the_cursor_are_left(
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
def test_other_batches_continue_at_the_cursor(
    counts: dict[int, int], first: list[int], second: list[int], data: st.DataObject
) -> None:
    """A cursor is a position between rows, whatever the batches of the run that recorded it."""
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
    """A cursor in a later chunk is after this one, a cursor in an earlier chunk is before all of it."""
    rows = rows_of(counts)
    batches = batches_of(rows, sizes)
    assert passed(Cursor(version, CHUNK + 1, count), batches)[0] == [r for r in rows if r[0] > version]
    assert passed(Cursor(version, CHUNK - 1, count), batches)[0] == [r for r in rows if r[0] >= version]


ranks = st.lists(st.integers(0, 9), min_size=1, max_size=40).map(sorted)


@settings(max_examples=300, deadline=None)
@given(ranks, cuts)
def test_rows_of_one_rank_stay_in_one_batch(ranked: list[int], sizes: list[int]) -> None:
    numbered = [*zip(ranked, range(len(ranked)), strict=True)]
    given_rows = [
        pa.RecordBatch.from_pydict({RANK: [r for r, _ in part], "key": [n for _, n in part]})
        for part in _cut(numbered, sizes)
    ]
    batches = [batch.to_pydict() for batch in join_equal_ranks(given_rows)]
    assert [n for batch in batches for n in batch["key"]] == list(range(len(ranked)))
    assert all(a[RANK][-1] < b[RANK][0] for a, b in pairwise(batches))
    assert len(batches) == 1 or all(batch["key"] for batch in batches)


def _cut(rows: list[tuple[int, int]], sizes: list[int]) -> list[list[tuple[int, int]]]:
    """Cut rows into these sizes, with empty batches in between, which Spark may send."""
    parts: list[list[tuple[int, int]]] = []
    at = 0
    while at < len(rows):
        size = sizes[len(parts) % len(sizes)]
        parts += [rows[at : at + size], []]
        at += size
    return parts


shards = st.permutations(range(4)).flatmap(
    lambda order: st.lists(st.integers(0, 9), min_size=4, max_size=4).map(
        lambda rows: [shard for shard, count in zip(order, rows, strict=True) for _ in range(count)]
    )
)


@settings(max_examples=200, deadline=None)
@given(shards, cuts)
def test_rows_of_several_shards_are_separated(numbers: list[int], sizes: list[int]) -> None:
    """Wherever batches end and shards begin, each row is with its shard, in the order of the rows."""
    rows = [*enumerate(numbers)]
    batches = [
        pa.RecordBatch.from_pydict({"key": [n for n, _ in part], SHARD: [s for _, s in part]})
        for part in _cut(rows, sizes)
    ]
    parts = [*split_by_shard(batches, {0, 1, 2, 3}, str)]
    assert [(n, shard) for shard, part in parts for n in part["key"].to_pylist()] == rows
    assert all(set(part[SHARD].to_pylist()) == {shard} for shard, part in parts)
    assert [s for s, _ in groupby(parts, key=itemgetter(0))] == [s for s, _ in groupby(numbers)]


@pytest.mark.parametrize(("legal", "numbers"), [({1}, [1, 1, 2]), ({0, 1}, [1, 0, -1]), ({0, 1}, [1, 0, 1])])
def test_a_stray_shard_is_refused(legal: set[int], numbers: list[int]) -> None:
    """An illegal shard, and one that comes twice."""
    batch = pa.RecordBatch.from_pydict({SHARD: numbers})
    with pytest.raises(KafkaError, match=f"stray {numbers[-1]}"):
        [*split_by_shard([batch], legal, lambda number: f"stray {number}")]
