"""What a batch costs in the driver where a topic has many partitions and a table many files, by simulation.

No record is read and no data file exists: progress is made up, and the table is its log alone.
"""

from __future__ import annotations

import json
import os
import statistics
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from benchmarks.goals import Outcome, at_most
from benchmarks.ground import Ground
from bridge.definition import DeltaTarget
from bridge.delta.driver_merge.matches import Keys, may_hold
from bridge.delta.table import create_table, open_table
from bridge.ingest_progress import IngestProgress
from bridge.lake.local_store import LocalStore
from bridge.lake.snapshot import open_snapshot
from bridge.offsets import Offsets

PARTITIONS = (1_000, 10_000)
FILES = (10_000, 100_000)
_LINEAR = 15.0
"""Ten times as many may take this many times as long: a cost that grows with the square takes a hundred times."""
_ROWS_OF_A_FILE, _BYTES_OF_A_FILE = 1_000_000, 128 << 20
_KEYS = 1_000
_TIMES = 5


@dataclass(frozen=True)
class Costs:
    """Each cost with its unit, by name."""

    of: dict[str, tuple[float, str]]


def outcomes(ground: Ground) -> list[Outcome]:
    """Each cost with ten times as many partitions, or files, beside the smaller number."""
    few, many = (progress_costs(count) for count in PARTITIONS)
    found = compared(f"{PARTITIONS[1]:,} partitions / {PARTITIONS[0]:,}", few, many)
    few, many = (log_costs(ground, ground.folder / f"many-{count}", count) for count in FILES)
    return found + compared(f"a table of {FILES[1]:,} files / of {FILES[0]:,}", few, many)


def progress_costs(partitions: int) -> Costs:
    """What a batch does with its offsets, most of which do not move, and the size of its progress in the commit."""
    topic = "orders"
    begin = Offsets.of((topic, number, 10**9 + number) for number in range(partitions))
    moved = Offsets.of((topic, number, 10**9 + 2 * number) for number in range(0, partitions, 50))
    sizes = []

    def batch() -> None:
        end = begin.advanced(moved)
        assert end.reaches(begin) and end.lag(begin) == 0
        progress = IngestProgress("orders", uuid.uuid4().hex, 7, end.capped(end), {topic: "id"}, key=("id",))
        text = progress.to_json("table")
        sizes.append(len(json.dumps(text)))  # the commit has it as a text in JSON
        again = IngestProgress.from_json(text)
        assert again is not None and again[0] == progress

    return Costs({"offsets of a batch": _ms(batch), "progress in a commit": (sizes[0] / 1000, "kB")})


def log_costs(ground: Ground, place: Path, files: int) -> Costs:
    """Opening the table, finding the files of a batch of adjacent keys with each engine, and the memory that stays."""
    fields = ground.spark.sql("SELECT CAST(NULL AS BIGINT) AS id, CAST(NULL AS STRING) AS name").schema.fields
    properties = {"delta.checkpointInterval": "1000"}
    target = DeltaTarget(path=str(place), properties=properties)
    create_table(ground.spark, target, fields, pipeline="many")
    _write_log(place, files)
    DeltaTable(str(place)).create_checkpoint()
    first = files // 2 * _ROWS_OF_A_FILE
    keys = pa.table({"id": pa.array(range(first, first + _KEYS), pa.int64())})
    before = _driver_mb(ground.spark)

    def by_driver() -> None:
        sought, snapshot = Keys(keys, ["id"]), open_snapshot(LocalStore(str(place)))
        assert sum(may_hold(add, sought) for add in snapshot.files.values()) == 1

    def by_spark() -> None:
        rows = ground.spark.read.format("delta").load(str(place))
        assert len(rows.where(F.col("id").between(first, first + _KEYS - 1)).inputFiles()) == 1

    found = {
        "opening": _ms(lambda: open_table(ground.spark, target, fields)),
        "files of a batch, driver": _ms(by_driver),
        "files of a batch, Spark": _ms(by_spark),
        "memory of the driver": (_driver_mb(ground.spark) - before, "MB"),
    }
    ground.say(f"a table of {files:,} files: {', '.join(f'{k} {v:,.0f} {u}' for k, (v, u) in found.items())}")
    return Costs(found)


def compared(what: str, few: Costs, many: Costs) -> list[Outcome]:
    """Each cost of `many` beside that of `few`, of which there are ten times less."""
    return [
        at_most(f"{what}: {name}", unit, few.of[name][0], number, _LINEAR)
        for name, (number, unit) in many.of.items()
    ]


def _write_log(place: Path, files: int) -> None:
    """One commit that adds the files, each with a range of ids of its own."""

    def action(number: int) -> str:
        low = number * _ROWS_OF_A_FILE
        high = low + _ROWS_OF_A_FILE - 1
        bounds = {"minValues": {"id": low, "name": "a"}, "maxValues": {"id": high, "name": "z"}}
        statistics_of_file = {"numRecords": _ROWS_OF_A_FILE, **bounds, "nullCount": {"id": 0, "name": 0}}
        add: dict[str, Any] = {
            "path": f"part-{number:06}.parquet",
            "partitionValues": {},
            "size": _BYTES_OF_A_FILE,
            "modificationTime": 1_700_000_000_000,
            "dataChange": True,
            "stats": json.dumps(statistics_of_file),
        }
        return json.dumps({"add": add})

    log = place / "_delta_log"
    version = sum(file.suffix == ".json" for file in log.iterdir())
    (log / f"{version:020}.json").write_text("\n".join(map(action, range(files))) + "\n")


def _ms(work: Callable[[], object]) -> tuple[float, str]:
    """The median of several times, without the first one, which loads code."""
    work()
    times = []
    for _ in range(_TIMES):
        started = time.perf_counter()
        work()
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times), "ms"


def _driver_mb(spark: SparkSession) -> float:
    """Java's heap in use after a collection, and the resident memory of this process, in which the driver merges."""
    jvm: Any = spark._jvm
    jvm.java.lang.System.gc()
    runtime = jvm.java.lang.Runtime.getRuntime()
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return float(runtime.totalMemory() - runtime.freeMemory() + resident) / 1e6
