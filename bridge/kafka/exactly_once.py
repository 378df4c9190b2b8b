"""Sends records to a topic in transactions: each shard sends the records after its cursor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bridge.arrow_formats.record_encoder import RecordEncoder
from bridge.backend.plans import plan_tasks
from bridge.columns import POSITION, ROUTE
from bridge.definition import Topic
from bridge.kafka.arrow_records import ArrowRecords
from bridge.kafka.client_settings import for_librdkafka, producer_settings
from bridge.kafka.records import SendCounts
from bridge.kafka.shard_rows import RANK, SHARD, VERSION
from bridge.kafka.shard_state import ShardSpec
from bridge.kafka.shard_task import ShardTask
from bridge.kafka.sink import (
    COUNTS_SCHEMA,
    UnencodedRecords,
    collect_counts,
    refuse_speculation,
    send_rows,
)
from bridge.kafka.task_errors import TaskErrors
from bridge.kafka.topic_creation import partition_counts
from bridge.kafka.transactions import consumer_settings
from bridge.kafka.worker_check import expected
from bridge.publish_progress import PublishRange
from bridge.session import session_settings

_HASH_BITS = 32
HASH_MASK = (1 << _HASH_BITS) - 1
WHOLE_FILES = {
    "spark.sql.files.maxPartitionBytes": str(1 << 40),
    "spark.sql.files.openCostInBytes": str(1 << 40),
}
"""Settings with which Spark splits no file and reads each in a task of its own."""


@dataclass(frozen=True)
class TransactionalSink:
    """The identity of a publish and the size of its transactions."""

    prefix: str
    """`sink.transactional-id-prefix`."""
    run: str
    """Control.run: a newer run's Control ends sending."""
    max_rows: int
    """About how many records a transaction has."""
    plan_fingerprint: str = ""
    """A digest of what decides which records a range has. A range that was begun with another plan is refused."""
    resync: str = ""
    """The name of the last resync. Cursors that shards recorded before it are ignored."""

    def shard_spec(self, topic: Topic, publish_range: PublishRange) -> ShardSpec:
        """Return what every shard of the range needs to know."""
        return ShardSpec(
            prefix=self.prefix,
            run=self.run,
            topics=topic.names,
            shards=publish_range.shards,
            first=publish_range.first,
            producer=producer_settings(for_librdkafka(topic.properties, "producer"), checked=True),
            consumer=consumer_settings(topic.properties),
            plan_fingerprint=self.plan_fingerprint,
            buffer_rows=topic.sink.buffer_rows,
            buffer_interval_ms=topic.sink.buffer_interval_ms,
            max_rows=self.max_rows,
            resync=self.resync,
            cursors_recorded=publish_range.cursors_recorded,
        )

    def initial_offset_metadata(
        self, topic: Topic, publish_range: PublishRange, shards: Iterable[int]
    ) -> dict[str, str]:
        """Map the consumer groups of `shards` to their offset metadata when the range opens; see Control.record."""
        spec = self.shard_spec(topic, publish_range)
        return {spec.group(number): spec.initial_offset_metadata() for number in shards}


def produce_once(
    records: DataFrame | UnencodedRecords,
    topic: Topic,
    publish_range: PublishRange,
    sink: TransactionalSink,
    *,
    unique: bool = False,
    hash_mask: int = HASH_MASK,
) -> SendCounts:
    """Send the `records` of `publish_range` (see sink.produce; with `__position` struct<version>) and wait for it.

    A reader of committed records sees each record exactly once, however often and by whichever process this is called
    for the range: a shard's records have one order (version, a hash of the key, key, all other columns), and its
    transactions commit a cursor that counts them. A record's shard is a hash of its key, of `__route`, or of the whole
    record, so a key's changes are sent in the order of versions. `unique` promises that no key has two records in a
    version: then the hash alone (with `hash_mask`) orders the records, and records of equal hash are sent in any order,
    in one transaction.

    `records` must be the same rows on each call; the result counts what this call sent. Raises ConcurrentRunError when
    another run took over, KafkaError as sink.produce; what shards have committed stays.
    """
    frame = records if isinstance(records, DataFrame) else records.encoded()
    task = _task(topic, publish_range, sink, unique=unique and topic.key is not None)
    columns = task.packing.columns(frame.columns)
    routed_by = ["key"] if topic.key is not None else [ROUTE] if ROUTE in frame.columns else columns
    version = F.col(f"{POSITION}.version")
    # Spark sorts fastest by one number. Where it does not distinguish all records, it distinguishes most.
    hashed = F.xxhash64(*routed_by).bitwiseAND(hash_mask) if routed_by != columns else F.lit(0)
    rank = F.shiftleft(version - publish_range.first, _HASH_BITS).bitwiseOR(hashed)
    rows = frame.withColumn(RANK, rank)
    order = [RANK]
    if task.unique:
        rows = rows.drop(POSITION)
    else:
        order += ["key", POSITION, *(c for c in columns if c != "key")]
    rows = rows.repartition(publish_range.shards, *routed_by).sortWithinPartitions(*order)
    # The same hash that Spark's repartitioning uses; every task verifies that it has its own rows.
    shard = F.pmod(F.hash(*routed_by), F.lit(publish_range.shards))
    version = F.shiftright(RANK, _HASH_BITS) + publish_range.first
    refuse_speculation(frame.sparkSession)
    return send_rows(rows.select(*columns, RANK, version.alias(VERSION), shard.alias(SHARD)), task, topic)


def produce_files(
    records: DataFrame | UnencodedRecords,
    topic: Topic,
    publish_range: PublishRange,
    sink: TransactionalSink,
    files: Sequence[str],
    *,
    read_settings: Mapping[str, str] = WHOLE_FILES,
) -> SendCounts:
    """Send `records` as `produce_once` does, without a shuffle: file i of `files` is shard i, in the order of its rows.

    `records` are the rows of these files (URIs, as Spark names them), one record for each row and no others; no key has
    two among them, since there is no order between files. The tasks that send them encode what is not encoded yet.
    Raises KafkaError as `produce_once`, and where Spark splits a file despite `read_settings`.
    """
    frame, encoder = (records, None) if isinstance(records, DataFrame) else records.for_tasks()
    task = _task(topic, publish_range, sink, task_per_shard=False, encoder=encoder)
    columns = task.packing.columns(frame.columns)
    # Files are compared by a hash, which costs less for each row than the name.
    begin = F.lit(0).cast("bigint")
    file_hashes = F.array(*(F.xxhash64(F.lit(file), begin) for file in files))
    row_hash = F.xxhash64(F.input_file_name(), F.input_file_block_start())
    shard = F.array_position(file_hashes, row_hash) - 1
    version = F.lit(publish_range.first).cast("bigint")
    refuse_speculation(frame.sparkSession)
    task_errors = TaskErrors(expected(topic.properties))
    assigned = frame.select(*columns, version.alias(VERSION), shard.alias(SHARD))
    counts = assigned.mapInArrow(task_errors.task(task.run), COUNTS_SCHEMA)
    with session_settings(frame.sparkSession, read_settings):
        # Makes the plan that collecting executes.
        plan_tasks(counts)
    return collect_counts(counts, task_errors)


def _task(
    topic: Topic,
    publish_range: PublishRange,
    sink: TransactionalSink,
    *,
    unique: bool = False,
    task_per_shard: bool = True,
    encoder: RecordEncoder | None = None,
) -> ShardTask:
    return ShardTask(
        packing=ArrowRecords.of(topic, encoder),
        spec=sink.shard_spec(topic, publish_range),
        partitioner=topic.sink.partitioner,
        chunk=publish_range.chunk,
        partition_counts=partition_counts(topic),
        unique=unique,
        task_per_shard=task_per_shard,
    )
