"""Opens an ingest run and keeps its progress and reports, for both ways of getting batches."""

from __future__ import annotations

import threading
import time
import uuid
from dataclasses import replace

from pyspark.sql import SparkSession

from bridge.config import settings_without_effect
from bridge.definition import BadRecords, Definition, Topic
from bridge.delta.commit_files import commits_since_checkpoint, read_file_changes
from bridge.delta.delta_errors import BrokenConstraint
from bridge.delta.engine_choice import Engines
from bridge.delta.file_statistics import repair_statistics
from bridge.delta.ingest_progress import read_progress
from bridge.delta.merge_semantics import semantics_of
from bridge.delta.rows_taken_back import RowsTakenBack, following, overwrites
from bridge.delta.table import Table
from bridge.ingest_progress import IngestProgress
from bridge.kafka import admin, source
from bridge.kafka.admin import TopicState
from bridge.kafka.group_offsets import starts_at_latest
from bridge.kafka.offset_availability import check_offsets_available
from bridge.metrics import Listener, PartitionRead, Summary, now_ms
from bridge.metrics.steps import step, taken
from bridge.offsets import Offsets
from bridge.pipelines.changes import row_gate
from bridge.pipelines.changes.unfit_rows import with_constraints
from bridge.pipelines.ingest.batch import AppliedBatch, apply_batch, batch_report
from bridge.pipelines.operations.maintain import Schedule
from bridge.pipelines.runtime.lease import Lease
from bridge.pipelines.runtime.monitoring import BatchHealth, IngestMonitor
from bridge.pipelines.runtime.preflight import ingest_table, refuse_other_key, refuse_partitions

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
            reaches=progress.reaches,
        )
        self.start_query(state)

    def next_progress(self, end: Offsets) -> IngestProgress | None:
        """The progress of a batch that ends at `end`, or where one ended that was begun and not recorded; None when it
        has no offsets: then there is nothing to commit."""
        known = self.progress
        offsets = known.offsets.advanced(end).advanced(known.reaches or Offsets())
        if offsets == known.offsets:
            return None
        return replace(
            known, batch=known.batch + 1, offsets=offsets, start=known.offsets, reaches=None, at_ms=now_ms()
        )

    def record(
        self, progress: IngestProgress, applied: AppliedBatch, newest_end: Offsets, started: float
    ) -> None:
        """Take over the progress of a committed batch, observe it, and report it.

        `newest_end` is the end of the topic now, `started` the time.monotonic() at which the batch began.
        """
        before = self.progress.offsets
        self._advance(replace(progress, after=applied.merged.version, start=None), applied)
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
        name, topic = self._definition.name, self._definition.topic.title
        report = replace(
            batch_report(applied, name, self.progress.batch, topic, self._table),
            quarantined=self._quarantined(applied),
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
            event_time_lag_seconds=health.event_time_lag_seconds,
            watermark_ms=health.watermark_ms,
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


PROGRESS_MS = 6 * 3_600_000
"""After this time without records a pipeline commits its progress again, where other pipelines write the table."""


LOOK_SECONDS = 10.0
"""So often a run without new records looks whether another writer took rows back."""
_SKIPPED = (
    "{:,} earlier offsets of the topic are not read: 'scan.startup.mode' is 'group-offsets', and partitions of which "
    "the group has committed no offset start at the latest (Kafka's default); to read them, remove the table and set "
    "'scan.startup.mode' = 'earliest-offset', or 'properties.auto.offset.reset' = 'earliest'"
)


class RunState:
    """Opens the table and the topic, and finds where the run starts and ends.

    Raises KafkaError, TableError and GapError before anything is written, but for an absent table, which it creates.
    """

    running: IngestProgress | None = None
    """The progress of the batch that is being applied."""
    moved: RowsTakenBack | None = None
    """Why the progress is to be read anew, if `maintain` has found that another writer took rows back."""

    def __init__(
        self,
        spark: SparkSession,
        definition: Definition,
        listener: Listener,
        stop: threading.Event,
        lease: Lease,
    ) -> None:
        self.spark, self.definition, self.stop, self.lease = spark, definition, stop, lease
        self.name = definition.run_name("ingest")
        self.batch_lock = threading.Lock()
        self.topic = admin.resolve(definition.topic)
        state = admin.describe(self.topic)
        refuse_partitions(definition, state.end)
        self.table = ingest_table(spark, definition)
        self.definition = definition = with_constraints(definition, self.table)
        last = read_progress(self.table, definition.name)
        if last is None:
            offsets, batch = admin.start_offsets(self.topic, state), -1
            skipped = state.earliest.lag(offsets) if starts_at_latest(self.topic) else 0
        else:
            refuse_other_key(self.table, definition, last[0])
            offsets, batch = last[0].offsets, last[0].batch
            check_offsets_available(offsets, state, last[0].topic_ids)
            skipped = 0
        self.end = admin.end_offsets(self.topic, state)
        self.books = Bookkeeping(definition, self.topic, self.table, listener, offsets, batch, state)
        if last is not None:
            self.books.progress = replace(
                self.books.progress, at_ms=last[0].at_ms, after=last[0].after, reaches=last[0].reaches
            )
        self._look_at = time.monotonic() + LOOK_SECONDS
        self.engines = Engines(definition.merge, semantics_of(definition.delta))
        self.schedule = Schedule(definition, self.table)
        self.monitor = self.books.monitor
        self.monitor.notices.add(
            lease.warning,
            row_gate.check_ready(spark, definition, self.table.change_fields),
            repair_statistics(self.table),
            *settings_without_effect(definition.topic, "ingest"),
            _SKIPPED.format(skipped) if skipped else None,
        )
        if last is not None:
            self.monitor.check_retention(offsets, self.end or state.end)
            if not definition.topic.appends:
                self.monitor.notices.add(*overwrites(self.table, last[1]))

    @property
    def repeats(self) -> bool:
        """True for a run with a trigger, which goes on at the end of the topic."""
        return self.definition.run.trigger_seconds is not None

    def look_up_topics(self) -> None:
        """Take over the topics and partitions as they are now. Raises GapError where records are missing."""
        progress = self.books.progress
        self.topic = admin.resolve(self.definition.topic)
        state = admin.describe(self.topic)
        refuse_partitions(self.definition, state.end)
        check_offsets_available(progress.offsets, state, progress.topic_ids)
        self.books.start_query(state)

    def go_back(self, moved: RowsTakenBack | BrokenConstraint) -> None:
        """Do as a new run does after another writer took rows back, or gave the table a constraint: open the table, and
        continue from its offsets. Raises a BrokenConstraint that was known."""
        self.running = self.moved = None
        self.table = ingest_table(self.spark, self.definition)
        known, self.definition = self.definition.constraints, with_constraints(self.definition, self.table)
        self.engines = Engines(self.definition.merge, semantics_of(self.definition.delta))
        if isinstance(moved, BrokenConstraint) and known == self.definition.constraints:
            raise moved
        last = read_progress(self.table, self.definition.name)
        if last is not None:  # else no batch is committed yet
            refuse_other_key(self.table, self.definition, last[0])
            state = admin.describe(self.topic)
            check_offsets_available(last[0].offsets, state, last[0].topic_ids)
            self.books.go_back(last[0], state)
        if isinstance(moved, RowsTakenBack):
            self.monitor.notices.add(moved.notice(self.table))

    def is_finished(self) -> bool:
        """True where the run has reached its bound."""
        return self.end is not None and self.books.progress.offsets.reaches(self.end)

    def is_at_end(self) -> bool:
        """True if no record has come since the last batch, as far as is known."""
        return self.books.progress.offsets.reaches(self.books.topic_end)

    def maintain(self) -> None:
        """Maintain the table, keep the progress in its log and look for commits that took rows back, when that is due,
        while no batch is running."""
        if time.monotonic() >= self._look_at:
            with self.batch_lock:
                self._look()
        if self.schedule.due():
            longest = self.schedule.every_seconds
            with self.batch_lock, step("maintain", "maintaining the table", at_least=longest):
                self.monitor.notices.add(self.schedule.run())
        if self._progress_is_old():
            with self.batch_lock:
                if self._progress_is_old():
                    self.lease.check()
                    try:
                        self.commit_progress()
                    except RowsTakenBack as moved:
                        self.moved = moved

    def _look(self) -> None:
        self._look_at = time.monotonic() + LOOK_SECONDS
        progress = self.books.progress
        if progress.after is not None:
            key = () if self.definition.topic.appends else None
            try:
                self.books.progress = replace(
                    following(self.table, replace(progress, key=key)), key=progress.key
                )
            except RowsTakenBack as moved:
                self.moved = moved

    def _progress_is_old(self) -> bool:
        """Whether the log, which the commits of other pipelines let Delta clean, may lose the progress of this one."""
        progress = self.books.progress
        return (
            bool(self.definition.delta.merge_columns)
            and progress.batch >= 0
            and now_ms() - progress.at_ms > PROGRESS_MS
        )

    def commit_progress(self, *, starts: bool = False) -> None:
        """Commit the progress as it is, as the next batch, without records. `starts`: a first run begins there."""
        known = self.books.progress
        progress = replace(known, batch=known.batch + 1, at_ms=now_ms(), starts=starts)
        applied = apply_batch(
            self.definition,
            self.table,
            self.spark.createDataFrame([], source.RECORDS),
            progress,
            engines=self.engines,
            start=progress.offsets,
        )
        self.books.progress = replace(progress, after=applied.merged.version, starts=False)
