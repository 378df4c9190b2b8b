"""The state of one ingest run, which the two ways of getting batches share."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

from pyspark.sql import SparkSession

from bridge.config import settings_without_effect
from bridge.definition import Definition
from bridge.delta.delta_errors import BrokenConstraint
from bridge.delta.engine_choice import Engines
from bridge.delta.file_statistics import repair_statistics
from bridge.delta.ingest_progress import read_progress
from bridge.delta.merge_semantics import semantics_of
from bridge.delta.rows_taken_back import RowsTakenBack, following, overwrites
from bridge.ingest_progress import IngestProgress
from bridge.kafka import admin, source
from bridge.kafka.group_offsets import starts_at_latest
from bridge.kafka.offset_availability import check_offsets_available
from bridge.metrics import Listener, now_ms
from bridge.metrics.steps import step
from bridge.pipelines.changes import row_gate
from bridge.pipelines.changes.unfit_rows import with_constraints
from bridge.pipelines.ingest.batch import apply_batch
from bridge.pipelines.ingest.bookkeeping import Bookkeeping
from bridge.pipelines.operations.maintain import Schedule
from bridge.pipelines.runtime.lease import Lease
from bridge.pipelines.runtime.preflight import ingest_table

__all__ = ["LOOK_SECONDS", "PROGRESS_MS", "RunState"]

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
        self.table = ingest_table(spark, definition)
        self.definition = definition = with_constraints(definition, self.table)
        last = read_progress(self.table, definition.name)
        if last is None:
            offsets, batch = admin.start_offsets(self.topic, state), -1
            skipped = state.earliest.lag(offsets) if starts_at_latest(self.topic) else 0
        else:
            offsets, batch = last[0].offsets, last[0].batch
            check_offsets_available(offsets, state, last[0].topic_ids)
            skipped = 0
        self.end = admin.end_offsets(self.topic, state)
        self.books = Bookkeeping(definition, self.topic, self.table, listener, offsets, batch, state)
        if last is not None:
            self.books.progress = replace(self.books.progress, at_ms=last[0].at_ms, after=last[0].after)
        self._look_at = time.monotonic() + LOOK_SECONDS
        self.engines = Engines(definition.merge, semantics_of(definition.delta))
        self.schedule = Schedule(definition, self.table)
        self.monitor = self.books.monitor
        self.monitor.notices.add(
            lease.warning,
            row_gate.check_ready(spark, definition, self.table.fields),
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
