"""The reader `consumer`: one Spark job reads, compacts and decodes a batch of an upsert topic, without Spark SQL.

Its tasks are Kafka consumers that decode with Arrow. What they cannot decode exactly as Spark's path does, they leave
to it, batch by batch (docs/adr/029).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bridge.arrow_formats.base import ArrowDecoder
from bridge.arrow_formats.catalog import arrow_decoder
from bridge.columns import KIND
from bridge.definition import Definition, Engine, Reader, Topic
from bridge.delta.table import Table
from bridge.errors import MissingPackageError
from bridge.kafka.client_settings import for_consumer, java_reader_settings
from bridge.kafka.latest_rows import LatestRows, LatestRowsTask, NotRead
from bridge.kafka.range_consumer import PartitionRange
from bridge.kafka.task_errors import TaskErrors
from bridge.offsets import Offsets, TopicPartition
from bridge.rows import RowKind
from bridge.schema import PhysicalColumn, ScalarType

__all__ = ["TIMEOUT_SECONDS", "ConsumerReader", "LatestBatch", "NotRead", "unsupported"]

TIMEOUT_SECONDS = 60.0
"""How long a broker may not answer: Kafka's default.api.timeout.ms."""


@dataclass(frozen=True)
class LatestBatch:
    """The last change of each key in a batch."""

    changes: pa.Table
    """The table's columns and `__kind`: '+U' or, with the key columns only, '-D'. One row for each key, in no order."""
    records: int
    upserts: int
    newest_event_ms: dict[TopicPartition, int]
    """The newest value of the watermark column in each partition with such a row; empty without a WATERMARK."""


def unsupported(definition: Definition, topic: Topic) -> str | None:
    """Return why consumers cannot read for this pipeline, as the end of a sentence; None if they can."""
    schema = topic.schema
    if not topic.is_upsert:
        return "the topic is no upsert topic"
    if not definition.compacts_first:
        return "bad records are not to stop the ingest"
    if definition.gate is not None:
        return "the pipeline has a gate"
    if definition.merge.engine is Engine.SPARK:
        return "merge.engine is spark"
    special = [c.name for c in schema.columns if not isinstance(c, PhysicalColumn)]
    if special:
        return f"column {special[0]!r} is a metadata or computed column"
    if schema.watermark is not None and not _is_timestamp(topic, schema.watermark.column):
        return f"the watermark column {schema.watermark.column!r} is no timestamp"
    if java := java_reader_settings(topic):
        return f"'properties.{java[0]}' is for Spark's reader"
    if topic.parallelism is not None:
        return "scan.parallelism is for Spark's reader"
    for spec in (topic.key, topic.value):
        if spec is None:
            return "the topic has no key format"
        decoder = arrow_decoder(spec)
        if isinstance(decoder, str):
            return decoder
    return None


def _is_timestamp(topic: Topic, name: str) -> bool:
    column = next((c for c in topic.schema.physical if c.name == name), None)
    return (
        column is not None
        and isinstance(column.type, ScalarType)
        and column.type.name in ("TIMESTAMP", "TIMESTAMP_LTZ")
    )


class ConsumerReader:
    """Reads batches of a topic for a pipeline that `unsupported` does not refuse."""

    def __init__(self, spark: SparkSession, definition: Definition, topic: Topic, table: Table) -> None:
        assert topic.key is not None
        self._spark, self._topic, self._table = spark, topic, table
        self._key = definition.primary_key
        self._tasks = max(1, spark.sparkContext.defaultParallelism)
        key, value = arrow_decoder(topic.key), arrow_decoder(topic.value)
        assert not isinstance(key, str) and not isinstance(value, str)
        self._decoders: tuple[ArrowDecoder, ArrowDecoder] = (key, value)
        self._required = definition.reader is Reader.CONSUMER
        self._limit_bytes = definition.merge.max_batch_bytes

    def read(self, start: Offsets, end: Offsets, *, job_group: str | None = None) -> LatestBatch | NotRead:
        """Return the fold of the records from `start` to `end`; NotRead where only Spark's path reads them exactly.

        A partition without a start is left out. Where the executors lack a package, NotRead says so, unless the
        pipeline file asks for consumers: then MissingPackageError does. With `job_group` the job, and later ones of
        this thread, are of that group, which `cancel` ends. Raises GapError and KafkaError of a task, and Spark's
        errors.
        """
        if job_group is not None:
            self._spark.sparkContext.setJobGroup(job_group, "read ahead", interruptOnCancel=True)
        ranges = [
            PartitionRange(name, partition, low, high)
            for name, partition, high in end
            if (low := start.get(name, partition)) is not None and low < high
        ]
        results = self._run(ranges)
        parts: list[LatestRows] = []
        for result in results:
            if isinstance(result, NotRead):
                return result
            parts.append(result)
        tables = [part.table() for part in parts]
        changes = pa.concat_tables(tables).select([*self._table.columns, KIND])
        keys = changes.select(list(self._key))
        if keys.group_by(list(self._key)).aggregate([]).num_rows < keys.num_rows:
            return NotRead("a key is in two partitions, or written in two ways")
        return LatestBatch(
            changes,
            records=sum(part.records for part in parts),
            upserts=pc.sum(_is_upsert(changes)).as_py() or 0,
            newest_event_ms=self._newest_event_times(parts, tables),
        )

    def cancel(self, job_group: str) -> None:
        """End the job of a `read` in another thread, which then raises Spark's error. Does nothing without one."""
        self._spark.sparkContext.cancelJobGroup(job_group)

    def _run(self, ranges: Sequence[PartitionRange]) -> list[LatestRows | NotRead]:
        if not ranges:
            return []
        shares = _shares(ranges, self._tasks)
        key, value = self._topic.key, self._topic.value
        assert key is not None
        task = LatestRowsTask(
            settings=for_consumer(self._topic),
            key=self._decoders[0],
            value=self._decoders[1],
            key_columns=key.columns,
            value_columns=value.columns,
            columns=self._table.columns,
            not_null=tuple(c.name for c in self._topic.schema.physical if not c.type.nullable),
            timeout=TIMEOUT_SECONDS,
            limit_bytes=max(1, self._limit_bytes // len(shares)),
        )
        errors = TaskErrors()
        # Of Spark SQL the planning alone would take longer than the tasks of a small batch.
        job = self._spark.sparkContext.parallelize(shares, len(shares)).mapPartitions(errors.task(task.run))
        try:
            return job.collect()
        except (PySparkException, Py4JJavaError) as failure:
            error = errors.error(failure)
            if isinstance(error, MissingPackageError) and not self._required:
                return [NotRead(str(error).partition(":")[0])]
            raise error or failure from None

    def _newest_event_times(
        self, parts: Sequence[LatestRows], tables: Sequence[pa.Table]
    ) -> dict[TopicPartition, int]:
        watermark = self._topic.schema.watermark
        if watermark is None:
            return {}
        newest = {}
        for part, table in zip(parts, tables, strict=True):
            value = pc.max(_upserts(table)[watermark.column])
            if value.is_valid:
                newest[part.topic, part.partition] = value.cast(pa.int64()).as_py() // 1000
        return newest


def _upserts(table: pa.Table) -> pa.Table:
    return table.filter(_is_upsert(table))


def _is_upsert(table: pa.Table) -> pa.ChunkedArray:
    return pc.equal(table[KIND], RowKind.UPDATE_AFTER.value)


def _shares(ranges: Sequence[PartitionRange], tasks: int) -> list[list[PartitionRange]]:
    """Distribute the ranges over at most `tasks` tasks, by their lengths."""
    shares: list[list[PartitionRange]] = [[] for _ in range(min(tasks, len(ranges)))]
    lengths = [0] * len(shares)
    for each in sorted(ranges, key=lambda r: (r.start - r.end, r.topic, r.partition)):
        shortest = lengths.index(min(lengths))
        shares[shortest].append(each)
        lengths[shortest] += each.end - each.start
    return shares
