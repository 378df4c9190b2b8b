"""Batches of the reader `consumer`: ranges of offsets that the driver chooses, one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

from bridge import watchdog
from bridge.definition import Reader
from bridge.errors import GapError
from bridge.ingest_progress import IngestProgress
from bridge.kafka import admin, source
from bridge.kafka.offset_availability import check_offsets_available
from bridge.metrics.steps import step
from bridge.offsets import Offsets
from bridge.pipelines.ingest.append_reader import AppendReader, apply_appended
from bridge.pipelines.ingest.batch import AppliedBatch, apply_batch
from bridge.pipelines.ingest.batch_range import Trigger, next_end
from bridge.pipelines.ingest.consumer_job import TIMEOUT_SECONDS
from bridge.pipelines.ingest.consumer_reader import ConsumerReader
from bridge.pipelines.ingest.consumer_support import refuse_unsupported_table
from bridge.pipelines.ingest.latest_batch import apply_latest
from bridge.pipelines.ingest.read_ahead import BatchReader, ReadAhead
from bridge.pipelines.ingest.run_state import RunState
from bridge.pipelines.runtime.kafka_read_errors import gap_error
from bridge.pipelines.runtime.monitoring import TopicDiscovery
from bridge.ways import NotThisWay

__all__ = ["ConsumerBatches", "consumer_batches"]

_Batch = TypeVar("_Batch")

_POLL_SECONDS = 0.05
_NOT_READ_IN_A_ROW = 2
"""After so many consecutive batches that consumers could not read, Spark's source reads on."""


def consumer_batches(run: RunState) -> ConsumerBatches[Any]:
    """Return the batches of a pipeline that `consumer_support` does not refuse. Raises NotThisWay where its table
    refuses them."""
    appends = refuse_unsupported_table(run.definition, run.topic, run.table)
    if appends is None:
        reader = ConsumerReader(run.spark, run.definition, run.topic, run.table)
        return ConsumerBatches(
            run, reader, partial(apply_latest, run.definition, run.table, engines=run.engines)
        )
    appended = AppendReader(run.spark, run.definition, run.topic, appends)
    return ConsumerBatches(run, appended, partial(apply_appended, appends))


class ConsumerBatches(Generic[_Batch]):
    """Reads the topics as they are now. `gave_up` says why Spark's source is to read on; None as long as it is not."""

    def __init__(
        self,
        run: RunState,
        reader: BatchReader[_Batch],
        apply_batch: Callable[[_Batch, IngestProgress], AppliedBatch],
    ) -> None:
        self._run, self._reader, self._apply_batch = run, ReadAhead(reader), apply_batch
        self._not_read = 0
        self.gave_up: str | None = None

    def apply(self) -> bool:
        """Apply batches to the end of the run; True if it ended early: because the topics of a pattern or their
        partitions have changed, or because it gave up.

        Raises what a batch raised.
        """
        with self._reader:
            return self._apply()

    def _apply(self) -> bool:
        run = self._run
        trigger = Trigger(run.definition.run.trigger_seconds)
        discovery = TopicDiscovery(run.definition, run.topic)
        while not (run.stop.is_set() or run.is_finished() or run.lease.lost):
            run.maintain()
            if run.moved is not None:
                return False
            if discovery.due() and discovery.topics_changed():
                return True
            if not trigger.due():
                with watchdog.waiting():
                    time.sleep(_POLL_SECONDS)
            elif run.repeats and self._look_up_end():
                return True
            elif (progress := self._next_progress()) is not None:
                with run.batch_lock:
                    run.lease.check()
                    self._process(progress)
                if self.gave_up is not None:
                    return True
            elif not run.repeats:
                return False
        run.lease.check()
        return False

    def _look_up_end(self) -> bool:
        """Look up where the topics end now; True if they have partitions that are to be read from now on.

        Raises GapError when a topic was created anew, or has lost records.
        """
        run, progress = self._run, self._run.books.progress
        with watchdog.step("looking up the end of the topic"):
            state = admin.describe(run.topic, timeout=TIMEOUT_SECONDS)
        check_offsets_available(progress.offsets, state, progress.topic_ids)
        run.books.topic_end = state.end
        added = set(state.partitions) - set(progress.offsets.by_partition)
        return bool(added) and run.topic.discovery_interval_ms > 0

    def _next_progress(self) -> IngestProgress | None:
        """The progress after the next batch; None where there is nothing to read."""
        start = self._run.books.progress.offsets
        return self._run.books.next_progress(self._reader.end_after(start) or self._next_end(start))

    def _next_end(self, start: Offsets) -> Offsets:
        run, ends = self._run, self._run.books.topic_end.by_partition
        known = Offsets({key: ends[key] for key in start.by_partition if key in ends})
        end = next_end(start, known, run.definition.run.max_offsets_per_batch)
        return end if run.end is None else end.capped(run.end)

    def _process(self, progress: IngestProgress) -> None:
        """Apply the records up to `progress`, then update progress, monitoring and reports."""
        run = self._run
        started = time.monotonic()
        run.running = progress
        applied = self._applied(run.books.progress.offsets, progress)
        run.running = None
        run.books.record(progress, applied, run.end or run.books.topic_end, started)

    def _applied(self, start: Offsets, progress: IngestProgress) -> AppliedBatch:
        try:
            applied = self._applied_as_read(start, progress)
        except NotThisWay as refused:
            reason = str(refused)
        else:
            self._not_read = 0
            return applied
        run = self._run
        self._reader.discard()  # what makes this batch useless makes the next one useless
        self._not_read += 1
        if self._not_read == _NOT_READ_IN_A_ROW and run.definition.reader is Reader.AUTO:
            self.gave_up = reason
        records = source.read(run.spark, run.topic, start, progress.offsets)
        return apply_batch(
            run.definition,
            run.table,
            records,
            progress,
            engines=run.engines,
            start=start,
            fast=run.books.fast,
            reader=reason,
        )

    def _applied_as_read(self, start: Offsets, progress: IngestProgress) -> AppliedBatch:
        """Apply what consumers read. Raises NotThisWay where only Spark's path reads it exactly."""
        run = self._run
        try:
            with step("read", f"reading batch {progress.batch}"):
                batch = self._reader.read(start, progress.offsets)
        except GapError:
            raise gap_error(run.definition, run.books.progress) from None
        self._reader.read_ahead(progress.offsets, self._next_end(progress.offsets))
        with step("merge", f"merging batch {progress.batch}"):
            return self._apply_batch(batch, progress)
