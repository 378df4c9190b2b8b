"""Ranges of offsets, and what is kept of their records while they are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from confluent_kafka import Message

__all__ = ["LatestValues", "PartitionRange", "RangePart"]


@dataclass(frozen=True)
class PartitionRange:
    """The records of a partition from `start` (inclusive) to `end` (exclusive), which is after `start`."""

    topic: str
    partition: int
    start: int
    end: int


class RangePart(Protocol):
    """What is kept of the records of a range."""

    range: PartitionRange
    records: int
    """How many records of the range were read so far."""

    def add(self, messages: Sequence[Message]) -> int:
        """Take the next records of the range, which are in the order of their offsets; returns how many bytes more are
        kept, superseded ones included."""
        ...

    def size(self) -> int:
        """Return the bytes that are kept, without superseded ones."""
        ...


@dataclass
class LatestValues:
    """A RangePart: the last value of each key in a range; null deletes the row. Keys are compared by their bytes."""

    range: PartitionRange
    records: int = 0
    values: dict[bytes | None, bytes | None] = field(default_factory=dict)

    def add(self, messages: Sequence[Message]) -> int:
        """See RangePart.add."""
        values, size = self.values, 0
        for message in messages:
            key, value = message.key(), message.value()
            values[key] = value
            size += len(key or b"") + len(value or b"")
        return size

    def size(self) -> int:
        """See RangePart.size: the bytes of keys and values."""
        return sum(len(key or b"") + len(value or b"") for key, value in self.values.items())
