"""Runs the demo: writer, ingest, publish, quality checks and verification at the same time on one machine."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from bridge import config
from bridge.console import Screen, duration
from bridge.definition import Definition
from bridge.demo import orders
from bridge.embedded.broker import Broker
from bridge.embedded.processes import HOST, free_port
from bridge.errors import DefinitionError, DifferenceError, QualityError
from bridge.metrics import BatchReport, Summary, ignore
from bridge.metrics.prometheus import exporting, is_installed, shown
from bridge.pipelines.compare.reconciliation import reconcile
from bridge.pipelines.compare.verify import Proof
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.publish.run import publish
from bridge.pipelines.quality.check import Checked, check
from bridge.session import child_session

_PARTITIONS = 4
_RATE = 4_000
"""Changes per second: slow enough that the jobs run while the writer writes, fast enough for a demo."""
_INTERVAL_SECONDS = 2.0
_CHECK_INTERVAL_SECONDS = 5.0
_MARKER_FILE = ".bridge-demo"
"""The file that marks a folder as created by the demo."""
_BATCH_RECORDS = 40_000
"""Records per ingest batch: small enough that several batches update the same orders."""


def prepare_folder(folder: Path) -> None:
    """Empties or creates `folder` for the demo. Raises DefinitionError, and removes nothing, when the folder has
    contents and no marker file."""
    if folder.exists() and not (
        folder.is_dir() and ((folder / _MARKER_FILE).is_file() or not any(folder.iterdir()))
    ):
        raise DefinitionError(
            f"--folder {folder}: the demo deletes everything in its folder, and no demo created this one (it has no "
            f"file {_MARKER_FILE}): choose another folder, or remove this one yourself"
        )
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / _MARKER_FILE).touch()


def run(spark: SparkSession, folder: Path, screen: Screen, stop: threading.Event) -> None:
    """Runs the demo in `folder`, which is emptied first.

    Raises QualityError or DifferenceError when the check or a verification fails, and DefinitionError for a folder with
    contents that no demo created.
    """
    started = time.monotonic()
    prepare_folder(folder)
    with screen.busy("starting Kafka (a real broker, KRaft, one process)"):
        broker = Broker(folder / "broker")
        broker.start()
    try:
        incoming, outgoing = pipelines(folder, broker.bootstrap)
        for definition in (incoming, outgoing):
            for topic in definition.topic.names:
                broker.create_topic(topic, partitions=_PARTITIONS, config={"cleanup.policy": "compact"})
        metrics = f"{HOST}:{free_port()}" if is_installed() else None
        if metrics is not None:
            screen.info(f"metrics: {shown(metrics)} while it runs")
        incoming, outgoing = (definition.with_metrics(metrics) for definition in (incoming, outgoing))
        with exporting(metrics, ignore):  # from stage to stage
            flow = _Flow(spark, incoming, outgoing, screen, stop)
            with screen.busy("orders → topic → Delta → topic, concurrently"):
                written, ingested, published = flow.run()
            if stop.is_set():
                return
            with screen.busy("checking the table's quality"):
                checked = check(spark, incoming, metrics=metrics)
            with screen.busy("verifying: fold(topic 1) == table == fold(topic 2), row by row"):
                proofs = [_verified(spark, definition) for definition in (incoming, outgoing)]
            rows = _result_rows(written, ingested, published, checked, proofs)
            rows["table is at"], rows["report is at"] = (
                os.path.relpath(place) for place in (str(incoming.delta), checked.report)
            )
            rows["demo took"] = duration(time.monotonic() - started)
            screen.table("the demo", rows)
    finally:
        broker.stop()
    if not checked.verdict.success:
        raise QualityError(f"the quality check failed; see {checked.report}")
    if not all(proof.equal for proof in proofs):
        raise DifferenceError("topic and table differ; see the counts and checksums above")


def pipelines(folder: Path, bootstrap: str) -> tuple[Definition, Definition]:
    """Loads the pipeline files of conf/ with the demo's broker and lake as values of their environment variables."""
    files = [Path("conf") / name for name in ("orders.yaml", "orders_publish.yaml")]
    if not all(file.is_file() for file in files):
        raise DefinitionError(
            "the demo uses conf/orders.yaml and conf/orders_publish.yaml: run it in a checkout of the project"
        )
    environ = {**os.environ, "KAFKA": bootstrap, "LAKE": str((folder / "lake").absolute())}
    incoming, outgoing = (config.load(file, environ=environ) for file in files)
    quality = replace(incoming.quality, report=str(folder / "report.html")) if incoming.quality else None
    batches = replace(incoming.run, trigger_seconds=_INTERVAL_SECONDS, max_offsets_per_batch=_BATCH_RECORDS)
    intervals = replace(outgoing.run, trigger_seconds=_INTERVAL_SECONDS)
    return replace(incoming, run=batches, quality=quality), replace(outgoing, run=intervals)


def _verified(spark: SparkSession, definition: Definition) -> Proof:
    found: list[Proof] = []
    with suppress(DifferenceError):  # the demo shows both sides first
        metrics = definition.run.monitoring.metrics
        reconcile(spark, definition, metrics=metrics, compared=found.append, failed=lambda _: None)
    return found[0]


class _Flow:
    """Runs writer, ingest, publish and checks concurrently. When the stage before it has ended, each of ingest and
    publish is stopped and started again to process the rest, like a restarted job."""

    def __init__(
        self,
        spark: SparkSession,
        incoming: Definition,
        outgoing: Definition,
        screen: Screen,
        stop: threading.Event,
    ) -> None:
        self.spark, self.screen, self.stop = spark, screen, stop
        self.incoming, self.outgoing = incoming, outgoing
        self.written, self.table_exists, self.ingested = (threading.Event() for _ in range(3))
        self.sums = {verb: Summary(d.name, verb) for verb, d in (("ingest", incoming), ("publish", outgoing))}

    def run(self) -> tuple[Mapping[str, int], Summary, Summary]:
        """Returns the written changes by kind, and the summaries of ingest and publish."""
        # Shared by threads: the SparkContext (each stage has a session of its own), events, the screen. Clients of
        # Kafka and tables are each stage's own.
        with ThreadPoolExecutor(4) as pool:
            stages = [pool.submit(stage) for stage in (self._write, self._ingest, self._publish, self._check)]
            while not all(stage.done() for stage in stages):
                if self.stop.is_set() or any(stage.done() and stage.exception() for stage in stages):
                    self._end_all()
                time.sleep(0.1)
        for stage in stages:
            stage.result()
        return stages[0].result() or {}, self.sums["ingest"], self.sums["publish"]

    def _end_all(self) -> None:
        for event in (self.stop, self.written, self.table_exists, self.ingested):
            event.set()

    def _listen(self, report: BatchReport) -> None:
        self.sums[report.verb] = self.sums[report.verb].plus(report)
        self.table_exists.set()
        self.screen.batch(report)

    def _write(self) -> Mapping[str, int]:
        topic = self.incoming.topic
        try:
            changes = orders.changes(seed=7)
            return orders.write(topic.bootstrap_servers, topic.names[0], changes, rate=_RATE, stop=self.stop)
        finally:
            self.written.set()

    def _ingest(self) -> None:
        self._run_then_drain(ingest, self.incoming, self.written)
        self.ingested.set()

    def _publish(self) -> None:
        self.table_exists.wait()
        self._run_then_drain(publish, self.outgoing, self.ingested)

    def _check(self) -> None:
        """Checks the table while it changes, so that the last report can show trends."""
        self.table_exists.wait()
        spark = child_session(self.spark)
        while not self.ingested.is_set():
            check(spark, self.incoming, metrics=self.incoming.run.monitoring.metrics)
            self.ingested.wait(_CHECK_INTERVAL_SECONDS)

    def _run_then_drain(
        self, pipeline: Callable[..., Summary], definition: Definition, stop_first_run: threading.Event
    ) -> None:
        spark, started = child_session(self.spark), time.monotonic()
        pipeline(spark, definition, listener=self._listen, stop=stop_first_run)
        if not self.stop.is_set():
            drained = replace(definition, run=replace(definition.run, trigger_seconds=None))
            pipeline(spark, drained, listener=self._listen)
        verb = "ingest" if definition is self.incoming else "publish"
        self.sums[verb] = replace(self.sums[verb], seconds=time.monotonic() - started)


def _result_rows(
    written: Mapping[str, int], ingested: Summary, published: Summary, checked: Checked, proofs: list[Proof]
) -> dict[str, str]:
    first, second = (proof.comparison for proof in proofs)
    met = sum(outcome.success for outcome in checked.verdict.expectations)
    equal = all(proof.equal for proof in proofs) and first.table_checksum == second.table_checksum
    return {
        "changes written": f"{sum(written.values()):,}: "
        + ", ".join(f"{n:,} {kind}" for kind, n in written.items()),
        "records in": f"{ingested.records_in:,} in {ingested.batches} batches, "
        f"{ingested.records_in / ingested.seconds:,.0f}/s while the writer ran",
        "applied": f"+I {ingested.inserted:,}  +U {ingested.updated:,}  -D {ingested.deleted:,}  "
        f"unchanged {ingested.unchanged:,}",
        "records out": f"{published.records_out:,}, {published.tombstones:,} of them tombstones",
        "lag at the end": f"{ingested.pending_records} records in, {published.pending_records} versions out",
        "quality": f"{met} of {len(checked.verdict.expectations)} expectations hold",
        "fold(topic 1)": f"{first.topic_rows:,} rows  checksum {first.topic_checksum}",
        "table": f"{first.table_rows:,} rows  checksum {first.table_checksum}  version {proofs[0].version}",
        "fold(topic 2)": f"{second.topic_rows:,} rows  checksum {second.topic_checksum}",
        "verified": "all three are equal, row by row" if equal else "DIFFERENT",
    }
