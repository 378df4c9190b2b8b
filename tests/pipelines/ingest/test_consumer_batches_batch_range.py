from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from bridge.offsets import Offsets
from bridge.pipelines.ingest.consumer_batches import Trigger, next_end


def test_a_batch_is_the_limit_in_proportion_to_what_is_left() -> None:
    start = Offsets({("t", 0): 10, ("t", 1): 0})
    end = Offsets({("t", 0): 110, ("t", 1): 300, ("t", 2): 2})
    assert next_end(start, end, 402) == end
    assert next_end(start, end, 40) == Offsets({("t", 0): 20, ("t", 1): 30, ("t", 2): 0})
    assert next_end(start, end, 1) == Offsets({("t", 0): 10, ("t", 1): 1, ("t", 2): 0})


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 1000)), min_size=1, max_size=8),
    st.integers(1, 3000),
)
def test_a_batch_uses_its_limit_up_and_stays_in_the_topic(parts: list[tuple[int, int]], limit: int) -> None:
    start = Offsets({("t", n): low for n, (low, _) in enumerate(parts)})
    end = Offsets({("t", n): low + count for n, (low, count) in enumerate(parts)})
    after = next_end(start, end, limit)
    assert start.lag(after) == min(limit, start.lag(end))
    assert after.reaches(start) and end.reaches(after)


def test_without_an_interval_each_batch_follows_at_once() -> None:
    trigger = Trigger(None)
    assert trigger.due() and trigger.due()


def test_an_interval_begins_one_batch() -> None:
    trigger = Trigger(0.2)
    assert trigger.due() and not trigger.due()
    time.sleep(0.21)
    assert trigger.due()
    time.sleep(0.5)  # a batch that takes longer is followed by one, not by all that were left out
    assert trigger.due()
