"""Java's default partitioner, for many keys at a time.

librdkafka has the same function, but it uses the number of partitions of its latest metadata, which may change within a
batch and differ between tasks. Here the number is an argument (ADR 022).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["ANYWHERE", "partitions_of"]

_SEED, _M = np.uint32(0x9747B28C), np.uint32(0x5BD1E995)
_REST = np.array([0, 0xFF, 0xFFFF, 0xFFFFFF], dtype=np.uint32)
ANYWHERE = -1


def partitions_of(keys: Sequence[bytes | None] | pa.Array, partitions: Sequence[int] | int) -> list[int]:
    """Return the partition of each key; `partitions` is the number of them, for all keys or for each, 0 if unknown.

    A null key and an unknown number give -1, with which librdkafka chooses one. An empty key is a key. Keys in Arrow
    are hashed in less time than a list.
    """
    binary = pa.large_binary()
    column = keys.cast(binary) if isinstance(keys, pa.Array) else pa.array(keys, binary)
    count = np.maximum(np.asarray(partitions, dtype=np.int64), 0)
    hashed = (_hashes(column) & np.uint32(0x7FFFFFFF)).astype(np.int64) % np.maximum(count, 1)
    anywhere = count == 0
    if column.null_count:
        anywhere = anywhere | column.is_null().to_numpy(zero_copy_only=False)
    placed: list[int] = np.where(anywhere, ANYWHERE, hashed).tolist()
    return placed


def _hashes(column: Any) -> Any:
    """Return murmur2 of each value, and any number for nulls."""
    offsets = np.frombuffer(column.buffers()[1], dtype=np.int64)[
        column.offset : column.offset + len(column) + 1
    ]
    lengths = np.diff(offsets)
    end = int(offsets[-1])
    # Four more bytes, so that a word can be read wherever a value begins.
    data = np.zeros(end + 4, dtype=np.uint8)
    if end:
        data[:end] = np.frombuffer(column.buffers()[2], dtype=np.uint8)[:end]
    words = np.ndarray(end + 1, dtype="<u4", buffer=data.data, strides=(1,))
    hashed = _SEED ^ lengths.astype(np.uint32)
    whole, at = lengths >> 2, offsets[:-1]
    rows: Any = slice(None)
    for number in range(int(whole.max(initial=0))):
        if number >= whole.min():
            rows = np.flatnonzero(whole > number)
        k = words[at[rows] + 4 * number] * _M
        k ^= k >> np.uint32(24)
        hashed[rows] = (hashed[rows] * _M) ^ (k * _M)
    rest = lengths & 3
    rows = np.flatnonzero(rest)
    if len(rows):
        last = words[at[rows] + 4 * whole[rows]] & _REST[rest[rows]]
        hashed[rows] = (hashed[rows] ^ last) * _M
    hashed ^= hashed >> np.uint32(13)
    hashed *= _M
    hashed ^= hashed >> np.uint32(15)
    return hashed
