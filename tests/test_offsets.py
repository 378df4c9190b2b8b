"""Offset vectors are values: they merge forward, compare by partition, and read back what they write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.offsets import Offsets

vectors = st.dictionaries(
    st.tuples(st.sampled_from(["a", "b.c"]), st.integers(0, 12)), st.integers(0, 2**40), max_size=6
).map(Offsets)


@given(vectors)
def test_json_reads_back(offsets: Offsets) -> None:
    assert Offsets.from_json(offsets.to_json()) == offsets


def test_json_orders_partitions_as_numbers() -> None:
    assert Offsets.of([("t", 10, 1), ("t", 2, 5)]).to_json() == '{"t": {"2": 5, "10": 1}}'


@pytest.mark.parametrize("text", ["[]", "3", "null"])
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="an offset vector is a JSON object"):
        Offsets.from_json(text)


@given(vectors, vectors)
def test_advanced_never_goes_back(one: Offsets, other: Offsets) -> None:
    merged = one.advanced(other)
    assert merged.reaches(one) and merged.reaches(other)
    assert merged == other.advanced(one)
    assert set(merged.by_partition) == set(one.by_partition) | set(other.by_partition)


@given(vectors, vectors)
def test_capped_keeps_partitions_and_never_exceeds(one: Offsets, limit: Offsets) -> None:
    capped = one.capped(limit)
    assert set(capped.by_partition) == set(one.by_partition)
    for topic, partition, offset in capped:
        bound = limit.get(topic, partition)
        assert offset == one.get(topic, partition) or offset == bound
        assert bound is None or offset <= bound


def test_behind_counts_unknown_partitions_from_zero() -> None:
    here, end = Offsets.of([("t", 0, 7)]), Offsets.of([("t", 0, 10), ("t", 1, 4)])
    assert here.lag(end) == 7
    assert end.lag(here) == 0
    assert not here.reaches(end) and end.reaches(here)


def test_partitions_that_moved() -> None:
    before = Offsets.of([("t", 0, 7), ("t", 1, 4), ("t", 2, 0)])
    here = Offsets.of([("t", 0, 9), ("t", 1, 4), ("t", 2, 0), ("u", 0, 3), ("u", 1, 0)])
    assert here.moved_since(before) == (("t", 0, 7, 9), ("u", 0, None, 3))
    assert here.moved_since(here) == ()


def test_vectors_are_values() -> None:
    assert hash(Offsets.of([("t", 1, 2), ("t", 0, 1)])) == hash(Offsets.of([("t", 0, 1), ("t", 1, 2)]))
    assert Offsets() == Offsets({}) and len(Offsets()) == 0
