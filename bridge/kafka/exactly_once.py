"""Records -> topic in transactions: each task is one slot, and sends what its slot has not sent yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bridge.columns import POSITION, ROUTE
from bridge.definition import Topic
from bridge.errors import KafkaError
from bridge.kafka.packing import SENT, Packing
from bridge.kafka.properties import for_librdkafka
from bridge.kafka.share import Cursor, Share
from bridge.kafka.sink import COUNTS, ProduceResult, collected, counts_of, refuse_speculation
from bridge.kafka.slot import Slot
from bridge.kafka.transactions import consumer_settings
from bridge.kafka.writer import Sent, Writer, producer_settings
from bridge.partitioners import opened
from bridge.published import Stretch

__all__ = ["produce_once"]

_VERSION, _SLOT, _RANK = "__version", "__slot", "__rank"
_HASH_BITS = 32
_HASH = (1 << _HASH_BITS) - 1


@dataclass(frozen=True)
class _SlotTask:
    """All a task needs, as plain values."""

    packing: Packing
    share: Share
    partitioner: str
    chunk: int
    unique: bool
    """Rows of the same rank have no order, and must not be in two transactions."""

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        number, slot = context.partitionId(), None
        with ExitStack() as stack:
            place = None
            for batch in _whole(batches) if self.unique else batches:
                if not batch.num_rows:
                    continue
                if slot is None or place is None:  # a slot without records leaves the broker in peace
                    slot = stack.enter_context(Slot(self.share, number, self._writer(number)))
                    place = _Place(slot.cursor, self.chunk)
                if batch.column(_SLOT).unique().to_pylist() != [number]:
                    raise KafkaError(f"rows of other slots came to slot {number}: nothing of them is sent")
                rest, upto = place.after(batch)
                if rest.num_rows:
                    slot.add(self.packing.records(rest), upto)
        yield counts_of(Sent() if slot is None else slot.sent)

    def _writer(self, number: int) -> Any:
        def make(settings: Mapping[str, Any]) -> Writer:
            return Writer(settings, partitioner=opened(self.partitioner, number, self.share.slots))

        return make


def _whole(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows, in batches that do not end between two rows of the same rank: these have no order."""
    held: pa.RecordBatch | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        if held is not None:
            if held.column(_RANK)[-1] == batch.column(_RANK)[0]:
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
        versions = batch.column(_VERSION).to_numpy(zero_copy_only=False)
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


def produce_once(
    records: DataFrame,
    topic: Topic,
    stretch: Stretch,
    *,
    prefix: str,
    run: str,
    max_rows: int,
    manner: str = "",
    resync: str = "",
    unique: bool = False,
) -> ProduceResult:
    """Send the `records` of `stretch` (see sink.produce; with `__position` struct<version>) and wait for it.

    Each record is in the topic exactly once for readers of committed records, however often this is called for the
    stretch, by whomever: a slot's records have one order (version, a hash of the key, key, all else) and its
    transactions, of about `max_rows` records, hold how many of them are sent. A record's slot is a hash of its key, or
    of `__route`, or of all of it; so a key's changes are in the order of versions. `unique` says that no key has two
    records in a version: then records are told apart by the hash alone, and those that share one are sent in any order,
    in one transaction. `run` is the Control's: a younger one's ends this call.

    `records` must be the same rows each time, for which `manner` stands: a stretch that was begun with another one is
    refused; the result counts what this call sent. What slots noted before the resync of that name counts for nothing.
    Raises ConcurrentRunError when another run took over, KafkaError as sink.produce; slots that had committed keep
    what they sent.
    """
    refuse_speculation(records.sparkSession)
    task = _SlotTask(
        packing=Packing(topic.names, topic.pattern),
        share=Share(
            prefix=prefix,
            run=run,
            topics=topic.names,
            slots=stretch.slots,
            first=stretch.first,
            producer=producer_settings(for_librdkafka(topic.properties, "producer"), checked=True),
            consumer=consumer_settings(topic.properties),
            manner=manner,
            buffer_rows=topic.sink.buffer_rows,
            buffer_interval_ms=topic.sink.buffer_interval_ms,
            max_rows=max_rows,
            resync=resync,
        ),
        partitioner=topic.sink.partitioner,
        chunk=stretch.chunk,
        unique=unique and topic.key is not None,
    )
    sent = [c for c in SENT if c in records.columns]
    shared = ["key"] if topic.key is not None else [ROUTE] if ROUTE in records.columns else sent
    version = F.col(f"{POSITION}.version")
    # One number is the fastest that Spark sorts by, and where it does not tell all records apart, it still tells most.
    within = F.xxhash64(*shared).bitwiseAND(_HASH) if shared != sent else F.lit(0)
    rank = F.shiftleft(version - stretch.first, _HASH_BITS).bitwiseOR(within)
    rows = records.withColumn(_RANK, rank)
    order = [_RANK]
    if task.unique:
        rows = rows.drop(POSITION)
    else:
        order += ["key", POSITION, *(c for c in sent if c != "key")]
    rows = rows.repartition(stretch.slots, *shared).sortWithinPartitions(*order)
    # The same hash that Spark's repartitioning uses; every task checks that it got its own rows.
    slot = F.pmod(F.hash(*shared), F.lit(stretch.slots))
    version = F.shiftright(_RANK, _HASH_BITS) + stretch.first
    rows = rows.select(*sent, _RANK, version.alias(_VERSION), slot.alias(_SLOT))
    return collected(rows.mapInArrow(task.run, COUNTS))
