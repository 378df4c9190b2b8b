"""When a batch of the reader `consumer` begins, and where it ends."""

from __future__ import annotations

import time
from math import floor

from bridge.offsets import Offsets

__all__ = ["Trigger", "next_end"]


class Trigger:
    """Spark's processing-time trigger: batches begin at multiples of the interval; one that takes longer is followed
    by the next at once. Without an interval each batch follows at once."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._next = 0.0

    def due(self) -> bool:
        """True once per interval."""
        if self._seconds is None:
            return True
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = (floor(now / self._seconds) + 1) * self._seconds if self._seconds else now
        return True


def next_end(start: Offsets, end: Offsets, limit: int) -> Offsets:
    """The end of the next batch: `end`, or `limit` offsets after `start`, in proportion to what is left of each.

    A partition that `start` does not name is read from offset 0. Unlike Spark's source, it uses the limit up, so that
    whole batches leave no small one at the end.
    """
    left = {key: max(0, stop - start.by_partition.get(key, 0)) for key, stop in end.by_partition.items()}
    total = sum(left.values())
    if total <= limit:
        return end
    parts = {key: limit * count // total for key, count in left.items()}
    rest = limit - sum(parts.values())
    for key in sorted(left, key=lambda k: (-(limit * left[k] % total), k))[:rest]:
        parts[key] += 1
    return Offsets({key: start.by_partition.get(key, 0) + count for key, count in parts.items()})
