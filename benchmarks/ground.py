"""Runs the jobs on a broker, topics and existing tables, of which each job gets a copy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from benchmarks import flink, oracle, paimon
from benchmarks.base_tables import PIPELINE, BaseTables, Laid
from benchmarks.cpu import Others
from benchmarks.jobs import JobError, Ran, run
from benchmarks.results import PAIMON, RECIPE, TOLERANCE, Entry, Say
from benchmarks.topics import ORDERS, PARTITIONS, Load, TopicRows, produce, section
from bridge.config.model import PipelineFile
from bridge.embedded.broker import Broker

Read = Callable[[], DataFrame]


def engines() -> tuple[str, ...]:
    """Returns the values of `merge.engine` except `auto`; empty where the key does not exist."""
    section = PipelineFile.model_fields.get("merge")
    fields = getattr(section.annotation, "model_fields", {}) if section else {}
    choice = fields.get("engine")
    return tuple(name for name in typing.get_args(choice.annotation) if name != "auto") if choice else ()


@dataclass
class Ground:
    """Creates topics and initial tables, and runs jobs. `say` receives lines about the progress."""

    spark: SparkSession
    broker: Broker
    folder: Path
    say: Say
    tolerance: float = TOLERANCE
    entries: list[Entry] = field(default_factory=list)
    _loads: dict[str, Load] = field(default_factory=dict)
    _places: int = 0

    def __post_init__(self) -> None:
        self.tables = BaseTables(self.spark, self.folder, self.say)

    @property
    def serving(self) -> list[int]:
        """Leaders of the sessions that serve a job: this process and the broker."""
        return [os.getsid(0), *([self.broker.pid] if self.broker.pid else [])]

    def topic(self, name: str, load: Load, *, partitions: int = PARTITIONS, part: range | None = None) -> str:
        """Creates a topic with a load, or with a part of it."""
        seconds = produce(self.broker, name, load, partitions=partitions, part=part)
        self._loads[name] = load
        sent = len(load if part is None else part)
        self.say(f"topic {name}: {sent:,} records in {seconds:.0f} s")
        return name

    def load(self, topic: str) -> Load:
        """The load of a topic that `topic` has made."""
        return self._loads[topic]

    def recipe(
        self, what: str, topic: str, *, batch: int | None = None, rows: int = 0, conf: str = ""
    ) -> Entry:
        """Runs the recipe on `topic` into a table of `rows` rows."""
        place = self.place()
        table = self.tables.delta(rows, RECIPE, place)
        command = [sys.executable, "-m", "benchmarks.recipe", "--bootstrap", self.broker.bootstrap]
        command += ["--topic", topic, "--table", str(table), "--checkpoint", str(place / "checkpoint")]
        command += ["--batch", str(batch)] if batch else []
        command += ["--conf", conf] if conf else []
        return self.ran(what, f"recipe, {conf}" if conf else RECIPE, command, topic, table, rows)

    def bridge(
        self,
        what: str,
        topic: str,
        *,
        batch: int | None = None,
        rows: int = 0,
        engine: str | None = None,
        reader: str | None = None,
        laid: Laid | None = None,
        cores: int | None = None,
    ) -> Entry:
        """Runs `bridge ingest` on `topic`, with default settings except for the arguments; on so many `cores`."""
        place = self.place()
        table = self.tables.delta(rows, "bridge", place, laid)
        limit = f", max-offsets-per-batch: {batch}" if batch else ""
        more = f"merge: {{engine: {engine}}}\n" if engine else ""
        more += f"ingest: {{reader: {reader}}}\n" if reader else ""
        command = self.ingest(place, topic, table, run=limit, more=more)
        if cores:
            command = ["taskset", "--cpu-list", f"0-{cores - 1}", *command]
        limited = [f"{cores} of {os.cpu_count()} cores"] if cores else []
        system = ", ".join(
            ["bridge", *(of for of in (reader and f"read by {reader}", engine) if of), *limited]
        )
        return self.ran(what, system, command, topic, table, rows)

    def ingest(self, place: Path, topic: str, table: Path, *, run: str = "", more: str = "") -> list[str]:
        """Writes a pipeline file into `place`, with `run` added to its section of that name and `more` at its end; the
        command that ingests it."""
        file = place / "pipeline.yaml"
        file.write_text(
            section(self.broker, topic, self._loads[topic].rows)
            + f"name: {PIPELINE}\ndelta: {{path: {table}}}\nrun: {{checkpoint: {place / 'checkpoint'}{run}}}\n"
            + more
        )
        return [sys.executable, "-m", "bridge", "ingest", str(file)]

    def paimon(self, what: str, topic: str, *, checkpoint: str = "10 s") -> Entry | None:
        """Flink from `topic` into a new Paimon table; None where Flink was not fetched."""
        peer = flink.found()
        if peer is None:
            return None
        place = self.place()
        warehouse = place / "table"
        rows = self._loads[topic].rows
        statements = paimon.ingest(self.broker.bootstrap, topic, warehouse, rows)
        command = peer.command(place / "ingest", statements, paimon.settings(checkpoint))
        return self.ran(what, PAIMON, command, topic, warehouse, 0, self.reading(warehouse, place, rows))

    def paimon_steps(self, what: str, topics: Sequence[str], *, rows: int) -> Entry | None:
        """Flink from `topics` into a Paimon table of `rows` rows, one job after the other in one process."""
        peer = flink.found()
        if peer is None:
            return None
        place = self.place()
        warehouse = self.tables.paimon(rows, peer, place)
        statements = paimon.apply(self.broker.bootstrap, topics, warehouse)
        command = peer.command(place / "ingest", statements, paimon.BATCH)
        return self.ran(what, PAIMON, command, topics[0], warehouse, rows, self.reading(warehouse, place))

    def reading(self, warehouse: Path, place: Path, of: TopicRows = ORDERS) -> Read:
        """Reads a Paimon table, by a further job of Flink."""
        peer, texts = flink.found(), place / "texts"
        assert peer is not None

        def rows() -> DataFrame:
            back = peer.command(place / "dump", paimon.dump(warehouse, texts, of), paimon.BATCH)
            subprocess.run(back, check=True, capture_output=True)
            return paimon.dumped(self.spark, texts, of)

        return rows

    def ran(
        self,
        what: str,
        system: str,
        command: list[str],
        topic: str,
        table: Path,
        rows: int,
        read: Read | None = None,
    ) -> Entry:
        """Runs one job and judges its table; `read` gives the rows of what is no Delta table, and its job is none of
        Spark."""
        try:
            place = table.parent / "run"
            ran = run(command, folder=place, table=table, spark=read is None, beside=self.serving)
        except JobError as error:
            self.say(str(error))
            return self.added(Entry(what, system, len(self._loads[topic]), None, str(error).splitlines()[-1]))
        return self.judged(what, system, ran, topic, table, rows, read)

    def judged(
        self,
        what: str,
        system: str,
        ran: Ran,
        topic: str,
        table: Path,
        rows: int,
        read: Read | None = None,
        measured: Mapping[str, float] | None = None,
        flaw: str | None = None,
    ) -> Entry:
        """The verdict about the table of a job that has ended: it had `rows` rows before. The table is removed. With a
        `flaw` it is wrong already."""
        wrong = flaw or self.wrong(table, topic, rows, read)
        shutil.rmtree(table, ignore_errors=True)
        size = len(self._loads[topic])
        return self.added(Entry(what, system, size, ran, wrong, self.tolerance, measured or {}))

    def wrong(self, table: Path, topic: str, rows: int = 0, read: Read | None = None) -> str | None:
        """What is wrong with the table of a topic, row by row; `read` gives the rows of what is no Delta table."""
        made = read() if read else self.spark.read.format("delta").load(str(table))
        return oracle.wrong(made, self._loads[topic], rows)

    def timed(
        self,
        what: str,
        system: str,
        records: int,
        work: Callable[[], object],
        judge: Callable[[object], str | None],
    ) -> Entry:
        """Work in this process and in the broker; `judge` says what is wrong with what it returns."""
        others, started = Others(self.serving), time.perf_counter()
        done = work()
        seconds = time.perf_counter() - started
        foreign, cpu = others.seconds(), others.served
        ran = Ran(seconds, [], [], None, cpu, foreign)
        return self.added(Entry(what, system, records, ran, judge(done), self.tolerance))

    def added(self, entry: Entry) -> Entry:
        """Keeps an entry for the document, and says it."""
        self.entries.append(entry)
        more = "".join(f", {name} {value:.2f}" for name, value in entry.measured.items())
        warm = "" if isnan(entry.warm) else f", a warm batch {entry.warm:.2f} s"
        peak = "" if isnan(entry.peak_mb) else f", {entry.peak_mb:,.0f} MB"
        said = entry.wrong or f"{entry.rate:,.0f} records/s{warm}{peak}{more}"
        others = f", others used {entry.ran.foreign:.0f} CPU s" if entry.ran and entry.disturbed else ""
        self.say(f"{entry.what}: {entry.system}: {entry.seconds:.1f} s, {said}{others}")
        return entry

    def place(self) -> Path:
        """A new folder for one job."""
        self._places += 1
        place = self.folder / f"job-{self._places}"
        place.mkdir()
        return place
