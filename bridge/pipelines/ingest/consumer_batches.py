"""Applies batches between offsets that the driver chooses: of consumers, or of Spark's batch source.

`Trigger` and `next_end` say when a batch begins and where it ends. `ReadAhead` reads the next batch while the present
one is merged. What consumers have read is decoded and compacted already: `apply_latest` merges it.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from math import floor
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa
from pyspark.sql import functions as F

from bridge import failpoints, watchdog
from bridge.columns import KIND
from bridge.definition import Definition, GateAction, Reader
from bridge.delta.append_files import written_rows
from bridge.delta.engine_choice import Engines, changes_frame
from bridge.delta.table import Table
from bridge.errors import GapError
from bridge.ingest_progress import IngestProgress
from bridge.kafka import admin, source
from bridge.kafka.offset_availability import check_offsets_available
from bridge.metrics.steps import step
from bridge.offsets import Offsets
from bridge.pipelines.changes import row_gate
from bridge.pipelines.ingest.append_reader import AppendedBatch, AppendReader, apply_appended
from bridge.pipelines.ingest.batch import AppliedBatch, apply_batch
from bridge.pipelines.ingest.consumer_job import TIMEOUT_SECONDS
from bridge.pipelines.ingest.consumer_reader import ConsumerReader, LatestBatch
from bridge.pipelines.ingest.consumer_support import refuse_unsupported_table
from bridge.pipelines.ingest.run_state import RunState
from bridge.pipelines.runtime.kafka_read_errors import gap_error
from bridge.pipelines.runtime.monitoring import TopicDiscovery
from bridge.rows import RowKind
from bridge.ways import NotThisWay


class Trigger:
    """Spark's processing-time trigger: batches begin at multiples of the interval; one that takes longer is followed
    by the next at once. Without an interval each batch follows at once."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._next = 0.0

    def due(self) -> bool:
        """True once per interval."""
        if self._seconds is None:
            return True
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = (floor(now / self._seconds) + 1) * self._seconds if self._seconds else now
        return True


def next_end(start: Offsets, end: Offsets, limit: int) -> Offsets:
    """The end of the next batch: `end`, or `limit` offsets after `start`, in proportion to what is left of each.

    A partition that `start` does not name is read from offset 0. Unlike Spark's source, it uses the limit up, so that
    whole batches leave no small one at the end.
    """
    left = {key: max(0, stop - start.by_partition.get(key, 0)) for key, stop in end.by_partition.items()}
    total = sum(left.values())
    if total <= limit:
        return end
    parts = {key: limit * count // total for key, count in left.items()}
    rest = limit - sum(parts.values())
    for key in sorted(left, key=lambda k: (-(limit * left[k] % total), k))[:rest]:
        parts[key] += 1
    return Offsets({key: start.by_partition.get(key, 0) + count for key, count in parts.items()})


def apply_latest(
    definition: Definition, table: Table, batch: LatestBatch, progress: IngestProgress, *, engines: Engines
) -> AppliedBatch:
    """Apply `batch` to `table`, in one commit that carries `progress`. Does and raises as `apply_batch` does for the
    same records."""
    unexpected, warnings = _judged(definition, table, batch)
    progress = replace(progress, newest_ms=batch.read.newest_ms, reader="consumer")
    failpoints.hit("ingest.before-merge")
    merged = engines.merge(
        table,
        batch.changes,
        key=definition.primary_key,
        adds=batch.upserts,
        progress=progress,
    )
    failpoints.hit("ingest.after-merge")
    return AppliedBatch(
        merged=merged,
        read=batch.read,
        newest_event_ms=batch.newest_event_ms,
        unchanged=merged.unchanged(batch.changes.num_rows),
        reader=progress.reader,
        unexpected=unexpected,
        warnings=(*warnings, *merged.warnings),
    )


def _judged(definition: Definition, table: Table, batch: LatestBatch) -> tuple[int, tuple[str, ...]]:
    """How many rows break a rule of the gate, and its warnings. Raises QualityError under `gate: fail`, and NotThisWay
    where it quarantines a record, which Spark's path reads once more."""
    if definition.gate is None:
        return 0, ()
    rows = changes_frame(table, pa.concat_tables([batch.changes, batch.superseded]))
    if row_gate.diverts(definition, rows):
        raise NotThisWay("the gate quarantines a row")
    return row_gate.enforce_before_write(definition, rows, row_gate.aggregate(definition, rows))


def _judged_files(definition: Definition, table: Table, batch: AppendedBatch) -> tuple[int, tuple[str, ...]]:
    """Do as `_judged` for files that tasks have written. Raises NotThisWay where the gate must name or quarantine
    records."""
    if definition.gate is None or not batch.adds:
        return 0, ()
    rows = written_rows(table, batch.target, batch.adds).withColumn(KIND, F.lit(RowKind.INSERT.value))
    if row_gate.diverts(definition, rows):
        raise NotThisWay("the gate quarantines a row")
    values = row_gate.aggregate(definition, rows)
    if definition.gate.action is GateAction.FAIL:
        if row_gate.unexpected_rows(row_gate.read_counts(definition, rows, values)):
            raise NotThisWay("the gate names a row without a key by its record")
        return 0, ()
    return row_gate.enforce_before_write(definition, rows, values)


class _Read(Protocol):
    """A batch that was read."""

    @property
    def end(self) -> Offsets:
        """Where it ends, which may be before the end that was asked for."""
        ...


_Batch = TypeVar("_Batch", bound=_Read)
_Batch_co = TypeVar("_Batch_co", bound=_Read, covariant=True)


class BatchReader(Protocol[_Batch_co]):
    """Reads batches of a topic by jobs whose tasks are consumers. See `ConsumerReader`, which promises the same."""

    def read(self, start: Offsets, end: Offsets, *, job_group: str | None = None) -> _Batch_co:
        """Return the batch of the records from `start` to `end`. Raises NotThisWay where only Spark's path reads them
        exactly."""
        ...

    def cancel(self, job_group: str) -> None:
        """End the job of a `read` in another thread, which then raises Spark's error. Does nothing without one."""
        ...


class ReadAhead(Generic[_Batch]):
    """A reader that can be told which batch comes next; a context manager.

    Batches are read once each and returned in the order in which they are asked for. What reading one ahead raises,
    `read` raises when it asks for it. At the end of the block nothing is being read any more.
    """

    def __init__(self, reader: BatchReader[_Batch]) -> None:
        self._reader = reader
        # Shared by threads, as this one reads while another one commits: what the reader has, which is the SparkContext
        # (py4j opens a connection for each thread), values that do not change, the client of the schema registry (see
        # `RegistryClient`), and of a table without a key `FileAppends`, which has a lock. A batch is handed over whole,
        # and its Arrow tables are immutable. Engines, and the DeltaTables and files that they open, are the other
        # thread's alone.
        self._pool = ThreadPoolExecutor(1, "read-ahead")
        self._group = f"read-ahead {uuid.uuid4().hex}"
        self._ahead: tuple[Offsets, Offsets] | None = None
        self._future: Future[_Batch] = Future()

    def end_after(self, start: Offsets) -> Offsets | None:
        """Where the batch ends that begins at `start` and is being read ahead; None if there is none."""
        return self._ahead[1] if self._ahead is not None and self._ahead[0] == start else None

    def read(self, start: Offsets, end: Offsets) -> _Batch:
        """Do as `BatchReader.read`; takes what was read ahead, if it is this batch."""
        if self._ahead == (start, end):
            self._ahead = None
            return self._future.result()
        self.discard()
        return self._reader.read(start, end)

    def read_ahead(self, start: Offsets, end: Offsets) -> None:
        """Begin to read the batch from `start` to `end`, which is to be asked for next. Does nothing if it is empty."""
        if not start.reaches(end):
            self._ahead = start, end
            self._future = self._pool.submit(self._reader.read, start, end, job_group=self._group)

    def discard(self) -> None:
        """Forget what was read ahead, and wait until nothing is being read."""
        if self._ahead is not None:
            self._ahead = None
            if not self._future.cancel():
                self._reader.cancel(self._group)
                self._future.exception()

    def __enter__(self) -> ReadAhead[_Batch]:
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()
        self._pool.shutdown()


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
    judge = partial(_judged_files, run.definition, run.table)
    return ConsumerBatches(run, appended, partial(apply_appended, appends, judge=judge))


@dataclass(frozen=True)
class _NoConsumers:
    """The reader of batches that Spark's batch source reads."""

    reason: str

    def read(self, start: Offsets, end: Offsets, *, job_group: str | None = None) -> LatestBatch:
        raise NotThisWay(self.reason)

    def cancel(self, job_group: str) -> None:
        """Nothing runs."""


def ranges_of_source(run: RunState, reason: str) -> ConsumerBatches[Any]:
    """Return batches that Spark's batch source reads, from offsets to offsets, because of the `reason`."""
    apply = partial(apply_latest, run.definition, run.table, engines=run.engines)
    return ConsumerBatches(run, _NoConsumers(reason), apply, gives_up=False)


class ConsumerBatches(Generic[_Batch]):
    """Reads the topics as they are now. `gave_up` says why Spark's source is to read on; None as long as it is not."""

    def __init__(
        self,
        run: RunState,
        reader: BatchReader[_Batch],
        apply_batch: Callable[[_Batch, IngestProgress], AppliedBatch],
        *,
        gives_up: bool = True,
    ) -> None:
        self._run, self._reader, self._apply_batch = run, ReadAhead(reader), apply_batch
        self._gives_up, self._not_read = gives_up and run.definition.reader is Reader.AUTO, 0
        self._ended_early = False
        """Whether the batch before ended before its end, as it would have become too large: the rest follows at once,
        or a trigger would bound how much an ingest can read."""
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
            if not (self._ended_early or trigger.due()):
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
        applied, progress = self._applied(run.books.progress.offsets, progress)
        run.running = None
        run.books.record(progress, applied, run.end or run.books.topic_end, started)

    def _applied(self, start: Offsets, progress: IngestProgress) -> tuple[AppliedBatch, IngestProgress]:
        """Apply records from `start` up to `progress`, or fewer; returns the progress after them."""
        try:
            as_read = self._applied_as_read(start, progress)
        except NotThisWay as refused:
            reason = str(refused)
        else:
            self._not_read = 0
            return as_read
        run, self._ended_early = self._run, False
        self._reader.discard()  # what makes this batch useless makes the next one useless
        self._not_read += 1
        if self._not_read == _NOT_READ_IN_A_ROW and self._gives_up:
            self.gave_up = reason
        records = source.read(run.spark, run.topic, start, progress.offsets)
        applied = apply_batch(
            run.definition,
            run.table,
            records,
            progress,
            engines=run.engines,
            start=start,
            fast=run.books.fast,
            reader=reason,
        )
        return applied, progress

    def _applied_as_read(
        self, start: Offsets, progress: IngestProgress
    ) -> tuple[AppliedBatch, IngestProgress]:
        """Apply what consumers read. Raises NotThisWay where only Spark's path reads it exactly."""
        run = self._run
        try:
            with step("read", f"reading batch {progress.batch}"):
                batch = self._reader.read(start, progress.offsets)
        except GapError:
            raise gap_error(run.definition, run.books.progress) from None
        planned = progress.offsets
        progress = replace(progress, offsets=planned.capped(batch.end))
        self._ended_early = progress.offsets != planned
        self._reader.read_ahead(progress.offsets, self._next_end(progress.offsets))
        with step("merge", f"merging batch {progress.batch}"):
            return self._apply_batch(batch, progress), progress
