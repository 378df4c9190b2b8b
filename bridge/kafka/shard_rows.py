"""Arrow batches of a shard's rows: cut by shard, joined at equal ranks, and without the rows before a cursor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from bridge.errors import KafkaError
from bridge.kafka.shard_state import Cursor

SHARD, VERSION, RANK = "__shard", "__version", "__rank"
"""Columns beside those of a record: its shard's number, its version, and what orders it within the shard."""


def split_by_shard(
    batches: Iterable[pa.RecordBatch], legal: Iterable[int], message: Callable[[int], str]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the rows in their order with their shard's number, cut wherever another shard begins.

    Raises KafkaError with `message` of the number for a shard that is not `legal`, and for a shard whose rows are not
    contiguous, since its row count would start again. It is raised before the transaction that is open at that point
    is committed.
    """
    remaining, current = set(legal), None
    for batch in batches:
        if not batch.num_rows:
            continue
        numbers = batch.column(SHARD).to_numpy(zero_copy_only=False)
        begins = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist()]
        for begin, end in zip(begins, [*begins[1:], len(numbers)], strict=True):
            number = int(numbers[begin])
            if number != current:
                if number not in remaining:
                    raise KafkaError(message(number))
                remaining.remove(number)
                current = number
            yield number, batch.slice(begin, end - begin)


def join_equal_ranks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in batches that never end between two rows of one rank, since these have no fixed order."""
    pending: pa.RecordBatch | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        if pending is not None:
            if pending.column(RANK)[-1] == batch.column(RANK)[0]:
                pending = pa.concat_batches([pending, batch])
                continue
            yield pending
        pending = batch
    if pending is not None:
        yield pending


class UnsentRows:
    """Counts a shard's rows by version, batch by batch, and removes those before a cursor."""

    def __init__(self, cursor: Cursor, chunk: int) -> None:
        self._cursor, self._chunk = cursor, chunk
        self._version, self._rows = -1, 0
        """The last row's version, and the number of its rows so far."""

    def next(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Cursor]:
        """Return the batch's rows after the cursor, and the cursor after the batch's last row."""
        versions = batch.column(VERSION).to_numpy(zero_copy_only=False)
        sent = self._count_sent(versions)
        last = int(versions[-1])
        rows = len(versions) - int(np.searchsorted(versions, last, "left"))
        if last == self._version:
            rows += self._rows
        self._version, self._rows = last, rows
        return batch.slice(sent), Cursor(last, self._chunk, rows)

    def _count_sent(self, versions: Any) -> int:
        """Return how many of a batch's rows, from its first, are in the topic already."""
        cursor = self._cursor
        before, through = (int(np.searchsorted(versions, cursor.version, side)) for side in ("left", "right"))
        if cursor.chunk > self._chunk:
            return through
        if cursor.chunk < self._chunk:
            return before
        counted = self._rows if self._version == cursor.version else 0
        return before + min(through - before, max(0, cursor.rows - counted))
