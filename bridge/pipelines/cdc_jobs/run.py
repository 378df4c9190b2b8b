"""Runs a job: the publishes of its tables, and its script, round after round until nothing changes.

Both are the ones that there are: each publish and each INSERT has its own progress, so a run that is killed goes on.
"""

from __future__ import annotations

import threading
import time
from functools import partial

from pyspark.sql import SparkSession

from bridge import watchdog
from bridge.backend import Feature, require
from bridge.cdc_jobs import Job
from bridge.delta.file_state import FileState
from bridge.metrics import BatchReport, Listener, RunName, ignore
from bridge.metrics.datasets import Flow, joined
from bridge.metrics.monitoring import monitored
from bridge.pipelines.publish.run import publish
from bridge.pipelines.runtime.lease import Lease, acquire_lease_in
from bridge.pipelines.runtime.lineage import publish_flow
from bridge.pipelines.scripts.lineage import script_flow
from bridge.pipelines.scripts.run import ScriptSummary, run_script
from bridge.pipelines.scripts.state import ScriptState


def run_job(
    spark: SparkSession,
    job: Job,
    *,
    every_seconds: float | None = None,
    rebuild: bool = False,
    listener: Listener = ignore,
    stop: threading.Event | None = None,
) -> ScriptSummary:
    """Send what is new in the tables of a job, until there is nothing new; with `every_seconds` until `stop` is set,
    with this pause when nothing is new.

    In a round each table that is sent as it is gets a publish, in the order of the tables; then the script runs, whose
    results `rebuild` computes again in the first round. The columns of the tables are those of when the job was loaded,
    and those that a table has got since are sent, too. `listener` is called after each batch.

    Raises ConcurrentRunError, before anything is read or written, when another run of the job is at work; and what
    `publish` and `run_script` raise: tables before the one that fails have been sent.
    """
    require(spark, Feature.PERSIST, "bridge run of a job")
    with (
        acquire_lease_in(
            FileState(spark, job.folder, "bridge.state"), "job", name=job.name, verb="run"
        ) as lease,
        monitored(
            job.monitoring,
            listener,
            RunName(job.name, "run"),
            owner=lease.owner,
            died=lease.died,
            flow=partial(_flow, spark, job, is_streaming=every_seconds is not None),
            stop=stop,
            parts=_run_names(job),
        ) as listen,
    ):
        return _Run(spark, job, lease, listen, stop or threading.Event()).run(every_seconds, rebuild)


def _run_names(job: Job) -> list[RunName]:
    publishes = [definition.run_name("publish") for definition in job.publishes]
    return publishes if job.script is None else [*publishes, *ScriptState(job.script).run_names()]


def _flow(spark: SparkSession, job: Job, *, is_streaming: bool) -> Flow:
    flows = [publish_flow(spark, definition) for definition in job.publishes]
    sql = None
    if job.script is not None:
        script = script_flow(spark, ScriptState(job.script), is_streaming=is_streaming)
        flows, sql = [*flows, script], script.sql
    inputs = (dataset for flow in flows for dataset in flow.inputs)
    outputs = (dataset for flow in flows for dataset in flow.outputs)
    return Flow(joined(inputs), joined(outputs), spark.version, is_streaming, sql)


class _Run:
    def __init__(
        self, spark: SparkSession, job: Job, lease: Lease, listener: Listener, stop: threading.Event
    ) -> None:
        self._spark, self._job, self._lease, self._listener, self._stop = spark, job, lease, listener, stop
        self._summary = ScriptSummary(job.name)

    def run(self, every_seconds: float | None, rebuild: bool) -> ScriptSummary:
        started = time.monotonic()
        while not self._stop.is_set():
            before = sum(total.batches for total in self._summary.pipelines.values())
            self._round(rebuild and not self._summary.rounds)
            self._summary.rounds += 1
            if every_seconds is None:
                break
            if sum(total.batches for total in self._summary.pipelines.values()) == before:
                with watchdog.waiting():
                    self._stop.wait(every_seconds)
        self._summary.seconds = time.monotonic() - started
        return self._summary

    def _round(self, rebuild: bool) -> None:
        for definition in self._job.publishes:
            if self._stop.is_set():
                return
            self._lease.check()
            publish(self._spark, definition, listener=self._report, stop=self._stop)
        if self._job.script is not None and not self._stop.is_set():
            run_script(self._spark, self._job.script, rebuild=rebuild, listener=self._report, stop=self._stop)

    def _report(self, report: BatchReport) -> None:
        self._summary.add(report)
        self._listener(report)
