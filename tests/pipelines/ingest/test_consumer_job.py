"""Ranges are shared among tasks, and a partition without a start is left out."""

from __future__ import annotations

import random

from bridge.kafka.range_parts import PartitionRange
from bridge.offsets import Offsets
from bridge.pipelines.ingest.consumer_job import ranges_between, shares


def test_ranges_between_offsets() -> None:
    start = Offsets({("t", 0): 3, ("t", 1): 5, ("u", 0): 0})
    end = Offsets({("t", 0): 7, ("t", 1): 5, ("t", 2): 9, ("u", 0): 1})
    assert ranges_between(start, end) == [PartitionRange("t", 0, 3, 7), PartitionRange("u", 0, 0, 1)]


def test_each_range_is_in_one_share_and_the_shares_are_alike() -> None:
    draw = random.Random(1)
    for tasks in (1, 2, 5):
        ranges = [PartitionRange("t", n, 0, draw.randrange(1, 100)) for n in range(draw.randrange(1, 20))]
        found = shares(ranges, tasks)
        assert sorted((r for share in found for r in share), key=lambda r: r.partition) == ranges
        assert len(found) == min(tasks, len(ranges)) and all(found)
        lengths = [sum(r.end - r.start for r in share) for share in found]
        assert max(lengths) - min(lengths) <= max(r.end for r in ranges)
