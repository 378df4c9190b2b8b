"""Runs the jobs on a broker, topics and existing tables, of which each job gets a copy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import typing
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks import flink, oracle, paimon
from benchmarks.jobs import JobError, Ran, run
from benchmarks.topics import FLINK, ROW, SPARK, Load, produce
from bridge.config.model import PipelineFile
from bridge.definition import DeltaTarget
from bridge.delta.table import create_table
from bridge.embedded.broker import Broker
from bridge.session import session_settings

__all__ = ["Entry", "Ground", "Laid", "Say", "engines"]

Say = Callable[[str], None]
RECIPE = "recipe"
PAIMON = "Flink → Paimon"
_FOREIGN = 0.1
"""A job is run again when others have spent more than this share of its own CPU seconds meanwhile."""
_PIPELINE = "bench"
_ROWS_A_FILE = 500_000
_FILES = 40
"""Files of a table with a layout."""


class Laid(Enum):
    """The layout of rows in the files of a table."""

    IN_ORDER = "sorted by key"
    ANY_ORDER = "unordered"
    CLUSTERED = "clustered by key"


@dataclass(frozen=True)
class Entry:
    """One job of one system over one topic."""

    what: str
    system: str
    records: int
    ran: Ran | None
    wrong: str | None

    @property
    def rate(self) -> float:
        """Records per second including the cold start; nan for a job that failed."""
        return self.records / self.ran.seconds if self.ran else float("nan")

    @property
    def warm(self) -> float:
        """The duration of a warm batch in seconds."""
        return self.ran.warm if self.ran else float("nan")

    @property
    def peak_mb(self) -> float:
        return self.ran.peak_mb if self.ran else float("nan")

    @property
    def cpu(self) -> float:
        """CPU seconds a million records."""
        return self.ran.cpu / self.records * 1e6 if self.ran else float("nan")

    @property
    def disturbed(self) -> bool:
        """Whether others used the machine meanwhile, so that its time says nothing."""
        return self.ran is not None and self.ran.foreign > _FOREIGN * self.ran.cpu


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
    entries: list[Entry] = field(default_factory=list)
    _loads: dict[str, Load] = field(default_factory=dict)

    def topic(self, name: str, load: Load) -> str:
        seconds = produce(self.broker, name, load)
        self._loads[name] = load
        self.say(f"topic {name}: {len(load):,} records in {seconds:.0f} s")
        return name

    def recipe(
        self, what: str, topic: str, *, batch: int | None = None, rows: int = 0, conf: str = ""
    ) -> Entry:
        """Runs the recipe on `topic` into a table of `rows` rows."""
        place = self._place()
        table = self._copied(rows, RECIPE, place)
        command = [sys.executable, "-m", "benchmarks.recipe", "--bootstrap", self.broker.bootstrap]
        command += ["--topic", topic, "--table", str(table), "--checkpoint", str(place / "checkpoint")]
        command += ["--batch", str(batch)] if batch else []
        command += ["--conf", conf] if conf else []
        return self._ran(what, f"recipe, {conf}" if conf else RECIPE, command, topic, table, rows)

    def bridge(
        self,
        what: str,
        topic: str,
        *,
        batch: int | None = None,
        rows: int = 0,
        engine: str | None = None,
        master: str | None = None,
        laid: Laid | None = None,
    ) -> Entry:
        """Runs `bridge ingest` on `topic`, with default settings except for the arguments."""
        place = self._place()
        table = self._copied(rows, "bridge", place, laid)
        options = {
            "connector": "upsert-kafka",
            "topic": topic,
            "properties.bootstrap.servers": self.broker.bootstrap,
            "key.format": "json",
            "value.format": "json",
        }
        shown = ", ".join(f"'{k}' = '{v}'" for k, v in options.items())
        limit = f", max-offsets-per-batch: {batch}" if batch else ""
        file = place / "pipeline.yaml"
        file.write_text(
            f"version: 1\nname: {_PIPELINE}\ntopic:\n  ddl: |\n    CREATE TABLE t ({FLINK}, PRIMARY KEY (id) NOT "
            f"ENFORCED) WITH ({shown})\ndelta: {{path: {table}}}\nrun: {{checkpoint: {place / 'checkpoint'}{limit}}}\n"
            + (f"merge: {{engine: {engine}}}\n" if engine else "")
        )
        command = [sys.executable, "-m", "bridge", "ingest", str(file)]
        command += ["--master", master] if master else []
        system = ", ".join(["bridge", *([engine] if engine else []), *([master] if master else [])])
        return self._ran(what, system, command, topic, table, rows)

    def paimon(self, what: str, topic: str, *, checkpoint: str = "10 s") -> Entry | None:
        """Flink from `topic` into a Paimon table of the same columns; None where Flink was not fetched."""
        peer = flink.found()
        if peer is None:
            return None
        place = self._place()
        warehouse, texts = place / "table", place / "texts"
        statements = paimon.ingest(self.broker.bootstrap, topic, warehouse)
        command = peer.command(place / "ingest", statements, paimon.settings(checkpoint))

        def rows() -> DataFrame:
            back = peer.command(
                place / "dump", paimon.dump(warehouse, texts), {"execution.runtime-mode": "BATCH"}
            )
            subprocess.run(back, check=True, capture_output=True)
            return paimon.dumped(self.spark, texts)

        return self._ran(what, PAIMON, command, topic, warehouse, 0, rows)

    def _ran(
        self,
        what: str,
        system: str,
        command: list[str],
        topic: str,
        table: Path,
        rows: int,
        read: Callable[[], DataFrame] | None = None,
    ) -> Entry:
        """One job and its verdict; `read` gives the rows of what is no Delta table, and its job is none of Spark."""
        load = self._loads[topic]
        ran, wrong = None, None
        serving = [os.getsid(0), *([self.broker.pid] if self.broker.pid else [])]
        try:
            ran = run(command, folder=table.parent / "run", table=table, spark=read is None, beside=serving)
            made = read() if read else self.spark.read.format("delta").load(str(table))
            wrong = oracle.wrong(made, load, rows)
        except JobError as error:
            wrong = str(error).splitlines()[-1]
            self.say(str(error))
        shutil.rmtree(table, ignore_errors=True)
        entry = Entry(what, system, len(load), ran, wrong)
        self.entries.append(entry)
        said = (
            wrong or f"{entry.rate:,.0f} records/s, a warm batch {entry.warm:.2f} s, {entry.peak_mb:,.0f} MB"
        )
        self.say(f"{what}: {system}: {ran.seconds if ran else 0:.0f} s, {said}")
        return entry

    def _place(self) -> Path:
        place = self.folder / f"job-{len(self.entries)}"
        place.mkdir()
        return place

    def _copied(self, rows: int, whose: str, place: Path, laid: Laid | None = None) -> Path:
        """Copies the table of `rows` rows by linking its data files, which are never modified."""
        table = place / "table"
        if rows:
            shutil.copytree(self._base(rows, whose, laid), table, copy_function=_linked)
        return table

    def _base(self, rows: int, whose: str, laid: Laid | None) -> Path:
        """Creates a table with the ids 0 to `rows` in their order: with Delta's defaults for the recipe, and for the
        bridge with its own."""
        path = self.folder / f"base-{whose}-{rows}{f'-{laid.name}' if laid else ''}"
        if not path.exists():
            columns = ["id", *ROW, "number"]
            if whose == RECIPE:
                self.spark.sql(f"CREATE TABLE delta.`{path}` ({SPARK}) USING delta")
            else:
                fields = self.spark.sql(f"SELECT {_nulls()}").schema.fields
                by = ("id",) if laid is Laid.CLUSTERED else ()
                target = DeltaTarget(path=str(path), cluster_by=by)
                create_table(self.spark, target, fields, pipeline=_PIPELINE)
            files = _FILES if laid else max(2, rows // _ROWS_A_FILE)
            ids = self.spark.range(0, rows, 1, files).selectExpr("id", "0L AS number")
            if laid in (Laid.ANY_ORDER, Laid.CLUSTERED):
                ids = ids.repartition(files, F.xxhash64("id"))
            made = ids.select(*(F.expr(ROW.get(name, name)).alias(name) for name in columns))
            made.write.format("delta").mode("append").save(str(path))
            if laid is Laid.CLUSTERED:
                size = sum(file.stat().st_size for file in path.glob("*.parquet"))
                with session_settings(
                    self.spark, {"spark.databricks.delta.optimize.maxFileSize": str(size // _FILES)}
                ):
                    self.spark.sql(f"OPTIMIZE delta.`{path}`")
            self.say(f"table of {rows:,} rows for the {whose}{f', {laid.value}' if laid else ''}")
        return path


def _nulls() -> str:
    columns = [column.split(" ", 1) for column in SPARK.replace("(10, 2)", "(10,2)").split(", ")]
    return ", ".join(f"CAST(NULL AS {type}) AS {name}" for name, type in columns)


def _linked(source: str, target: str) -> str:
    if source.endswith(".parquet") and "_delta_log" not in source:
        os.link(source, target)
        return target
    return str(shutil.copy2(source, target))
