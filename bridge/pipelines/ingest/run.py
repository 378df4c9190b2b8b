"""topic -> records -decode-> changes -compact-> changes -merge-> Delta

Progress lives in the table: every MERGE commits the end offsets of its batch with the data it wrote, and a run
starts where the table says. Spark's own checkpoint is scratch space of one run (docs/adr/001).
"""

from __future__ import annotations

import threading
import time
import uuid
from dataclasses import replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from bridge.config import settings_without_effect
from bridge.definition import Definition
from bridge.delta.engine_choice import Engines
from bridge.delta.file_statistics import repair_statistics
from bridge.delta.ingest_progress import IngestProgress, read_progress
from bridge.kafka import admin, source
from bridge.kafka.leader_epochs import with_leader_epochs
from bridge.kafka.offset_availability import check_offsets_available
from bridge.metrics import BatchReport, Listener, Summary, ignore
from bridge.offsets import Offsets
from bridge.pipelines.changes import row_gate
from bridge.pipelines.ingest.batch import apply_batch
from bridge.pipelines.operations.maintain import Schedule
from bridge.pipelines.runtime import lease, query_state
from bridge.pipelines.runtime.kafka_read_errors import explained_read_error
from bridge.pipelines.runtime.monitoring import EventTime, GroupOffsets, Notices, TopicDiscovery
from bridge.pipelines.runtime.preflight import ingest_table
from bridge.pipelines.runtime.retention_warnings import TopicRetention
from bridge.pipelines.runtime.spark_errors import offsets_between

__all__ = ["ingest"]


def ingest(
    spark: SparkSession,
    definition: Definition,
    *,
    listener: Listener = ignore,
    stop: threading.Event | None = None,
) -> Summary:
    """Apply the topic to the table until there is no more (available-now), the bound is reached, or `stop` is set.

    Each batch is one atomic Delta commit that carries its end offsets, so every record is applied exactly
    once whatever happens between batches. The table is created if absent. `listener` hears of each batch after
    its commit. `stop` ends the run after the batch that is running.

    Raises ConcurrentRunError when another run of the pipeline is at work, KafkaError, TableError, GapError before
    anything is written; BadRecordError and ConcurrentRunError from the batch that meets them, which then has no effect.
    """
    with lease.acquire_lease(spark, definition, "ingest") as ours:
        return _Run(spark, definition, listener, stop or threading.Event(), ours).run()


_FULL_DECODES_IN_A_ROW = 2
"""After so many batches in a row that wanted a closer look, all get one. A format that has learnt about a new schema
from the first is not in doubt again."""


_QUERY = "Spark's query over the topic"
"""What fails where no batch does."""


class _StopRequested(Exception):
    """Ends a batch before it has begun."""


class _Run:
    def __init__(
        self,
        spark: SparkSession,
        definition: Definition,
        listener: Listener,
        stop: threading.Event,
        ours: lease.Lease,
    ) -> None:
        self.spark, self.definition, self.listener, self.stop = spark, definition, listener, stop
        self.lease = ours
        self.summary = Summary(definition.name, "ingest")
        self.failure: BaseException | None = None
        self.batch_lock = threading.Lock()
        self.ended = False
        self.full_decodes = 0
        self.doing = _QUERY
        self.checkpoint = ""
        self.events = EventTime(definition.topic)
        self.topic = admin.resolve(definition.topic)
        state = admin.describe(self.topic)
        self.table = ingest_table(spark, definition)
        known = read_progress(self.table, definition.name)
        if known is None:
            offsets, batch = admin.start_offsets(self.topic, state), -1
        else:
            offsets, batch = known[0].offsets, known[0].batch
            check_offsets_available(offsets, state, known[0].topic_ids)
        self.end = admin.end_offsets(self.topic, state)
        self.progress = IngestProgress(definition.name, uuid.uuid4().hex[:12], batch, offsets)
        self._begin(state)
        self.group = GroupOffsets(self.topic)
        self.engines = Engines(definition.merge)
        self.notices, self.schedule = Notices(), Schedule(definition, self.table)
        self.lag = TopicRetention(self.topic, self.table)
        unused = settings_without_effect(definition.topic, "ingest")
        ready = row_gate.check_ready(spark, definition, self.table.fields)
        for warning in (ours.warning, ready, repair_statistics(self.table), *unused):
            self.notices.add(warning)
        if known is not None:
            self.notices.add(self.lag.warning(offsets, self.end or state.end))

    def _begin(self, state: admin.TopicState) -> None:
        """Take the topics as they are now. A partition that progress does not know was added since: its first record
        is the earliest one (Flink: FLIP-288)."""
        start = Offsets({**state.earliest.by_partition, **self.progress.offsets.by_partition})
        self.progress = replace(self.progress, offsets=start, topic_ids=state.ids)
        self.topic_end = state.end
        self.events.watch(state.partitions)

    def run(self) -> Summary:
        started = time.monotonic()
        try:
            self._batches()
        finally:
            self.notices.add(self.group.close())
        if self.failure is not None and not isinstance(self.failure, _StopRequested):
            raise explained_read_error(self.spark, self.failure, self.definition, self.progress, self.doing)
        if not self.stop.is_set():
            self._maintain()
        return replace(
            self.summary,
            maintained=self.schedule.done,
            warning=self.notices.all(),
            seconds=time.monotonic() - started,
        )

    def _maintain(self) -> None:
        """Care for the table, when it is due, while no batch is under way."""
        if self.schedule.due():
            with self.batch_lock:
                self.notices.add(self.schedule.run())

    def _batches(self) -> None:
        if self.progress.batch < 0 and self.topic.startup.mode != "earliest-offset":
            self._anchor()
        if self._finished() or (self.definition.run.trigger_seconds is None and self._at_end()):
            return
        while self._streamed():
            self.topic = admin.resolve(self.definition.topic)
            state = admin.describe(self.topic)
            check_offsets_available(self.progress.offsets, state, self.progress.topic_ids)
            self._begin(state)

    def _anchor(self) -> None:
        """Write down where a start other than the earliest was taken. Else a run that finds nothing would leave no
        trace, and the next one would take up at a later end and miss what came in between."""
        progress = replace(self.progress, batch=0)
        nothing = with_leader_epochs(
            self.spark.createDataFrame([], source.RECORDS), self.topic, Offsets(), Offsets()
        )
        apply_batch(self.definition, self.table, nothing, progress, engines=self.engines)
        self.progress = progress

    def _streamed(self) -> bool:
        """One streaming query, to its end; True when it ended because there are other topics now."""
        self.ended = False
        with query_state.query_state_folder(
            self.spark, self.definition, "ingest", uuid.uuid4().hex[:12]
        ) as place:
            self.checkpoint = place
            return self._stream()

    def _at_end(self) -> bool:
        """Nothing has come since the last batch: no need to start a query to learn that."""
        return self.progress.offsets.reaches(self.topic_end)

    def _finished(self) -> bool:
        return self.end is not None and self.progress.offsets.reaches(self.end)

    def _stream(self) -> bool:
        run = self.definition.run
        records = source.stream(
            self.spark, self.topic, self.progress.offsets, max_offsets=run.max_offsets_per_batch
        )
        writer = (
            records.writeStream.queryName(f"ingest {self.definition.name} {self.progress.run}")
            .option("checkpointLocation", self.checkpoint)
            .foreachBatch(self._guarded)
        )
        if run.trigger_seconds is None:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{int(run.trigger_seconds * 1000)} milliseconds")
        query = writer.start()
        try:
            return self._watch(query)
        finally:
            query.stop()

    def _watch(self, query: StreamingQuery) -> bool:
        discovered = False
        discovery = TopicDiscovery(self.definition, self.topic)
        while query.isActive and not (
            self.stop.is_set() or self._finished() or discovered or self.lease.lost
        ):
            time.sleep(0.1)
            self._maintain()
            discovered = discovery.due() and discovery.topics_changed()
        if query.isActive:
            with self.batch_lock:  # the running batch commits; a next one sees `ended` and writes nothing
                self.ended = True
            self.lease.check()
        elif (failure := query.exception()) is not None:
            self.failure = self.failure or failure
        return discovered and (self.failure is None or isinstance(self.failure, _StopRequested))

    def _guarded(self, records: DataFrame, batch_id: int) -> None:
        """What Spark calls. Keeps the failure as it was raised; Spark would hand back its text only."""
        with self.batch_lock:
            try:
                if self.ended or self.stop.is_set() or self._finished():
                    raise _StopRequested
                self.lease.check()
                self._batch(records, batch_id)
            except BaseException as failure:
                self.failure = failure
                raise

    def _batch(self, records: DataFrame, batch_id: int) -> None:
        started = time.monotonic()
        end = query_state.batch_end(self.spark, self.checkpoint, batch_id)
        if self.end is not None:
            end = end.capped(self.end)
            records = records.where(_below(self.end))
        offsets = self.progress.offsets.advanced(end)
        if offsets == self.progress.offsets:
            return  # the first batch of a query may be empty: no progress, no commit
        records = with_leader_epochs(records, self.topic, self.progress.offsets, offsets)
        progress = replace(self.progress, batch=self.progress.batch + 1, offsets=offsets)
        self.doing = f"batch {progress.batch} ({offsets_between(self.progress.offsets, offsets)})"
        applied = apply_batch(
            self.definition,
            self.table,
            records,
            progress,
            engines=self.engines,
            fast=self.full_decodes < _FULL_DECODES_IN_A_ROW,
        )
        self.doing = _QUERY
        if self.full_decodes < _FULL_DECODES_IN_A_ROW:
            self.full_decodes = self.full_decodes + 1 if applied.needed_full_decode else 0
        self.progress = progress
        self.events.advance(applied.newest_event_ms)
        newest_end = self._newest_end()
        for note in applied.warnings:
            self.notices.add(note)
        self.notices.add(self.group.commit(offsets))
        self.notices.add(self.lag.warning_if_due(offsets, newest_end))
        report = BatchReport(
            pipeline=self.definition.name,
            verb="ingest",
            batch=progress.batch,
            version=applied.merged.version,
            records_in=applied.records,
            inserted=applied.merged.inserted,
            updated=applied.merged.updated,
            deleted=applied.merged.deleted,
            unchanged=applied.unchanged,
            bad_records=applied.bad,
            unexpected_rows=applied.unexpected,
            keys_in_two_partitions=applied.two_partitions,
            pending_records=progress.offsets.lag(newest_end),
            event_time_lag_seconds=self.events.lag_seconds,
            watermark_ms=self.events.watermark_ms,
            engine=applied.engine or None,
            warning=self.notices.new(),
            seconds=time.monotonic() - started,
        )
        self.summary = self.summary.plus(report)
        self.listener(report)

    def _newest_end(self) -> Offsets:
        if self.end is not None:
            return self.end
        if self.definition.run.trigger_seconds is not None:
            self.topic_end = admin.describe(self.topic).end
        return self.topic_end


def _below(end: Offsets) -> Column:
    """Records below `end`; partitions that `end` does not name are not read (Flink: specific-offsets bound)."""
    limits = [part for topic, partition, offset in end for part in (f"{topic}/{partition}", offset)]
    at = F.concat_ws("/", F.col("topic"), F.col("partition"))
    return F.col("offset") < F.create_map(*[F.lit(part) for part in limits])[at] if limits else F.lit(False)
