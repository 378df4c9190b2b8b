"""Runs an ingest: topic -> records -decode-> changes -compact-> changes -merge-> Delta

Progress is in the table: every MERGE commits the end offsets of its batch together with the rows, and a run starts
where the table says (docs/adr/001). Spark's Kafka source or consumers in Spark's tasks read the topic (docs/adr/029).
`warm_up` starts Spark's Python workers while the driver opens the table.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from bridge.backend import Feature, backend_of
from bridge.definition import Definition, Reader
from bridge.delta.delta_errors import BrokenConstraint
from bridge.delta.rows_taken_back import RowsTakenBack
from bridge.errors import DefinitionError
from bridge.metrics import Listener, Summary, ignore
from bridge.metrics.monitoring import monitored
from bridge.metrics.steps import watched
from bridge.pipelines.ingest.consumer_batches import ConsumerBatches, consumer_batches, ranges_of_source
from bridge.pipelines.ingest.consumer_support import CONFIGURED, refuse_unsupported
from bridge.pipelines.ingest.run_state import RunState
from bridge.pipelines.ingest.stream_batches import StreamBatches
from bridge.pipelines.runtime.executors import check_executors
from bridge.pipelines.runtime.kafka_read_errors import explained_read_error
from bridge.pipelines.runtime.lease import acquire_lease
from bridge.pipelines.runtime.lineage import ingest_flow
from bridge.pipelines.runtime.spark_errors import offsets_between
from bridge.ways import NotThisWay

_warm: set[str] = set()
"""The applications whose workers were started."""


def warm_up(spark: SparkSession) -> threading.Thread:
    """Start the workers of this application and import what reads a batch, in a thread of its own; once.

    A failure is none: the first batch starts what is missing, and reports what cannot be imported.
    """
    backend = backend_of(spark)
    application = backend.application
    tasks = 0 if application in _warm else backend.parallelism
    _warm.add(application)

    def start() -> None:
        try:
            if tasks:
                backend.run_tasks(_import, range(tasks))
        except Exception:  # the first batch will say so
            _warm.discard(application)

    # Shared by threads: the backend alone (py4j opens a connection for each thread).
    thread = threading.Thread(target=start, name="warm-up", daemon=True)
    thread.start()
    return thread


def _import(_: Iterable[int]) -> Iterator[int]:
    import pyarrow.compute
    import pyarrow.json  # noqa: F401

    import bridge.kafka.latest_rows
    import bridge.pipelines.ingest.append_task  # noqa: F401

    return iter(())


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
    if definition.reader is not Reader.SPARK and backend_of(spark).can(Feature.KAFKA_IN_TASKS) is None:
        with suppress(NotThisWay):
            refuse_unsupported(definition, definition.topic)
            warm_up(spark)
    check_executors(spark, definition, sends=False)
    name = definition.run_name("ingest")
    with (
        watched(name, definition.run.step_timeout_seconds),
        acquire_lease(spark, definition, "ingest") as lease,
        monitored(
            definition.run.monitoring,
            listener,
            name,
            owner=lease.owner,
            died=lease.died,
            flow=partial(ingest_flow, spark, definition),
            stop=stop,
        ) as listen,
    ):
        return _Run(RunState(spark, definition, listen, stop or threading.Event(), lease)).run()


class _Run:
    def __init__(self, state: RunState) -> None:
        self._state = state
        self._gave_up: str | None = None

    def run(self) -> Summary:
        state = self._state
        started = time.monotonic()
        failure: BaseException | None = None
        try:
            self._apply_batches()
        except Exception as failed:
            failure = failed
        finally:
            state.monitor.close()
        if failure is not None:
            progress = state.books.progress
            raise explained_read_error(state.spark, failure, state.definition, progress, self._doing())
        if not state.stop.is_set():
            state.maintain()
        return replace(
            state.books.summary,
            maintained=state.schedule.done,
            has_ended=state.is_finished(),
            warning=state.monitor.notices.all(),
            seconds=time.monotonic() - started,
        )

    def _doing(self) -> str:
        """Name what was running when the run failed."""
        state = self._state
        if state.running is None:
            return "Spark's query over the topic"
        offsets = offsets_between(state.books.progress.offsets, state.running.offsets)
        return f"batch {state.running.batch} ({offsets})"

    def _apply_batches(self) -> None:
        """Apply batches until the run ends. A change of the topics, their partitions or the reader begins anew, and so
        does a commit of another writer that took rows back."""
        state = self._state
        if state.books.progress.batch < 0 and state.topic.startup.mode != "earliest-offset":
            self._commit_start()
        batches = self._batches()
        if state.is_finished() or (not state.repeats and state.is_at_end()):
            return
        while self._goes_on(batches):
            batches = self._batches()

    def _goes_on(self, batches: ConsumerBatches[Any] | StreamBatches) -> bool:
        """Apply batches until the run ends; True if it goes on with other ones."""
        state = self._state
        try:
            goes_on = batches.apply()
            moved: RowsTakenBack | BrokenConstraint | None = state.moved
        except (RowsTakenBack, BrokenConstraint) as reopen:
            moved = reopen
        if isinstance(batches, ConsumerBatches):
            self._gave_up = batches.gave_up
        if moved is not None:
            state.go_back(moved)
            return True
        if goes_on:
            state.look_up_topics()
        return goes_on

    def _batches(self) -> ConsumerBatches[Any] | StreamBatches:
        """What gets the next batches. Raises DefinitionError where the configured reader is not possible."""
        state = self._state
        reader, definition = state.definition.reader, state.definition
        if reader is Reader.SPARK:
            return self._source_batches(CONFIGURED)
        if state.books.progress.reaches is not None:
            return ranges_of_source(state, "a batch that was begun is read again as a whole")
        try:
            if self._gave_up is not None:
                raise NotThisWay(self._gave_up)
            refuse_unsupported(definition, state.topic)
            return consumer_batches(state)
        except NotThisWay as reason:
            if reader is Reader.CONSUMER:
                raise DefinitionError(
                    f"{definition.name!r}: `ingest.reader: consumer` is not possible, as {reason}; leave the option "
                    "out, and Spark's Kafka source reads where consumers cannot"
                ) from reason
            return self._source_batches(str(reason))

    def _source_batches(self, reason: str) -> ConsumerBatches[Any] | StreamBatches:
        """Batches of Spark's source: of its streaming one where the bridge can be its callback, and a checkpoint has a
        place; else ranges."""
        has_place = bool(self._state.definition.run.checkpoint)
        if has_place and backend_of(self._state.spark).can(Feature.STREAMS) is None:
            return StreamBatches(self._state, reason)
        return ranges_of_source(self._state, reason)

    def _commit_start(self) -> None:
        """Commit where a first run starts, unless that is the earliest offset, as a batch without records.

        Otherwise a run without records would leave no progress, and the next run would start at a later end and miss
        the records in between.
        """
        self._state.commit_progress(starts=True)
