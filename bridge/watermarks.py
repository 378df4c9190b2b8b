"""How far event time has got, as Flink's sources count it: per partition, the slowest one decides.

Plain arithmetic on milliseconds; the caller says what time it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bridge.offsets import TopicPartition

__all__ = ["Watermarks"]


@dataclass
class Watermarks:
    """The watermark of each partition of a run, which never goes back.

    `delay_ms` is what the WATERMARK clause takes off; `idle_timeout_ms` (0: never) is how long a partition without
    records still holds the others back (Flink: scan.watermark.idle-timeout).
    """

    delay_ms: int
    idle_timeout_ms: int = 0
    _of: dict[TopicPartition, int] = field(default_factory=dict)
    _seen: dict[TopicPartition, int] = field(default_factory=dict)

    def watch(self, partition: TopicPartition, now_ms: int) -> None:
        """A partition that is read: until its first record, or until it counts as idle, there is no watermark."""
        self._seen.setdefault(partition, now_ms)

    def advance(self, newest_ms: Mapping[TopicPartition, int], now_ms: int) -> None:
        """A batch: the newest event time of each partition that had records."""
        for partition, newest in newest_ms.items():
            self._seen[partition] = now_ms
            self._of[partition] = max(newest - self.delay_ms, self._of.get(partition, newest - self.delay_ms))

    def current(self, now_ms: int) -> int | None:
        """The smallest watermark of all partitions that are not idle; None while one has none, or all are idle."""
        active = [p for p, seen in self._seen.items() if not self._idle(seen, now_ms)]
        known = [self._of[p] for p in active if p in self._of]
        return min(known) if known and len(known) == len(active) else None

    def _idle(self, seen_ms: int, now_ms: int) -> bool:
        return 0 < self.idle_timeout_ms <= now_ms - seen_ms
