"""The Spark task of an exactly-once publish: sends rows through the shards they belong to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from bridge.kafka.arrow_records import ArrowRecords
from bridge.kafka.producer import RecordProducer
from bridge.kafka.records import SendCounts
from bridge.kafka.shard import TransactionalShard
from bridge.kafka.shard_rows import UnsentRows, join_equal_ranks, split_by_shard
from bridge.kafka.shard_state import ShardSpec
from bridge.kafka.sink import counts_batch
from bridge.partitioners import opened


@dataclass(frozen=True)
class ShardTask:
    """Everything a task needs, as plain values."""

    packing: ArrowRecords
    spec: ShardSpec
    partitioner: str
    chunk: int
    partition_counts: Mapping[str, int] = field(default_factory=dict)
    """Each topic's number of partitions when the batch began: the same for all shards."""
    unique: bool = False
    """Rows of the same rank have no fixed order, and must be in one transaction."""
    task_per_shard: bool = True
    """A task has the shard of its own number and no other. False: it has any number of shards, one after the other."""

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Send the unsent rows of each shard in `batches`; a shard without rows opens no connection.

        Outside of a task they are those of all shards, one after the other."""
        context = TaskContext.get()
        legal = set(range(self.spec.shards))
        if self.task_per_shard and context is not None:
            legal = {context.partitionId()}
        counts = SendCounts()
        parts = split_by_shard(batches, legal, self.stray_message)
        for number, shard_parts in groupby(parts, key=itemgetter(0)):
            counts += self._send_shard(number, (part for _, part in shard_parts))
        yield counts_batch(counts)

    def stray_message(self, number: int) -> str:
        """Return the message for rows of shard `number` where it may not be."""
        if self.task_per_shard:
            return f"rows of shard {number} are in the task of another shard: none of them is sent"
        return (
            "a task received rows that do not continue a data file: none of them is sent. Each file must be read by "
            "one task, from its beginning, as Spark's own file reader does; remove what replaces it"
        )

    def _send_shard(self, number: int, batches: Iterable[pa.RecordBatch]) -> SendCounts:
        with TransactionalShard(self.spec, number, self._producer_factory(number)) as shard:
            unsent = UnsentRows(shard.cursor, self.chunk)
            for batch in join_equal_ranks(batches) if self.unique else batches:
                rows, upto = unsent.next(batch)
                if rows.num_rows:
                    shard.add(self.packing.records(rows), upto)
        return shard.counts

    def _producer_factory(self, number: int) -> Callable[[Mapping[str, Any]], RecordProducer]:
        def make(settings: Mapping[str, Any]) -> RecordProducer:
            partitioner = opened(self.partitioner, number, self.spec.shards)
            return RecordProducer(settings, partitioner=partitioner, partition_counts=self.partition_counts)

        return make
