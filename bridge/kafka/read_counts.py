"""Counts what was read of a topic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message

from bridge.metrics import now_ms


@dataclass(frozen=True)
class ReadCounts:
    """Records that were read, the bytes of their keys and values, and the timestamps of the oldest and the newest."""

    records: int = 0
    bytes: int = 0
    oldest_ms: int | None = None
    """Epoch milliseconds; None where no record has a timestamp."""
    newest_ms: int | None = None
    at_ms: int | None = None
    """When the driver had them, epoch milliseconds."""

    def __add__(self, other: ReadCounts) -> ReadCounts:
        oldest = [ms for ms in (self.oldest_ms, other.oldest_ms) if ms is not None]
        newest = [ms for ms in (self.newest_ms, other.newest_ms) if ms is not None]
        return ReadCounts(
            self.records + other.records,
            self.bytes + other.bytes,
            min(oldest, default=None),
            max(newest, default=None),
        )

    @classmethod
    def sum(cls, counts: Iterable[ReadCounts]) -> ReadCounts:
        """Returns what tasks have read, for the driver that has it now."""
        return replace(sum(counts, cls()), at_ms=now_ms())

    @classmethod
    def of(cls, messages: Sequence[Message], bytes: int) -> ReadCounts:
        """Returns the counts of consecutive records of a partition. Of their timestamps it asks the first and the last
        only: a log is in the order of time but for producers that set their own times."""
        found = [m.timestamp() for m in (*messages[:1], *messages[-1:])]
        times = [ms for kind, ms in found if kind != TIMESTAMP_NOT_AVAILABLE]
        return cls(len(messages), bytes, min(times, default=None), max(times, default=None))
