"""Watermarks are arithmetic: no clock, no Kafka."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bridge.watermarks import Watermarks

A, B = ("t", 0), ("t", 1)


def test_the_slowest_partition_decides_and_the_delay_is_taken_off() -> None:
    marks = Watermarks(delay_ms=100)
    marks.watch(A, 0)
    marks.watch(B, 0)
    marks.advance({A: 5000}, 10)
    assert marks.current(10) is None
    marks.advance({B: 3000}, 20)
    assert marks.current(20) == 2900
    marks.advance({B: 9000, A: 1}, 30)
    assert marks.current(30) == 4900


def test_an_idle_partition_holds_nothing_back_until_it_wakes() -> None:
    marks = Watermarks(delay_ms=0, idle_timeout_ms=1000)
    marks.watch(A, 0)
    marks.watch(B, 0)
    marks.advance({A: 5000}, 500)
    assert marks.current(999) is None
    assert marks.current(1000) == 5000
    assert marks.current(1500) is None
    marks.advance({B: 100}, 1600)
    assert marks.current(1600) == 100


@given(st.lists(st.dictionaries(st.sampled_from([A, B]), st.integers(0, 100)), max_size=20))
def test_a_watermark_never_goes_back(batches: list[dict[tuple[str, int], int]]) -> None:
    marks = Watermarks(delay_ms=3)
    marks.watch(A, 0)
    marks.watch(B, 0)
    before = -(10**9)
    for now, newest in enumerate(batches):
        marks.advance(newest, now)
        current = marks.current(now)
        assert current is None or current >= before
        before = before if current is None else current
