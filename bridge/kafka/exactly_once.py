"""Records -> topic in transactions: each shard sends what it has not sent yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bridge.columns import POSITION, ROUTE
from bridge.definition import Topic
from bridge.kafka.arrow_records import RECORD_COLUMNS, ArrowRecords
from bridge.kafka.client_settings import for_librdkafka
from bridge.kafka.producer_settings import producer_settings
from bridge.kafka.shard_state import ShardSpec
from bridge.kafka.shard_task import RANK, SHARD, VERSION, ShardTask
from bridge.kafka.sink import COUNTS_SCHEMA, ProduceResult, collect_counts, refuse_speculation
from bridge.kafka.task_errors import TaskErrors
from bridge.kafka.topic_creation import partition_counts
from bridge.kafka.transactions import consumer_settings
from bridge.publish_progress import PublishRange
from bridge.session import session_settings

__all__ = ["TransactionalSink", "produce_files", "produce_once"]

_HASH_BITS = 32
_HASH = (1 << _HASH_BITS) - 1

_WHOLE_FILES = {
    "spark.sql.files.maxPartitionBytes": str(1 << 40),
    "spark.sql.files.openCostInBytes": str(1 << 40),
}
"""No file is cut in two, and each has a task to itself."""


@dataclass(frozen=True)
class TransactionalSink:
    """On whose behalf a range is sent."""

    prefix: str
    """`sink.transactional-id-prefix`."""
    run: str
    """The Control's: a younger one's ends this call."""
    max_rows: int
    """A transaction holds about as many records."""
    plan_fingerprint: str = ""
    """Stands for what makes the records of a range the same each time: one begun with another manner is refused."""
    resync: str = ""
    """What shards noted before the resync of that name counts for nothing."""

    def shard_spec(self, topic: Topic, publish_range: PublishRange) -> ShardSpec:
        """What each shard of the range is told."""
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
        """For each of these `shards` its group and what it holds when the range is opened; see Control.record."""
        share = self.shard_spec(topic, publish_range)
        return {share.group(number): share.initial_offset_metadata() for number in shards}


def produce_once(
    records: DataFrame,
    topic: Topic,
    publish_range: PublishRange,
    sink: TransactionalSink,
    *,
    unique: bool = False,
) -> ProduceResult:
    """Send the `records` of `publish_range` (see sink.produce; with `__position` struct<version>) and wait for it.

    Each record is in the topic exactly once for readers of committed records, however often and by whichever process
    this is called for the range: a shard's records have one order (version, a hash of the key, key, all else), and its
    transactions record how many of them are sent. A record's shard is a hash of its key, of `__route`, or of the whole
    record, so a key's changes are in the order of versions. `unique` says that no key has two records in a version:
    then the hash alone orders the records, and records with the same hash are sent in any order, in one transaction.

    `records` must be the same rows each time; the result counts what this call sent. Raises ConcurrentRunError when
    another run took over, KafkaError as sink.produce; shards that had committed keep what they sent.
    """
    task = _task(topic, publish_range, sink, unique=unique and topic.key is not None)
    columns = [c for c in RECORD_COLUMNS if c in records.columns]
    routed_by = ["key"] if topic.key is not None else [ROUTE] if ROUTE in records.columns else columns
    version = F.col(f"{POSITION}.version")
    # One number is the fastest that Spark sorts by, and where it does not tell all records apart, it still tells most.
    within = F.xxhash64(*routed_by).bitwiseAND(_HASH) if routed_by != columns else F.lit(0)
    rank = F.shiftleft(version - publish_range.first, _HASH_BITS).bitwiseOR(within)
    rows = records.withColumn(RANK, rank)
    order = [RANK]
    if task.unique:
        rows = rows.drop(POSITION)
    else:
        order += ["key", POSITION, *(c for c in columns if c != "key")]
    rows = rows.repartition(publish_range.shards, *routed_by).sortWithinPartitions(*order)
    # The same hash that Spark's repartitioning uses; every task checks that it got its own rows.
    shard = F.pmod(F.hash(*routed_by), F.lit(publish_range.shards))
    version = F.shiftright(RANK, _HASH_BITS) + publish_range.first
    refuse_speculation(records.sparkSession)
    task_errors = TaskErrors()
    assigned = rows.select(*columns, RANK, version.alias(VERSION), shard.alias(SHARD))
    return collect_counts(assigned.mapInArrow(task_errors.task(task.run), COUNTS_SCHEMA), task_errors)


def produce_files(
    records: DataFrame,
    topic: Topic,
    publish_range: PublishRange,
    sink: TransactionalSink,
    files: Sequence[str],
) -> ProduceResult:
    """As `produce_once`, without moving a record: the i-th of `files` is shard i, and the order of its rows is theirs.

    `records` are the rows of these files (URIs, as Spark names them), one by one and nothing else; no key has two among
    them, for they have no order from file to file. Raises KafkaError, too, where Spark cuts a file in two.
    """
    task = _task(topic, publish_range, sink, own=False)
    columns = [c for c in RECORD_COLUMNS if c in records.columns]
    # Where a row comes from is a number, which is cheaper for each row than the name.
    begin = F.lit(0).cast("bigint")
    numbers = F.array(*(F.xxhash64(F.lit(file), begin) for file in files))
    here = F.xxhash64(F.input_file_name(), F.input_file_block_start())
    shard = F.array_position(numbers, here) - 1
    version = F.lit(publish_range.first).cast("bigint")
    refuse_speculation(records.sparkSession)
    task_errors = TaskErrors()
    assigned = records.select(*columns, version.alias(VERSION), shard.alias(SHARD))
    counts = assigned.mapInArrow(task_errors.task(task.run), COUNTS_SCHEMA)
    with session_settings(records.sparkSession, _WHOLE_FILES):
        counts._jdf.queryExecution().toRdd().getNumPartitions()  # plans what collecting will run
    return collect_counts(counts, task_errors)


def _task(
    topic: Topic,
    publish_range: PublishRange,
    sender: TransactionalSink,
    *,
    unique: bool = False,
    own: bool = True,
) -> ShardTask:
    return ShardTask(
        packing=ArrowRecords.of(topic),
        spec=sender.shard_spec(topic, publish_range),
        partitioner=topic.sink.partitioner,
        partition_counts=partition_counts(topic),
        chunk=publish_range.chunk,
        unique=unique,
        task_per_shard=own,
    )
