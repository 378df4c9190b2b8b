"""Measures what a batch pays for being watched: metrics, traces, events and lineage, all at once.

    python -m benchmarks.monitoring_cost [--batches N]

Small batches pay most. Five seeds draw their records, the partitions and the rows of the table; the worst one counts.
The baseline is the batch itself, in the same run. What is added to it: naming its steps, reading what its commit did to
files, and telling everybody, while a thread scrapes. Exit code 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks.goals import Outcome, at_most, exit_code, table
from benchmarks.topics import Load, produce, section, send
from bridge import config
from bridge.definition import Definition
from bridge.delta.commit_files import read_file_changes
from bridge.embedded.broker import Broker
from bridge.metrics import BatchReport, ignore
from bridge.metrics.monitoring import Monitoring, monitored
from bridge.metrics.steps import step, taken, watched
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.runtime.preflight import open_whole_table
from bridge.session import build_session

_SEEDS, _GOAL = 5, 0.01
_SCRAPE_SECONDS = 5.0
"""How often a scrape is assumed: Prometheus' default is a minute."""
_ADDRESS = "127.0.0.1:19464"


@dataclass(frozen=True)
class Shape:
    """The topic and the table of one seed."""

    partitions: int
    rows: int
    batch: int

    @classmethod
    def drawn(cls, seed: int) -> Shape:
        """Draw it."""
        draw = np.random.default_rng(seed)
        return cls(
            int(draw.integers(1, 64)), int(draw.integers(1_000, 100_000)), int(draw.integers(20, 2_000))
        )


def added(reports: Sequence[BatchReport], monitoring: Monitoring, definition: Definition) -> list[float]:
    """Seconds that each report's batch takes longer as it is watched."""
    name = definition.run_name("ingest")
    found = []
    with watched(name, 0), monitored(monitoring, ignore, name, owner="host/1") as listen:
        for report in reports:
            began = time.perf_counter()
            for done in report.steps:
                with step(done.name, f"{done.name} of batch {report.batch}"):
                    pass
            taken()
            listen(report)
            found.append(time.perf_counter() - began)
    return found


def outcomes(batches: int, folder: Path) -> list[Outcome]:
    """Measure all seeds; the worst one is the outcome of each row."""
    spark, rows, scrapes = build_session("monitoring cost"), [], []
    with Broker(folder / "broker") as broker, _collector() as collector:
        for seed in range(1, _SEEDS + 1):
            shape, place = Shape.drawn(seed), folder / str(seed)
            place.mkdir()
            load = Load.random(shape.rows + batches * shape.batch, shape.rows, seed)
            first = range(shape.rows)
            topic = f"watched{seed}"
            produce(broker, topic, load, partitions=shape.partitions, part=first)
            ingest(spark, _pipeline(broker, place, topic, 1_000_000))
            send(broker, topic, load, range(shape.rows, len(load)))
            definition = _pipeline(broker, place, topic, shape.batch)
            reports: list[BatchReport] = []
            ingest(spark, definition, listener=reports.append)
            monitoring = Monitoring.of(
                _ADDRESS, str(place / "events"), None, collector, str(place / "lineage")
            )
            watched_seconds, scraped = _scraped(reports, monitoring, definition)
            scrapes.append(scraped)
            files = _files_seconds(spark, definition, reports)
            rows.append(
                (statistics.median(r.seconds for r in reports), statistics.median(watched_seconds) + files)
            )
    slowest = max(rows, key=lambda row: row[1] / row[0])
    return [
        at_most("a batch and what it pays for being watched", "s", *slowest, _GOAL),
        at_most(
            f"a core, and a scrape each {_SCRAPE_SECONDS:g} s", "s", _SCRAPE_SECONDS, max(scrapes), _GOAL
        ),
    ]


def _pipeline(broker: Broker, folder: Path, topic: str, batch: int) -> Definition:
    file = folder / "ingest.yaml"
    file.write_text(
        section(broker, topic) + f"name: {topic}\ndelta: {{path: table}}\n"
        f"run: {{checkpoint: checkpoint, trigger: available-now, max-offsets-per-batch: {batch}}}\n"
    )
    return config.load(file)


def _scraped(
    reports: Sequence[BatchReport], monitoring: Monitoring, definition: Definition
) -> tuple[list[float], float]:
    """Seconds of each report, and the CPU seconds of a scrape meanwhile."""
    ended, took = threading.Event(), list[float]()

    def scrape() -> None:
        while not ended.wait(0.5):
            began = time.process_time()
            try:
                with urllib.request.urlopen(f"http://{_ADDRESS}/metrics", timeout=5) as answer:
                    answer.read()
            except OSError:  # it begins to be shown, or has ended
                continue
            took.append(time.process_time() - began)

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        seconds = [s for _ in range(5) for s in added(reports, monitoring, definition)]
    finally:
        ended.set()
        thread.join()
    return seconds, statistics.median(took or [0.0])


def _files_seconds(spark: SparkSession, definition: Definition, reports: Sequence[BatchReport]) -> float:
    """Seconds in which a commit is read again; engines that know its actions leave it out."""
    opened = open_whole_table(spark, definition)
    took = []
    for report in reports:
        assert report.version is not None
        began = time.perf_counter()
        read_file_changes(opened, report.version)
        took.append(time.perf_counter() - began)
    return statistics.median(took)


@contextmanager
def _collector() -> Iterator[str]:
    """A collector that takes all."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.monitoring_cost")
    parser.add_argument("--batches", type=int, default=40)
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="monitoring-") as folder:
        found = outcomes(asked.batches, Path(folder))
    Console(width=160, highlight=False).print(table(found))
    return exit_code(found)


if __name__ == "__main__":
    sys.exit(main())
