"""Runs many pipelines in one Spark: round after round, a few at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from bridge.backend import backend_of
from bridge.definition import Definition
from bridge.metrics import Summary
from bridge.session import child_session

RunOnce = Callable[[SparkSession, Definition], Summary]
"""Runs a pipeline until nothing is new, as `ingest` and `publish` do under `trigger: available-now`."""
_POLL_SECONDS = 0.5


@dataclass
class RoundsSummary:
    """What all rounds did, and what failed in the last one, by the name of the pipeline."""

    rounds: int = 0
    batches: int = 0
    records_in: int = 0
    records_out: int = 0
    failed: dict[str, Exception] = field(default_factory=dict)

    def add(self, summary: Summary) -> None:
        """Add a run to the totals."""
        self.batches += summary.batches
        self.records_in += summary.records_in
        self.records_out += summary.records_out


def run_rounds(
    spark: SparkSession,
    definitions: Sequence[Definition],
    run: RunOnce,
    *,
    parallel: int = 1,
    every_seconds: float | None = None,
    stop: threading.Event,
    failed: Callable[[Definition, Exception], None],
    sessions: Callable[[SparkSession], SparkSession] = child_session,
) -> RoundsSummary:
    """Run each pipeline once, in their order, `parallel` at a time; with `every_seconds` round after round, until
    `stop` is set, with this pause after a round in which no pipeline had anything new.

    Each thread has one session of its own for all its runs, as runs change settings of their session. A pipeline that
    fails is reported to `failed`, in its thread, and keeps no other from running; the next round runs it again. When
    `stop` is set no further run begins, and those at work end as they do by themselves. Once Spark has ended, its error
    is raised.
    """
    local, parallel = threading.local(), max(1, parallel)

    def work(definition: Definition) -> tuple[Definition, Summary | Exception]:
        if not hasattr(local, "session"):
            local.session = sessions(spark)
        try:
            return definition, run(local.session, definition)
        except Exception as failure:
            if backend_of(spark).has_ended():
                raise
            failed(definition, failure)
            return definition, failure

    total = RoundsSummary()
    # Shared by threads: the SparkContext (py4j opens a connection for each thread); clients of schema registries (see
    # `RegistryClient`); idle producers, of which the pool gives each to one thread (`ProducerPool`); results of
    # functions that are cached for the process: columns of Spark, plans and names of columns, which do not change. All
    # else is made by each run: clients of Kafka, DeltaTables, Arrow's files, file systems.
    with ThreadPoolExecutor(parallel, thread_name_prefix="pipeline") as pool:
        try:
            while not stop.is_set():
                batches = total.batches
                _run_all(pool, parallel, work, definitions, total, stop)
                total.rounds += 1
                if every_seconds is None:
                    break
                if total.batches == batches:
                    stop.wait(every_seconds)
        except BaseException:
            _cancel(spark)
            raise
    return total


def _run_all(
    pool: ThreadPoolExecutor,
    parallel: int,
    work: Callable[[Definition], tuple[Definition, Summary | Exception]],
    definitions: Sequence[Definition],
    total: RoundsSummary,
    stop: threading.Event,
) -> None:
    """One round. A run is handed over only when a thread is free, so that `stop` leaves none waiting."""
    rest = list(reversed(definitions))
    running: set[Future[Any]] = set()
    total.failed = {}
    while running or (rest and not stop.is_set()):
        while rest and len(running) < parallel and not stop.is_set():
            running.add(pool.submit(work, rest.pop()))
        # With a time limit, so that a signal is handled meanwhile.
        done, running = wait(running, _POLL_SECONDS, FIRST_COMPLETED)
        for future in done:
            definition, result = future.result()
            if isinstance(result, Exception):
                total.failed[definition.name] = result
            else:
                total.add(result)


def _cancel(spark: SparkSession) -> None:
    """End the jobs of all runs, so that their threads end soon."""
    try:
        backend_of(spark).cancel()
    except Exception:  # Spark has ended, and its jobs with it
        return
