"""Tables that have rows before a job starts: made once, and copied for each job by linking their data files."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from benchmarks import paimon
from benchmarks.flink import Flink
from benchmarks.results import RECIPE, Say
from benchmarks.topics import ROW, SPARK, SPARK_TYPES
from bridge.definition import DeltaTarget
from bridge.delta.table import create_table
from bridge.session import session_settings

PIPELINE = "bench"
"""The name of the bridge's pipelines: a table belongs to one."""
_ROWS_A_FILE = 500_000
_FILES = 40
"""Files of a table with a layout."""


class Laid(Enum):
    """The layout of rows in the files of a table."""

    IN_ORDER = "sorted by key"
    ANY_ORDER = "unordered"
    CLUSTERED = "clustered by key"


@dataclass
class BaseTables:
    """Tables with the ids 0 to `rows`, whose number is 0."""

    spark: SparkSession
    folder: Path
    say: Say

    def delta(self, rows: int, whose: str, place: Path, laid: Laid | None = None) -> Path:
        """A copy in `place`, for the recipe or the bridge; where `rows` is 0 only the path of a table to come."""
        table = place / "table"
        if rows:
            shutil.copytree(self._delta(rows, whose, laid), table, copy_function=_linked)
        return table

    def paimon(self, rows: int, peer: Flink, place: Path) -> Path:
        """A copy of a warehouse in `place`, with a column for the row kind."""
        warehouse = place / "table"
        if rows:
            path = self.folder / f"base-paimon-{rows}"
            if not path.exists():
                scratch = self.folder / f"fill-{rows}"
                filled = peer.command(scratch, paimon.fill(path, rows), paimon.BATCH)
                subprocess.run(filled, check=True, capture_output=True)
                self.say(f"table of {rows:,} rows for Paimon")
            shutil.copytree(path, warehouse, copy_function=_linked)
        return warehouse

    def _delta(self, rows: int, whose: str, laid: Laid | None) -> Path:
        """The table with its rows in their order: with Delta's defaults for the recipe, and for the bridge with its
        own."""
        path = self.folder / f"base-{whose}-{rows}{f'-{laid.name}' if laid else ''}"
        if not path.exists():
            columns = ["id", *ROW, "number"]
            if whose == RECIPE:
                self.spark.sql(f"CREATE TABLE delta.`{path}` ({SPARK}) USING delta")
            else:
                nulls = ", ".join(f"CAST(NULL AS {type}) AS {name}" for name, type in SPARK_TYPES.items())
                fields = self.spark.sql(f"SELECT {nulls}").schema.fields
                by = ("id",) if laid is Laid.CLUSTERED else ()
                target = DeltaTarget(path=str(path), cluster_by=by)
                create_table(self.spark, target, fields, pipeline=PIPELINE)
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


def _linked(source: str, target: str) -> str:
    """Data files are never modified; files of a log are copied, since some of them are replaced in place."""
    if source.endswith(".parquet") and "_delta_log" not in source:
        os.link(source, target)
        return target
    return str(shutil.copy2(source, target))
