"""Ranges of offsets, and what is kept of their records while they are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from confluent_kafka import Message

from bridge.kafka.read_counts import ReadCounts

__all__ = ["Added", "LatestValues", "PartitionRange", "RangePart"]


@dataclass(frozen=True)
class PartitionRange:
    """The records of a partition from `start` (inclusive) to `end` (exclusive), which is after `start`."""

    topic: str
    partition: int
    start: int
    end: int


class Added(NamedTuple):
    """Bytes of records that a part has taken."""

    bytes: int
    """Of their keys and values."""
    kept: int
    """How many more the part keeps, superseded ones included."""


class RangePart(Protocol):
    """What is kept of the records of a range."""

    range: PartitionRange
    read: ReadCounts
    """Of the records of the range that were read so far."""

    def add(self, messages: Sequence[Message]) -> Added:
        """Take the next records of the range, which are in the order of their offsets."""
        ...

    def size(self) -> int:
        """Return the bytes that are kept, without superseded ones."""
        ...


@dataclass
class LatestValues:
    """A RangePart: the last value of each key in a range; null deletes the row. Keys are compared by their bytes."""

    range: PartitionRange
    read: ReadCounts = field(default_factory=ReadCounts)
    values: dict[bytes | None, bytes | None] = field(default_factory=dict)

    def add(self, messages: Sequence[Message]) -> Added:
        """See RangePart.add."""
        values, size = self.values, 0
        for message in messages:
            key, value = message.key(), message.value()
            values[key] = value
            size += len(key or b"") + len(value or b"")
        return Added(size, size)

    def size(self) -> int:
        """See RangePart.size: the bytes of keys and values."""
        return sum(len(key or b"") + len(value or b"") for key, value in self.values.items())
