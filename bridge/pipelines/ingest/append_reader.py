"""The reader `consumer` of a table without a key: tasks of one Spark job read a batch and write it into data files.

No row comes to the driver, which commits the files (docs/adr/044).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import SparkSession

from bridge import failpoints
from bridge.arrow_formats.catalog import arrow_decoder
from bridge.definition import Definition, Reader, Topic
from bridge.delta.append_files import AppendTarget, FileAppends
from bridge.delta.merge_contract import MergeResult
from bridge.delta.rows_taken_back import RowsTakenBack
from bridge.errors import QualityError
from bridge.ingest_progress import IngestProgress
from bridge.kafka.client_settings import for_consumer
from bridge.kafka.read_counts import ReadCounts
from bridge.lake.new_files import delete_data_files
from bridge.offsets import Offsets, TopicPartition
from bridge.options import FORMATS
from bridge.pipelines.ingest.append_task import AppendTask
from bridge.pipelines.ingest.batch import AppliedBatch
from bridge.pipelines.ingest.consumer_job import TIMEOUT_SECONDS, ConsumerJob, ranges_between
from bridge.pipelines.ingest.consumer_reader import not_null_columns
from bridge.pipelines.ingest.writer_schemas import reading_unknown_schemas, with_writer_schemas
from bridge.ways import NotThisWay


@dataclass(frozen=True)
class AppendedBatch:
    """Data files with the rows of a batch, in no order, that are in no version of the table yet."""

    target: AppendTarget
    adds: tuple[dict[str, Any], ...]
    rows: int
    read: ReadCounts
    end: Offsets
    newest_event_ms: dict[TopicPartition, int]


class AppendReader:
    """Reads batches of a topic for a pipeline that `refuse_unsupported` accepts. See `ConsumerReader`.

    Raises NotThisWay for a table to which no files can be appended."""

    def __init__(
        self, spark: SparkSession, definition: Definition, topic: Topic, appends: FileAppends
    ) -> None:
        self._topic, self._appends = topic, appends
        self._not_null = not_null_columns(definition)
        self._job = ConsumerJob(spark, topic.properties, required=definition.reader is Reader.CONSUMER)

    def read(self, start: Offsets, end: Offsets, *, job_group: str | None = None) -> AppendedBatch:
        """Write the rows of the records from `start` to `end` into data files. Raises as `ConsumerReader.read`, and
        NotThisWay where the table has changed; no file is left then."""
        target = self._appends.target()
        found = reading_unknown_schemas(
            lambda: self._job.run(ranges_between(start, end), self._task(target), tag=job_group),
            self._topic.key,
            self._topic.value,
        )
        return AppendedBatch(
            target,
            tuple(add for files in found for add in files.adds),
            rows=sum(files.rows for files in found),
            read=ReadCounts.sum(files.read for files in found),
            end=end,
            newest_event_ms={at: ms for files in found for at, ms in files.newest_event_ms.items()},
        )

    def cancel(self, job_group: str) -> None:
        """End the job of a `read` in another thread, which then raises Spark's error. Does nothing without one."""
        self._job.cancel(job_group)

    def _task(self, target: AppendTarget) -> AppendTask:
        topic, schema = self._topic, self._topic.schema
        value, key = topic.value, topic.key
        decoder = arrow_decoder(value)
        key_decoder = None if key is None else arrow_decoder(key)
        return AppendTask(
            settings=for_consumer(topic),
            value=with_writer_schemas(decoder, value),
            value_columns=value.columns,
            key=None if key is None or key_decoder is None else with_writer_schemas(key_decoder, key),
            key_columns=() if key is None else key.columns,
            metadata={column.name: column.key for column in schema.metadata},
            not_null=self._not_null,
            watermark=schema.watermark.column if schema.watermark else None,
            schema=target.schema,
            store=target.store,
            columns_with_statistics=target.columns_with_statistics,
            timeout=TIMEOUT_SECONDS,
            null_is_row=FORMATS[value.name].null_is_row,
        )


def apply_appended(
    appends: FileAppends,
    batch: AppendedBatch,
    progress: IngestProgress,
    *,
    judge: Callable[[AppendedBatch], tuple[int, tuple[str, ...]]] = lambda batch: (0, ()),
) -> AppliedBatch:
    """Commit the files of `batch` together with `progress`. Does and raises as `apply_batch` does for the same records;
    raises NotThisWay, with no file left, if the table has changed since the files were written. `judge` returns how
    many rows break a rule of the gate, and its warnings; what it raises leaves no file either."""
    progress = replace(progress, newest_ms=batch.read.newest_ms, reader="consumer")
    failpoints.hit("ingest.before-merge")
    try:
        unexpected, warnings = judge(batch)
        merged: MergeResult = appends.commit(batch.target, batch.adds, rows=batch.rows, progress=progress)
    except (NotThisWay, RowsTakenBack, QualityError):
        delete_data_files(batch.target.store, batch.adds)
        raise
    failpoints.hit("ingest.after-merge")
    return AppliedBatch(
        merged=merged,
        read=batch.read,
        newest_event_ms=batch.newest_event_ms,
        reader=progress.reader,
        unexpected=unexpected,
        warnings=warnings,
    )
