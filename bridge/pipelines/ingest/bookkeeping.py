"""Progress and reports of an ingest, batch by batch."""

from __future__ import annotations

import time
import uuid
from dataclasses import replace

from bridge.definition import Definition, Topic
from bridge.delta.ingest_progress import IngestProgress
from bridge.delta.table import Table
from bridge.kafka.admin import TopicState
from bridge.metrics import BatchReport, Listener, Summary, now_ms
from bridge.offsets import Offsets
from bridge.pipelines.ingest.batch import AppliedBatch
from bridge.pipelines.runtime.monitoring import BatchHealth, IngestMonitor

__all__ = ["Bookkeeping"]

_FULL_DECODES_IN_A_ROW = 2
"""After so many consecutive batches that needed the full decode, all later ones skip the fast path. Two, since a new
schema costs a format one full decode only."""


class Bookkeeping:
    """Keeps the progress of a run, its monitor and its reports. Close the monitor at the end."""

    progress: IngestProgress
    """Of the last commit; before the first one, where the run starts."""
    topic_end: Offsets
    """The end of the topic when it was last read."""
    fast: bool = True
    """Whether the next batch tries the fast path."""

    def __init__(
        self,
        definition: Definition,
        topic: Topic,
        table: Table,
        listener: Listener,
        offsets: Offsets,
        batch: int,
        state: TopicState,
    ) -> None:
        self._definition, self._listener = definition, listener
        self.progress = IngestProgress(definition.name, uuid.uuid4().hex[:12], batch, offsets)
        self.monitor = IngestMonitor(definition, topic, table)
        self.start_query(state)
        self.summary = Summary(definition.name, "ingest")
        self._full_decodes = 0

    def start_query(self, state: TopicState) -> None:
        """Take over the partitions that the topics have now.

        A partition that progress does not contain was added since: it is read from its earliest offset (Flink:
        FLIP-288).
        """
        start = Offsets({**state.earliest.by_partition, **self.progress.offsets.by_partition})
        self.progress = replace(self.progress, offsets=start, topic_ids=state.ids)
        self.topic_end = state.end
        self.monitor.watch(state.partitions)

    def go_back(self, progress: IngestProgress, state: TopicState) -> None:
        """Take over the progress of a table whose rows were taken back."""
        self.progress = replace(
            self.progress,
            batch=progress.batch,
            offsets=progress.offsets,
            at_ms=progress.at_ms,
            after=progress.after,
        )
        self.start_query(state)

    def next_progress(self, end: Offsets) -> IngestProgress | None:
        """The progress of a batch that ends at `end`; None when it has no offsets: then there is nothing to commit."""
        offsets = self.progress.offsets.advanced(end)
        if offsets == self.progress.offsets:
            return None
        return replace(self.progress, batch=self.progress.batch + 1, offsets=offsets, at_ms=now_ms())

    def record(
        self, progress: IngestProgress, applied: AppliedBatch, newest_end: Offsets, started: float
    ) -> None:
        """Take over the progress of a committed batch, observe it, and report it.

        `newest_end` is the end of the topic now, `started` the time.monotonic() at which the batch began.
        """
        self._advance(replace(progress, after=applied.merged.version), applied)
        health = self.monitor.after_batch(
            progress.offsets, newest_end, applied.newest_event_ms, applied.warnings
        )
        self._report(applied, health, progress.offsets.lag(newest_end), time.monotonic() - started)

    def _advance(self, progress: IngestProgress, applied: AppliedBatch) -> None:
        self.progress = progress
        if self.fast:
            self._full_decodes = self._full_decodes + 1 if applied.needed_full_decode else 0
            self.fast = self._full_decodes < _FULL_DECODES_IN_A_ROW

    def _report(self, applied: AppliedBatch, health: BatchHealth, pending: int, seconds: float) -> None:
        report = BatchReport(
            pipeline=self._definition.name,
            verb="ingest",
            batch=self.progress.batch,
            topic=self._definition.topic.title,
            version=applied.merged.version,
            records_in=applied.read.records,
            bytes_in=applied.read.bytes,
            inserted=applied.merged.inserted,
            updated=applied.merged.updated,
            deleted=applied.merged.deleted,
            unchanged=applied.unchanged,
            bad_records=applied.bad,
            unexpected_rows=applied.unexpected,
            keys_in_two_partitions=applied.two_partitions,
            pending_records=pending,
            oldest_record_ms=applied.read.oldest_ms,
            newest_record_ms=applied.read.newest_ms,
            read_ms=applied.read.at_ms,
            committed_ms=now_ms(),
            event_time_lag_seconds=health.event_time_lag_seconds,
            watermark_ms=health.watermark_ms,
            engine=applied.engine or None,
            reader=applied.reader or None,
            warning=health.warning,
            seconds=seconds,
        )
        self.summary = self.summary.plus(report)
        self._listener(report)
