"""Progress and reports of an ingest, batch by batch."""

from __future__ import annotations

import time
import uuid
from dataclasses import replace

from bridge.definition import BadRecords, Definition, Topic
from bridge.delta.commit_files import commits_since_checkpoint, read_file_changes
from bridge.delta.table import Table
from bridge.ingest_progress import IngestProgress
from bridge.kafka.admin import TopicState
from bridge.metrics import BatchReport, Listener, PartitionRead, Summary, now_ms
from bridge.metrics.steps import taken
from bridge.offsets import Offsets
from bridge.pipelines.ingest.batch import AppliedBatch
from bridge.pipelines.runtime.monitoring import BatchHealth, IngestMonitor

__all__ = ["Bookkeeping"]

_FULL_DECODES_IN_A_ROW = 2
"""After so many consecutive batches that needed the full decode, all later ones skip the fast path. Two, since a new
schema costs a format one full decode only."""

_LOG_SECONDS = 60.0
_MOST_PARTITIONS = 100
"""Of topics with more a report names no partitions: it would be longer than what it is about."""


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
        self._definition, self._table, self._listener = definition, table, listener
        self.progress = IngestProgress(definition.name, uuid.uuid4().hex[:12], batch, offsets)
        self.monitor = IngestMonitor(definition, topic, table)
        self.start_query(state)
        self.summary = Summary(definition.name, "ingest")
        self._full_decodes = 0
        self._look_at_log = 0.0
        self._checkpoint: int | None = None

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
        before = self.progress.offsets
        self._advance(replace(progress, after=applied.merged.version), applied)
        health = self.monitor.after_batch(
            progress.offsets, newest_end, applied.newest_event_ms, applied.warnings
        )
        pending = progress.offsets.lag(newest_end)
        self._report(applied, health, pending, _partitions(before, progress.offsets, newest_end), started)

    def _advance(self, progress: IngestProgress, applied: AppliedBatch) -> None:
        self.progress = replace(progress, newest_ms=None)
        if self.fast:
            self._full_decodes = self._full_decodes + 1 if applied.needed_full_decode else 0
            self.fast = self._full_decodes < _FULL_DECODES_IN_A_ROW

    def _report(
        self,
        applied: AppliedBatch,
        health: BatchHealth,
        pending: int,
        partitions: tuple[PartitionRead, ...],
        started: float,
    ) -> None:
        files = applied.merged.files or read_file_changes(self._table, applied.merged.version)
        report = BatchReport(
            pipeline=self._definition.name,
            verb="ingest",
            batch=self.progress.batch,
            topic=self._definition.topic.title,
            version=applied.merged.version,
            table=self._table.id,
            records_in=applied.read.records,
            bytes_in=applied.read.bytes,
            inserted=applied.merged.inserted,
            updated=applied.merged.updated,
            deleted=applied.merged.deleted,
            unchanged=applied.unchanged,
            bad_records=applied.bad,
            quarantined=self._quarantined(applied),
            unexpected_rows=applied.unexpected,
            keys_in_two_partitions=applied.two_partitions,
            files_written=files.written,
            bytes_written=files.bytes_written,
            files_rewritten=files.rewritten,
            bytes_rewritten=files.bytes_rewritten,
            pending_records=pending,
            log_commits=self._log_commits(applied.merged.version),
            oldest_record_ms=applied.read.oldest_ms,
            newest_record_ms=applied.read.newest_ms,
            read_ms=applied.read.at_ms,
            committed_ms=now_ms(),
            event_time_lag_seconds=health.event_time_lag_seconds,
            watermark_ms=health.watermark_ms,
            engine=applied.engine or None,
            reader=applied.reader or None,
            warning=health.warning,
            seconds=time.monotonic() - started,
            steps=taken(),
            partitions=partitions,
        )
        self.summary = self.summary.plus(report)
        self._listener(report)

    def _quarantined(self, applied: AppliedBatch) -> int:
        bad = applied.bad if self._definition.bad_records is BadRecords.QUARANTINE else 0
        return bad + (applied.unexpected if self._definition.quarantines_rows else 0)

    def _log_commits(self, version: int) -> int | None:
        """The commits since the last checkpoint, which is looked up once in a while."""
        if time.monotonic() >= self._look_at_log:
            self._look_at_log = time.monotonic() + _LOG_SECONDS
            commits = commits_since_checkpoint(self._table, version)
            self._checkpoint = None if commits is None else version - commits
        return None if self._checkpoint is None else version - self._checkpoint


def _partitions(before: Offsets, after: Offsets, end: Offsets) -> tuple[PartitionRead, ...]:
    """What a batch has read of each partition, and where it ends; nothing where they are many."""
    if len(end) > _MOST_PARTITIONS:
        return ()
    return tuple(
        PartitionRead(topic, partition, before.get(topic, partition) or 0, offset, ends or 0)
        for (topic, partition), ends in end.by_partition.items()
        for offset in (after.get(topic, partition) or 0,)
    )
