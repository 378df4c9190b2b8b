"""Measures what a million records cost in CPU, memory and shuffle, and writes docs/sizing.md from it.

    python -m benchmarks.sizing [--rows N] [--report FILE]

Each job runs as a process, over N and over 3 N records. What a record costs is the difference, so that starting a JVM
does not count; what starting costs is the rest. Tables and topics are compared with what was sent.
"""

from __future__ import annotations

import argparse
import datetime
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

from benchmarks import performance
from benchmarks.goals import number
from benchmarks.ground import Ground
from benchmarks.jobs import run
from benchmarks.results import Entry
from benchmarks.scale import SEED
from benchmarks.topics import Load, section
from bridge.embedded.broker import Broker

ROWS = 500_000
_MORE = 3
_PEAK = 4
"""How much more than the average arrives in the busiest hours."""
_DAYS = (10, 100, 1000)
"""Millions of rows a day."""


@dataclass(frozen=True)
class Cost:
    """What one kind of job costs."""

    what: str
    start: float
    """CPU seconds of a job besides its records."""
    cpu: float
    """CPU seconds a million records."""
    shuffle_mb: float
    """MB a million records."""
    peak_mb: float
    """Resident memory of all processes of the larger job."""
    wrong: str | None = None


def cost(what: str, less: tuple[int, Entry, int], more: tuple[int, Entry, int]) -> Cost:
    """The cost by two jobs, each as (records, entry, bytes shuffled)."""
    (few, small, little), (many, large, much) = less, more
    assert small.ran is not None and large.ran is not None
    millions = (many - few) / 1e6
    cpu = (large.ran.cpu - small.ran.cpu) / millions
    start = max(0.0, small.ran.cpu - cpu * few / 1e6)
    return Cost(what, start, cpu, (much - little) / 1e6 / millions, large.peak_mb, small.wrong or large.wrong)


def cores(cpu: float, millions_a_day: float) -> float:
    """The cores that a job of so many CPU seconds a million records fills in the busiest hours."""
    return _PEAK * cpu * millions_a_day / 86_400


def shuffled(events: Path | None) -> int:
    """The bytes that a job has written for shuffles, by Spark's event log."""
    if events is None:
        return 0
    total = 0
    with events.open(encoding="utf-8") as lines:
        for line in lines:
            if '"SparkListenerStageCompleted"' in line:
                stage = json.loads(line)["Stage Info"]
                for value in stage.get("Accumulables", ()):
                    if value.get("Name") == "internal.metrics.shuffle.write.bytesWritten":
                        total += int(value["Value"])
    return total


def page(costs: Sequence[Cost], *, command: str, commit: str, date: str, machine: str) -> str:
    """The page about sizes."""
    rows = [
        f"| {c.what} | {number(c.cpu)} | {number(c.start)} | {number(c.shuffle_mb)} | {c.peak_mb:,.0f} |"
        for c in costs
    ]
    sizes = [
        f"| {millions:,} million | " + " | ".join(f"{number(cores(c.cpu, millions))}" for c in costs) + " |"
        for millions in _DAYS
    ]
    titles = " | ".join(c.what for c in costs)
    return (
        Path(__file__)
        .with_name("sizing_page.md")
        .read_text(encoding="utf-8")
        .format(
            rows="\n".join(rows),
            titles=titles,
            lines="|---|" + "---|" * len(costs),
            sizes="\n".join(sizes),
            command=command,
            commit=commit,
            since=performance.since(commit),
            date=date,
            machine=machine,
            peak=_PEAK,
        )
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs and prints the costs, and writes the page; returns 2 when a table or topic was wrong, otherwise 0."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.sizing", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--report", type=Path, help="write the page to this file")
    chosen = parser.parse_args(arguments)
    started, said = time.monotonic(), Console(stderr=True, highlight=False, soft_wrap=True)

    def say(text: str) -> None:
        said.print(f"{time.monotonic() - started:5.0f} s  {text}", markup=False)

    folder = Path(tempfile.mkdtemp(prefix="bench-sizing-"))
    try:
        costs = _played(folder, chosen.rows, say)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    shown = Table(box=None)
    for title in ("job", "CPU s/M", "CPU s to start", "shuffled MB/M", "peak MB", ""):
        shown.add_column(title)
    for c in costs:
        numbers = map(number, (c.cpu, c.start, c.shuffle_mb, c.peak_mb))
        shown.add_row(c.what, *numbers, c.wrong or "")
    Console(width=140).print(shown)
    if any(c.wrong for c in costs):
        return 2
    if chosen.report is not None:
        text = page(
            costs,
            command=f"python -m benchmarks.sizing --rows {chosen.rows}",
            commit=performance.commit(),
            date=datetime.date.today().isoformat(),
            machine=performance.machine(),
        )
        chosen.report.write_text(text, encoding="utf-8")
    return 0


def _played(folder: Path, rows: int, say: Callable[[str], None]) -> list[Cost]:
    from bridge.session import build_session

    spark = build_session("bridge-sizing")
    try:
        with Broker(folder / "broker") as broker:
            ground = Ground(spark, broker, folder, say, float("inf"))
            loads = {n: Load.random(n, max(1, n // 5), SEED) for n in (rows, _MORE * rows)}
            topics = {n: ground.topic(f"sizing-{n}", load) for n, load in loads.items()}
            costs = []
            for engine in ("driver", "spark"):
                found = [_measured(ground.bridge("ingest", topics[n], engine=engine), n) for n in loads]
                costs.append(cost(f"ingest, {engine}", *found))
            for guarantee in ("at-least-once", "exactly-once"):
                found = [_measured(_publish(ground, n, guarantee), n) for n in loads]
                costs.append(cost(f"publish, {guarantee}", *found))
            return costs
    finally:
        spark.sparkContext.stop()


def _measured(entry: Entry, records: int) -> tuple[int, Entry, int]:
    return records, entry, shuffled(entry.ran.events if entry.ran else None)


def _publish(ground: Ground, rows: int, guarantee: str) -> Entry:
    """A snapshot of a table of so many rows into a new topic, whose keys are counted."""
    place, topic = ground.place(), f"sizing-out-{rows}-{guarantee}"
    table = ground.tables.delta(rows, "bridge", place)
    ground.broker.create_topic(topic, partitions=4, config={"cleanup.policy": "compact"})
    options = {
        "sink.delivery-guarantee": guarantee,
        **({"sink.transactional-id-prefix": topic} if guarantee == "exactly-once" else {}),
    }
    file = place / "pipeline.yaml"
    file.write_text(
        f"{section(ground.broker, topic, options=options)}name: {topic}\ndelta: {{path: {table}}}\n"
        f"run: {{checkpoint: {place / 'checkpoint'}}}\n"
        "publish: {start: snapshot}\n"
    )
    command = [sys.executable, "-m", "bridge", "publish", str(file)]
    ran = run(command, folder=place / "run", table=place, beside=ground.serving)
    reader = ground.spark.read.format("kafka").option("kafka.bootstrap.servers", ground.broker.bootstrap)
    records = reader.option("subscribe", topic).option("kafka.isolation.level", "read_committed").load()
    found = records.agg(F.count("*"), F.count_distinct("key")).first()
    wrong = (
        None
        if found is not None and tuple(found) == (rows, rows)
        else f"{topic} has {found} instead of {rows:,} keys"
    )
    return ground.added(Entry(f"publish, {guarantee}", "bridge", rows, ran, wrong, ground.tolerance))


if __name__ == "__main__":
    sys.exit(main())
