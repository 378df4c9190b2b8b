"""Ranges of offsets, and what is kept of their records while they are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from confluent_kafka import Message

from bridge.kafka.read_counts import ReadCounts

CHUNK_RECORDS, CHUNK_BYTES = 20_000, 8 << 20
"""About so many records are decoded at once, or the records of so many bytes."""


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
    """A RangePart: the last record of each key in a range; a null value deletes the row. Keys are compared by their
    bytes."""

    range: PartitionRange
    read: ReadCounts = field(default_factory=ReadCounts)
    records: dict[bytes | None, Message] = field(default_factory=dict)
    superseded: Callable[[LatestValues, list[Message]], None] | None = None
    """Gets all records of the range that are not the last one of their key, some thousand at once; null values are left
    out."""
    superseded_bytes: int = 0
    """What `superseded` keeps."""
    _old: list[Message] = field(default_factory=list)
    _old_bytes: int = 0

    def add(self, messages: Sequence[Message]) -> Added:
        """See RangePart.add."""
        records, size = self.records, 0
        for message in messages:
            key, value = message.key(), message.value()
            if self.superseded is not None and (before := records.get(key)) is not None:
                self._supersede(before)
            records[key] = message
            size += len(key or b"") + len(value or b"")
        if len(self._old) >= CHUNK_RECORDS or self._old_bytes >= CHUNK_BYTES:
            self.pass_on()
        return Added(size, size)

    def size(self) -> int:
        """See RangePart.size: the bytes of keys and values."""
        kept = sum(len(key or b"") + len(found.value() or b"") for key, found in self.records.items())
        return kept + self._old_bytes + self.superseded_bytes

    def pass_on(self) -> None:
        """Give `superseded` what it has not got yet."""
        messages, self._old, self._old_bytes = self._old, [], 0
        if messages and self.superseded is not None:
            self.superseded(self, messages)

    def _supersede(self, message: Message) -> None:
        if (value := message.value()) is not None:
            self._old.append(message)
            self._old_bytes += len(value)
