"""The reader `consumer`: one Spark job reads, compacts and decodes a batch of a keyed changelog, without Spark SQL.

Its tasks are Kafka consumers that decode with Arrow. What they cannot decode exactly as Spark's path does, they leave
to it, batch by batch (docs/adr/029).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from bridge.arrow_formats.catalog import arrow_decoder, change_arrow_decoder
from bridge.columns import KIND
from bridge.definition import Definition, Reader, Topic
from bridge.delta.merge_semantics import kept_column
from bridge.delta.row_constraints import NULL_FOLDER
from bridge.delta.table import Table
from bridge.kafka.client_settings import for_consumer
from bridge.kafka.folded_changes import ChangeReading
from bridge.kafka.latest_rows import LatestChangesTask, LatestRowsTask
from bridge.kafka.partial_updates import PartialUpdates
from bridge.kafka.read_counts import ReadCounts
from bridge.kafka.record_decoders import EventDecoder, RecordDecoder, UpsertDecoder
from bridge.offsets import Offsets, TopicPartition
from bridge.pipelines.ingest.consumer_job import TIMEOUT_SECONDS, ConsumerJob, ranges_between
from bridge.pipelines.ingest.writer_schemas import reading_unknown_schemas, with_writer_schemas
from bridge.rows import RowKind
from bridge.ways import NotThisWay

_Task: TypeAlias = LatestRowsTask | LatestChangesTask


@dataclass(frozen=True)
class LatestBatch:
    """The changes of a batch that count."""

    changes: pa.Table
    """The columns of a change and `__kind`: '+U' or, with the columns of the key and the sequence only, '-D'. One row
    for each key, or in a history for each key and sequence, in no order. Where a row may keep values, the columns of
    `kept_column`, too: a value that is kept is null here."""
    read: ReadCounts
    end: Offsets
    """Where the batch ends: at the end that was asked for or, in partitions of tasks that keep more than their share of
    `merge.max-batch`, earlier."""
    upserts: int
    newest_event_ms: dict[TopicPartition, int]
    """The newest value of the watermark column in each partition with such a row; empty without a WATERMARK."""
    superseded: pa.Table
    """Under `gate: quarantine`, which judges each row: the '+U' rows that are not the last change of their key, in the
    same columns. Else empty."""


class ConsumerReader:
    """Reads batches of a topic for a pipeline that `refuse_unsupported` accepts."""

    def __init__(self, spark: SparkSession, definition: Definition, topic: Topic, table: Table) -> None:
        self._topic = topic
        self._job = ConsumerJob(spark, topic.properties, required=definition.reader is Reader.CONSUMER)
        self._key, self._sequence = definition.primary_key, definition.delta.sequence_by
        self._is_history = definition.delta.history is not None
        self._partial = _partial_updates(definition)
        self._columns = tuple(f.name for f in table.change_fields)
        self._not_null = not_null_columns(definition)
        self._decodes_all = not definition.compacts_first
        self._returns_all = definition.quarantines_rows
        self._partitions = {c.partition for c in definition.constraints if c.partition is not None}
        self._watermark = topic.schema.watermark.column if topic.schema.watermark else None
        self._make_task = self._task()
        self._limit_bytes = definition.merge.max_batch_bytes

    def read(self, start: Offsets, end: Offsets, *, job_group: str | None = None) -> LatestBatch:
        """Return the fold of the records from `start` to `end`, or to an earlier end (`LatestBatch.end`). Raises
        NotThisWay where only Spark's path reads them exactly.

        A partition without a start is left out. Where the executors lack a package, NotThisWay says so, unless the
        pipeline file asks for consumers: then MissingPackageError does. With `job_group` the job, and later ones of
        this thread, are of that group, which `cancel` ends. Raises GapError and KafkaError of a task, KafkaError for
        a schema registry that cannot be reached, and Spark's errors.
        """
        ranges = ranges_between(start, end)
        limit_bytes = max(1, self._limit_bytes // max(1, min(self._job.tasks, len(ranges))))
        parts = reading_unknown_schemas(
            lambda: self._job.run(ranges, self._make_task(limit_bytes), tag=job_group),
            self._topic.key,
            self._topic.value,
        )
        flags = self._partial.flags.values() if self._partial is not None else ()
        changes = pa.concat_tables([p.table() for p in parts]).select([*self._columns, KIND, *flags])
        superseded = [rows for part in parts if (rows := part.superseded()) is not None]
        key = [*self._key, *(self._sequence if self._is_history else ())]
        if changes.group_by(key).aggregate([]).num_rows < changes.num_rows:
            raise NotThisWay("a key is in two partitions, or written in two ways")
        for name in sorted(self._partitions):
            if _may_be_lost(changes[name]):
                raise NotThisWay(f"a partition column, {name!r}, may not hold a value of the batch")
        return LatestBatch(
            changes,
            read=ReadCounts.sum(part.read for part in parts),
            end=Offsets(
                {**end.by_partition, **{name: at for part in parts for name, at in part.ends.items()}}
            ),
            upserts=pc.sum(pc.equal(changes[KIND], RowKind.UPDATE_AFTER.value)).as_py() or 0,
            newest_event_ms={name: at // 1000 for part in parts for name, at in part.newest.items()},
            superseded=pa.concat_tables(
                [changes.slice(0, 0), *(t.select(changes.column_names) for t in superseded)]
            ),
        )

    def cancel(self, job_group: str) -> None:
        """End the job of a `read` in another thread, which then raises Spark's error. Does nothing without one."""
        self._job.cancel(job_group)

    def _task(self) -> Callable[[int], _Task]:
        """Return what makes the task of a batch for a limit of bytes; it asks the schema registry."""
        if not self._topic.is_upsert:
            return self._change_task(self._event_decoder())
        counts_each = self._sequence or self._partial is not None
        return self._change_task(self._upsert_decoder()) if counts_each else self._latest_task()

    def _latest_task(self) -> Callable[[int], _Task]:
        decoder = self._upsert_decoder()
        return lambda limit_bytes: LatestRowsTask(
            settings=for_consumer(self._topic),
            decoder=decoder(),
            columns=self._columns,
            decodes_all=self._decodes_all,
            returns_all=self._returns_all,
            not_null=self._not_null,
            watermark=self._watermark,
            timeout=TIMEOUT_SECONDS,
            limit_bytes=limit_bytes,
        )

    def _change_task(self, decoder: Callable[[], RecordDecoder]) -> Callable[[int], _Task]:
        """The same for records of which each counts."""
        return lambda limit_bytes: LatestChangesTask(
            settings=for_consumer(self._topic),
            reading=ChangeReading(
                decoder=decoder(),
                key=self._key,
                sequence=self._sequence,
                not_null=self._not_null,
                watermark=self._watermark,
                returns_all=self._returns_all,
                is_history=self._is_history,
                partial=self._partial,
            ),
            timeout=TIMEOUT_SECONDS,
            limit_bytes=limit_bytes,
        )

    def _upsert_decoder(self) -> Callable[[], UpsertDecoder]:
        key, value, schema = self._topic.key, self._topic.value, self._topic.schema
        if key is None:
            raise NotThisWay("the topic has no key format")
        key_decoder, value_decoder = arrow_decoder(key), arrow_decoder(value)
        return lambda: UpsertDecoder(
            key=with_writer_schemas(key_decoder, key),
            value=with_writer_schemas(value_decoder, value),
            key_columns=key.columns,
            value_columns=value.columns,
            metadata={column.name: column.key for column in schema.metadata},
            sequence=self._sequence,
        )

    def _event_decoder(self) -> Callable[[], EventDecoder]:
        key, value = self._topic.key, self._topic.value
        key_decoder = None if key is None else arrow_decoder(key)
        decoder = change_arrow_decoder(value, (*self._key, *self._sequence))
        return lambda: EventDecoder(
            with_writer_schemas(decoder, value),
            None if key is None or key_decoder is None else with_writer_schemas(key_decoder, key),
        )


def _partial_updates(definition: Definition) -> PartialUpdates | None:
    if not (kept := definition.kept_columns):
        return None
    by = definition.delta.update_columns
    names = () if by is None else (*definition.primary_key, *kept, by)
    flags = {name: kept_column(name) for name in kept}
    not_null = tuple(c.not_null for c in definition.constraints if c.not_null is not None)
    return PartialUpdates(
        flags, definition.delta.ignore_nulls, by, names, not_null, definition.delta.aggregate
    )


def not_null_columns(definition: Definition) -> tuple[str, ...]:
    """The columns that are NOT NULL in the DDL or in the table."""
    of_table = (c.not_null for c in definition.constraints if c.not_null is not None)
    of_ddl = (c.name for c in definition.topic.schema.physical if not c.type.nullable)
    return tuple(dict.fromkeys((*of_ddl, *of_table)))


def _may_be_lost(values: pa.ChunkedArray) -> bool:
    """Whether a partition column may not hold one of the values, see `row_constraints`."""
    if pa.types.is_binary(values.type):
        return bool(values.null_count < len(values))
    is_null = pc.is_in(values, pa.array(["", NULL_FOLDER], values.type))
    return bool(pc.any(pc.or_(is_null, pc.match_substring(values, "\0"))).as_py())
