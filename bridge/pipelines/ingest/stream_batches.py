"""Batches of Structured Streaming: the reader `spark`."""

from __future__ import annotations

import time
import uuid

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from bridge import watchdog
from bridge.kafka import admin, source
from bridge.metrics.steps import watched
from bridge.offsets import Offsets
from bridge.pipelines.ingest.batch import apply_batch
from bridge.pipelines.ingest.run_state import RunState
from bridge.pipelines.runtime import query_state
from bridge.pipelines.runtime.callbacks import CallbackConnection
from bridge.pipelines.runtime.monitoring import TopicDiscovery

_POLL_SECONDS = 0.1


class _StopRequested(Exception):
    """Ends a batch before it has begun."""


class StreamBatches:
    """One streaming query over the topics as they are now.

    Progress is in the table, so Spark's own checkpoint is scratch space of the query (docs/adr/001).
    """

    def __init__(self, run: RunState, reason: str) -> None:
        self._run, self._reason = run, reason
        self._failure: BaseException | None = None
        self._ended = False
        self._checkpoint = ""
        self._connection = CallbackConnection(run.spark)

    def apply(self) -> bool:
        """Apply batches to the end of the run; True if it ended early because the topics of a pattern have changed.

        Raises what a batch raised, as it was raised, and Spark's error where the query failed by itself.
        """
        run = self._run
        with query_state.query_state_folder(
            run.spark, run.definition, "ingest", uuid.uuid4().hex[:12]
        ) as folder:
            self._checkpoint = folder
            query = self._start()
            try:
                topics_changed = self._watch(query)
            finally:
                query.stop()
                self._connection.close()
        if self._failure is not None and not isinstance(self._failure, _StopRequested):
            raise self._failure
        return topics_changed

    def _start(self) -> StreamingQuery:
        run = self._run
        settings, progress = run.definition.run, run.books.progress
        records = source.stream(
            run.spark, run.topic, progress.offsets, max_offsets=settings.max_offsets_per_batch
        )
        # Shared by threads, as py4j calls `_on_batch` in one of its own: all of `RunState`, under its lock; so a client
        # of Kafka has one caller at a time, and librdkafka allows each call from any thread (its INTRODUCTION.md,
        # "Threads and callbacks").
        writer = (
            records.writeStream.queryName(f"ingest {run.definition.name} {progress.run}")
            .option("checkpointLocation", self._checkpoint)
            .foreachBatch(self._on_batch)
        )
        if settings.trigger_seconds is None:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{int(settings.trigger_seconds * 1000)} milliseconds")
        return writer.start()

    def _watch(self, query: StreamingQuery) -> bool:
        run = self._run
        topics_changed = False
        discovery = TopicDiscovery(run.definition, run.topic)
        with watchdog.waiting():
            while query.isActive and not (
                run.stop.is_set() or run.is_finished() or topics_changed or run.lease.lost or run.moved
            ):
                time.sleep(_POLL_SECONDS)
                watchdog.mark(self._doing(query))
                run.maintain()
                if discovery.due():
                    with watchdog.step("looking for new topics and partitions"):
                        topics_changed = discovery.topics_changed()
        if query.isActive:
            # The running batch commits; a next one sees `_ended` and writes nothing.
            with watchdog.waiting(), run.batch_lock:
                self._ended = True
            run.lease.check()
        elif (failure := query.exception()) is not None:
            self._failure = self._failure or failure
        return topics_changed

    def _doing(self, query: StreamingQuery) -> str | None:
        """What Spark does between two callbacks; None while it waits for records, or a callback runs: it has steps."""
        status = {"isTriggerActive": False} if self._run.batch_lock.locked() else query.status
        return f"Spark's query: {status['message']}" if status["isTriggerActive"] else None

    def _on_batch(self, records: DataFrame, batch_id: int) -> None:
        """Spark's callback (foreachBatch). Stores the failure as it was raised: Spark would return only its text."""
        run = self._run
        self._connection.note()
        with run.batch_lock:
            try:
                if self._ended or run.stop.is_set() or run.is_finished():
                    raise _StopRequested
                run.lease.check()
                with watched(run.name, run.definition.run.step_timeout_seconds):
                    self._process(records, batch_id)
            except BaseException as failure:
                self._failure = failure
                raise

    def _process(self, records: DataFrame, batch_id: int) -> None:
        """Apply one batch, then update progress, monitoring and reports. An empty batch commits nothing."""
        run, books = self._run, self._run.books
        started = time.monotonic()
        end = query_state.batch_end(run.spark, self._checkpoint, batch_id)
        progress = books.next_progress(end if run.end is None else end.capped(run.end))
        if progress is None:
            return
        run.running = progress
        applied = apply_batch(
            run.definition,
            run.table,
            records,
            progress,
            engines=run.engines,
            start=books.progress.offsets,
            bound=run.end,
            fast=books.fast,
            reader=self._reason,
        )
        run.running = None
        books.record(progress, applied, self._newest_end(), started)

    def _newest_end(self) -> Offsets:
        run = self._run
        if run.end is not None:
            return run.end
        if run.repeats:
            run.books.topic_end = admin.describe(run.topic).end
        return run.books.topic_end
