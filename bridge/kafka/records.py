"""Records to send to a topic, column by column, and counts of sent records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass
from typing import Any, TypeAlias

Record: TypeAlias = tuple[
    str, "bytes | None", "bytes | None", "int | None", "list[tuple[str, bytes | None]] | None"
]
"""One row of `Records`: topic, key, value, timestamp, headers."""


@dataclass
class Records:
    """Records to send, in order, column by column; a null value is a tombstone. A missing column is all null."""

    topics: list[str]
    keys: list[bytes | None]
    values: list[bytes | None]
    timestamps: list[int | None] | None = None
    """Milliseconds since 1970; None is the time of sending."""
    headers: list[list[tuple[str, bytes | None]] | None] | None = None
    key_column: Any = None
    """The keys as an Arrow array, where they came as one: it is hashed faster than the list."""
    counted_bytes: int | None = None
    """The bytes of keys and values, where they are counted already."""

    @property
    def size(self) -> int:
        """The bytes of keys and values."""
        if self.counted_bytes is not None:
            return self.counted_bytes
        return sum(sum(map(len, filter(None, column))) for column in (self.keys, self.values))

    def rows(self) -> Iterator[Record]:
        """Yield the records row by row."""
        nothing: list[None] = [None] * len(self.keys)
        more = (self.timestamps or nothing, self.headers or nothing)
        return zip(self.topics, self.keys, self.values, *more, strict=True)


@dataclass
class SendCounts:
    """Counts of the records given to a producer, tombstones among them, bytes of keys and values before compression,
    failed deliveries (more than 0 only with 'sink.delivery-guarantee' = 'none'), and committed transactions."""

    records: int = 0
    tombstones: int = 0
    bytes: int = 0
    lost: int = 0
    transactions: int = 0

    def __add__(self, other: SendCounts) -> SendCounts:
        return SendCounts(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))
