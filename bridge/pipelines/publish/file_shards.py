"""Whether a range of exactly-once goes out file by file.

No row is moved then, where else all are shuffled and sorted: half as fast again, as long as every task has its share to
do (docs/adr/017).
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Sequence

__all__ = ["LARGE", "file_shards_pay_off"]

LARGE = int(os.environ.get("BRIDGE_FILE_SLOT_ROWS", "200000"))
"""Of fewer rows the shuffle costs less than looking at the files would. BRIDGE_FILE_SLOT_ROWS lowers it for trials on
small tables (docs/adr/017)."""

_EACH = LARGE // 2
"""Fewer rows than that in a file, and opening its shard takes as long as shuffling them would."""

_MOST = 32
"""More files than so many for each task that runs at a time are not worth their transactional ids."""

_UNEVEN = 1.4
"""Tasks that wait for the longest one lose, from here on, what there is to be gained."""


def file_shards_pay_off(sizes: Sequence[int], rows: int, tasks: int) -> bool:
    """Whether files of these sizes with `rows` in all of them are worth a shard each, and `tasks` at a time, which take
    the largest file next, as Spark's do, end at about the same time."""
    if not 0 < len(sizes) <= min(_MOST * tasks, rows // _EACH):
        return False
    loads = [0] * tasks
    for size in sorted(sizes, reverse=True):
        heapq.heapreplace(loads, loads[0] + size)
    return max(loads) * tasks <= _UNEVEN * sum(sizes)
