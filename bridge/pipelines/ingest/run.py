"""topic -> records -decode-> changes -compact-> changes -merge-> Delta

Progress is in the table: every MERGE commits the end offsets of its batch together with the rows, and a run starts
where the table says. Spark's own checkpoint is scratch space of one run (docs/adr/001).
"""

from __future__ import annotations

import threading
import time
import uuid
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from bridge.config import settings_without_effect
from bridge.definition import Definition
from bridge.delta.engine_choice import Engines
from bridge.delta.file_statistics import repair_statistics
from bridge.delta.ingest_progress import IngestProgress, read_progress
from bridge.kafka import admin, source
from bridge.kafka.offset_availability import check_offsets_available
from bridge.metrics import Listener, Summary, ignore
from bridge.offsets import Offsets
from bridge.pipelines.changes import row_gate
from bridge.pipelines.ingest.batch import apply_batch
from bridge.pipelines.ingest.bookkeeping import Bookkeeping
from bridge.pipelines.operations.maintain import Schedule
from bridge.pipelines.runtime import query_state
from bridge.pipelines.runtime.kafka_read_errors import explained_read_error
from bridge.pipelines.runtime.lease import Lease, acquire_lease
from bridge.pipelines.runtime.monitoring import TopicDiscovery
from bridge.pipelines.runtime.preflight import ingest_table
from bridge.pipelines.runtime.spark_errors import offsets_between

__all__ = ["ingest"]

_POLL_SECONDS = 0.1


def ingest(
    spark: SparkSession,
    definition: Definition,
    *,
    listener: Listener = ignore,
    stop: threading.Event | None = None,
) -> Summary:
    """Apply the topic to the table until its end (available-now), its bound, or until `stop` is set.

    Each batch is one atomic Delta commit that carries its end offsets, so every record is applied exactly once
    whatever happens between batches. The table is created if absent. `listener` is called after the commit of each
    batch. `stop` ends the run after the batch that is running.

    Raises ConcurrentRunError when another run of the pipeline holds the lease, KafkaError, TableError and GapError
    before anything is written; BadRecordError, QualityError and ConcurrentRunError from a batch, which then has no
    effect.
    """
    with acquire_lease(spark, definition, "ingest") as lease:
        return _Run(spark, definition, listener, stop or threading.Event(), lease).run()


class _StopRequested(Exception):
    """Ends a batch before it has begun."""


class _Run:
    def __init__(
        self,
        spark: SparkSession,
        definition: Definition,
        listener: Listener,
        stop: threading.Event,
        lease: Lease,
    ) -> None:
        self.spark, self.definition, self.stop, self.lease = spark, definition, stop, lease
        self.failure: BaseException | None = None
        self.batch_lock = threading.Lock()
        self.ended = False
        self.running: IngestProgress | None = None
        self.checkpoint = ""
        self.topic = admin.resolve(definition.topic)
        state = admin.describe(self.topic)
        self.table = ingest_table(spark, definition)
        last = read_progress(self.table, definition.name)
        if last is None:
            offsets, batch = admin.start_offsets(self.topic, state), -1
        else:
            offsets, batch = last[0].offsets, last[0].batch
            check_offsets_available(offsets, state, last[0].topic_ids)
        self.end = admin.end_offsets(self.topic, state)
        self.books = Bookkeeping(definition, self.topic, self.table, listener, offsets, batch, state)
        self.monitor = self.books.monitor
        self.engines = Engines(definition.merge)
        self.schedule = Schedule(definition, self.table)
        self.monitor.notices.add(
            lease.warning,
            row_gate.check_ready(spark, definition, self.table.fields),
            repair_statistics(self.table),
            *settings_without_effect(definition.topic, "ingest"),
        )
        if last is not None:
            self.monitor.check_retention(offsets, self.end or state.end)

    def run(self) -> Summary:
        started = time.monotonic()
        try:
            self._run_queries()
        finally:
            self.monitor.close()
        if self.failure is not None and not isinstance(self.failure, _StopRequested):
            progress = self.books.progress
            raise explained_read_error(self.spark, self.failure, self.definition, progress, self._doing())
        if not self.stop.is_set():
            self._maintain()
        return replace(
            self.books.summary,
            maintained=self.schedule.done,
            warning=self.monitor.notices.all(),
            seconds=time.monotonic() - started,
        )

    def _doing(self) -> str:
        """Name what was running when the run failed."""
        if self.running is None:
            return "Spark's query over the topic"
        offsets = offsets_between(self.books.progress.offsets, self.running.offsets)
        return f"batch {self.running.batch} ({offsets})"

    def _maintain(self) -> None:
        """Maintain the table, when that is due, while no batch is running."""
        if self.schedule.due():
            with self.batch_lock:
                self.monitor.notices.add(self.schedule.run())

    def _run_queries(self) -> None:
        """Run one streaming query after another: each change of the topics that match a pattern begins a new one."""
        progress = self.books.progress
        if progress.batch < 0 and self.topic.startup.mode != "earliest-offset":
            self._commit_start()
        if self._is_finished() or (self.definition.run.trigger_seconds is None and self._is_at_end()):
            return
        while self._run_query():
            progress = self.books.progress
            self.topic = admin.resolve(self.definition.topic)
            state = admin.describe(self.topic)
            check_offsets_available(progress.offsets, state, progress.topic_ids)
            self.books.start_query(state)

    def _commit_start(self) -> None:
        """Commit where a first run starts, unless that is the earliest offset, as a batch without records.

        Otherwise a run without records would leave no progress, and the next run would start at a later end and miss
        the records in between.
        """
        progress = replace(self.books.progress, batch=0)
        no_records = self.spark.createDataFrame([], source.RECORDS)
        apply_batch(
            self.definition,
            self.table,
            no_records,
            progress,
            engines=self.engines,
            start=progress.offsets,
        )
        self.books.progress = progress

    def _run_query(self) -> bool:
        """Run one streaming query to its end; True if it ended because the topics of the pattern have changed."""
        self.ended = False
        with query_state.query_state_folder(
            self.spark, self.definition, "ingest", uuid.uuid4().hex[:12]
        ) as folder:
            self.checkpoint = folder
            query = self._start_query()
            try:
                return self._watch(query)
            finally:
                query.stop()

    def _is_at_end(self) -> bool:
        """True if no record has come since the last batch: no query is needed to find that out."""
        return self.books.progress.offsets.reaches(self.books.topic_end)

    def _is_finished(self) -> bool:
        return self.end is not None and self.books.progress.offsets.reaches(self.end)

    def _start_query(self) -> StreamingQuery:
        run, progress = self.definition.run, self.books.progress
        records = source.stream(
            self.spark, self.topic, progress.offsets, max_offsets=run.max_offsets_per_batch
        )
        writer = (
            records.writeStream.queryName(f"ingest {self.definition.name} {progress.run}")
            .option("checkpointLocation", self.checkpoint)
            .foreachBatch(self._on_batch)
        )
        if run.trigger_seconds is None:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{int(run.trigger_seconds * 1000)} milliseconds")
        return writer.start()

    def _watch(self, query: StreamingQuery) -> bool:
        topics_changed = False
        discovery = TopicDiscovery(self.definition, self.topic)
        while query.isActive and not (
            self.stop.is_set() or self._is_finished() or topics_changed or self.lease.lost
        ):
            time.sleep(_POLL_SECONDS)
            self._maintain()
            topics_changed = discovery.due() and discovery.topics_changed()
        if query.isActive:
            with self.batch_lock:  # the running batch commits; a next one sees `ended` and writes nothing
                self.ended = True
            self.lease.check()
        elif (failure := query.exception()) is not None:
            self.failure = self.failure or failure
        return topics_changed and (self.failure is None or isinstance(self.failure, _StopRequested))

    def _on_batch(self, records: DataFrame, batch_id: int) -> None:
        """Spark's callback (foreachBatch). Stores the failure as it was raised: Spark would return only its text."""
        with self.batch_lock:
            try:
                if self.ended or self.stop.is_set() or self._is_finished():
                    raise _StopRequested
                self.lease.check()
                self._process(records, batch_id)
            except BaseException as failure:
                self.failure = failure
                raise

    def _process(self, records: DataFrame, batch_id: int) -> None:
        """Apply one batch, then update progress, monitoring and reports. An empty batch commits nothing."""
        started = time.monotonic()
        end = query_state.batch_end(self.spark, self.checkpoint, batch_id)
        progress = self.books.next_progress(end if self.end is None else end.capped(self.end))
        if progress is None:
            return
        self.running = progress
        applied = apply_batch(
            self.definition,
            self.table,
            records,
            progress,
            engines=self.engines,
            start=self.books.progress.offsets,
            bound=self.end,
            fast=self.books.fast,
        )
        self.running = None
        self.books.record(progress, applied, self._newest_end(), started)

    def _newest_end(self) -> Offsets:
        if self.end is not None:
            return self.end
        if self.definition.run.trigger_seconds is not None:
            self.books.topic_end = admin.describe(self.topic).end
        return self.books.topic_end
