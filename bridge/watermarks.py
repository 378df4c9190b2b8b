"""Watermarks of event time as in Flink's sources: one for each partition, of which the smallest counts.

All times are milliseconds; the caller passes the current time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bridge.offsets import TopicPartition


@dataclass
class Watermarks:
    """The watermark of each partition of a run; none ever decreases.

    `delay_ms` is the interval that the WATERMARK clause subtracts. A partition without records for `idle_timeout_ms`
    (0: never) is idle and ignored (Flink: scan.watermark.idle-timeout).
    """

    delay_ms: int
    idle_timeout_ms: int = 0
    _watermarks: dict[TopicPartition, int] = field(default_factory=dict)
    _last_record_ms: dict[TopicPartition, int] = field(default_factory=dict)

    def watch(self, partition: TopicPartition, now_ms: int) -> None:
        """Add a partition: until its first record, or until it is idle, there is no watermark."""
        self._last_record_ms.setdefault(partition, now_ms)

    def advance(self, newest_ms: Mapping[TopicPartition, int], now_ms: int) -> None:
        """Add a batch: the newest event time of each partition that has records."""
        for partition, newest in newest_ms.items():
            self._last_record_ms[partition] = now_ms
            watermark = newest - self.delay_ms
            self._watermarks[partition] = max(watermark, self._watermarks.get(partition, watermark))

    def current(self, now_ms: int) -> int | None:
        """Return the smallest watermark of partitions that are not idle; None while one has none, or all are idle."""
        active = [p for p, last_ms in self._last_record_ms.items() if not self._idle(last_ms, now_ms)]
        watermarks = [self._watermarks[p] for p in active if p in self._watermarks]
        return min(watermarks) if watermarks and len(watermarks) == len(active) else None

    def _idle(self, last_record_ms: int, now_ms: int) -> bool:
        return 0 < self.idle_timeout_ms <= now_ms - last_record_ms
