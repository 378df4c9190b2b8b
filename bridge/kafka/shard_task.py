"""The task of an exactly-once publish: rows -> the shards they belong to, each behind what it has sent already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from bridge.errors import KafkaError
from bridge.kafka.arrow_records import ArrowRecords
from bridge.kafka.producer import RecordProducer
from bridge.kafka.records import SendCounts
from bridge.kafka.shard import TransactionalShard
from bridge.kafka.shard_state import Cursor, ShardSpec
from bridge.kafka.sink import counts_batch
from bridge.partitioners import opened

__all__ = ["RANK", "SHARD", "VERSION", "ShardTask"]

SHARD, VERSION, RANK = "__slot", "__version", "__rank"
"""Beside a record's columns: its shard's number, its version, and with `unique` what orders it within the shard."""


@dataclass(frozen=True)
class ShardTask:
    """All a task needs, as plain values."""

    packing: ArrowRecords
    spec: ShardSpec
    partitioner: str
    chunk: int
    partition_counts: Mapping[str, int] = field(default_factory=dict)
    """How many partitions each topic had when the batch began: one number for all shards."""
    unique: bool = False
    """Rows of the same rank have no order, and must not be in two transactions."""
    task_per_shard: bool = True
    """A task has the shard of its own number, and no other one; else it has as many as come, one after the other."""

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        """Send what the shards of these rows have not sent yet; a shard without rows leaves the broker in peace."""
        context = TaskContext.get()
        assert context is not None
        legal = {context.partitionId()} if self.task_per_shard else set(range(self.spec.shards))
        sent = SendCounts()
        for number, parts in groupby(self._parts(batches, legal), key=itemgetter(0)):
            sent += self._send_shard(number, (part for _, part in parts))
        yield counts_batch(sent)

    def _send_shard(self, number: int, batches: Iterable[pa.RecordBatch]) -> SendCounts:
        with TransactionalShard(self.spec, number, self._producer_factory(number)) as shard:
            place = _Place(shard.cursor, self.chunk)
            for batch in _whole(batches) if self.unique else batches:
                rest, upto = place.after(batch)
                if rest.num_rows:
                    shard.add(self.packing.records(rest), upto)
        return shard.counts

    def _parts(
        self, batches: Iterable[pa.RecordBatch], legal: set[int]
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows in their order, cut wherever another shard begins.

        Raises KafkaError for a shard that is not `legal`, and for a shard whose rows are not contiguous, since its row
        count would start again. It is raised before the transaction that is open at that point is committed."""
        current = None
        for batch in batches:
            if not batch.num_rows:
                continue
            numbers = batch.column(SHARD).to_numpy(zero_copy_only=False)
            begins = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist()]
            for begin, end in zip(begins, [*begins[1:], len(numbers)], strict=True):
                number = int(numbers[begin])
                if number != current:
                    if number not in legal:
                        raise KafkaError(self._stray(number))
                    legal.remove(number)
                    current = number
                yield number, batch.slice(begin, end - begin)

    def _stray(self, number: int) -> str:
        if self.task_per_shard:
            return f"rows of shard {number} came to another one's task: nothing of them is sent"
        return (
            "rows came that are not the next ones of a data file: nothing of them is sent. Each file must be read by "
            "one task, from its beginning on, as Spark's own reader of files does; leave out what takes its place"
        )

    def _producer_factory(self, number: int) -> Any:
        def make(settings: Mapping[str, Any]) -> RecordProducer:
            made = opened(self.partitioner, number, self.spec.shards)
            return RecordProducer(settings, partitioner=made, partition_counts=self.partition_counts)

        return make


def _whole(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows, in batches that do not end between two rows of the same rank: these have no order."""
    held: pa.RecordBatch | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        if held is not None:
            if held.column(RANK)[-1] == batch.column(RANK)[0]:
                held = pa.concat_batches([held, batch])
                continue
            yield held
        held = batch
    if held is not None:
        yield held


class _Place:
    """Counts rows by version, batch by batch, to tell those behind a cursor from those before it."""

    def __init__(self, cursor: Cursor, chunk: int) -> None:
        self._cursor, self._chunk = cursor, chunk
        self._version, self._rows = -1, 0
        """How many rows of this version have passed."""

    def after(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Cursor]:
        """The batch's rows that lie behind the cursor, and the place after the last of them."""
        versions = batch.column(VERSION).to_numpy(zero_copy_only=False)
        sent = self._sent(versions)
        last = int(versions[-1])
        rows = len(versions) - int(np.searchsorted(versions, last, "left"))
        if last == self._version:
            rows += self._rows
        self._version, self._rows = last, rows
        return batch.slice(sent), Cursor(last, self._chunk, rows)

    def _sent(self, versions: Any) -> int:
        """How many of a batch's rows, from its first, are in the topic already."""
        cursor = self._cursor
        before, through = (int(np.searchsorted(versions, cursor.version, side)) for side in ("left", "right"))
        if cursor.chunk > self._chunk:
            return through
        if cursor.chunk < self._chunk:
            return before
        passed = self._rows if self._version == cursor.version else 0
        return before + min(through - before, max(0, cursor.rows - passed))
