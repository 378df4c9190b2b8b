"""Whether the data files of a version are its shards in an exactly-once publish.

Such a range is sent without a shuffle, which takes a third less time as long as all tasks are busy to the end
(docs/adr/017).
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class FileShardLimits:
    """The sizes from which files are worth a shard each (docs/adr/017)."""

    min_rows: int = 200_000
    """The shuffle of fewer rows costs less than planning the read of their files."""
    min_rows_per_file: int = 100_000
    """Opening a shard for fewer rows takes as long as shuffling them."""
    max_files_per_task: int = 32
    """More files than this for each task do not pay for their transactional ids."""
    max_imbalance: float = 1.4
    """The longest task may take this many times the average; above it, waiting for it costs what the shuffle does."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> FileShardLimits:
        """The limits, lowered by BRIDGE_FILE_SLOT_ROWS for trials on small tables: its value is `min_rows`, half of
        it is `min_rows_per_file`."""
        rows = int(environment.get("BRIDGE_FILE_SLOT_ROWS", cls.min_rows))
        return cls(min_rows=rows, min_rows_per_file=rows // 2)

    def pay_off(self, sizes: Sequence[int], rows: int, tasks: int) -> bool:
        """Whether files of these sizes, with `rows` rows in all, are sent faster as shards. Spark gives the largest
        file that is left to the first of `tasks` tasks that is free."""
        if not 0 < len(sizes) <= min(self.max_files_per_task * tasks, rows // self.min_rows_per_file):
            return False
        loads = [0] * tasks
        for size in sorted(sizes, reverse=True):
            heapq.heapreplace(loads, loads[0] + size)
        return max(loads) * tasks <= self.max_imbalance * sum(sizes)
