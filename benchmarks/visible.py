"""When a reader of a table could see a record: which version holds it, and when that version was there."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

_EVERY_SECONDS = 0.005
Times = npt.NDArray[np.float64]


def delta_version(table: Path, version: int) -> Path:
    """The file that makes a version of a Delta table visible: it appears as a whole."""
    return table / "_delta_log" / f"{version:020}.json"


def paimon_version(table: Path, version: int) -> Path:
    """The file that makes a snapshot of a Paimon table visible: it appears as a whole."""
    return table / "snapshot" / f"snapshot-{version}"


class Watch:
    """Notes when each version of a table becomes visible: it asks for the next one every five milliseconds."""

    def __init__(self, has: Callable[[int], bool]) -> None:
        self.times: dict[int, float] = {}
        """In epoch seconds, of the versions since the start of the watch."""
        self._has, self._ended = has, threading.Event()
        self._next = 0
        while has(self._next) or has(self._next + 1):
            self._next += 1
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the watch. Versions that come later are not noted."""
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.wait(_EVERY_SECONDS):
            while self._has(self._next):
                self.times[self._next] = time.time()
                self._next += 1


def delta_changes(spark: SparkSession, table: Path, versions: Mapping[int, float]) -> DataFrame:
    """Columns version, id and number: the rows that each version has written, by the change data feed."""
    reader = spark.read.format("delta").option("readChangeFeed", "true")
    feed = reader.option("startingVersion", min(versions)).option("endingVersion", max(versions))
    written = feed.load(str(table)).where("_change_type IN ('insert', 'update_postimage')")
    return written.select(F.col("_commit_version").alias("version"), "id", "number")


def paimon_changes(spark: SparkSession, table: Path, versions: Mapping[int, float]) -> DataFrame:
    """As `delta_changes`: the rows in the data files that each snapshot of kind APPEND has added (Paimon's
    specification of snapshots and manifests)."""
    lists: dict[str, int] = {}
    for version in versions:
        described = json.loads(paimon_version(table, version).read_text())
        if described["commitKind"] == "APPEND":
            lists[described["deltaManifestList"]] = version
    of_list = _named(spark, lists, "version")
    manifests = _avro(spark, table, lists).join(F.broadcast(of_list), "file")
    manifests = manifests.select(F.col("_FILE_NAME").alias("name"), "version").localCheckpoint()
    of_manifest = {row["name"]: row["version"] for row in manifests.toLocalIterator()}
    entries = _avro(spark, table, of_manifest).where("_KIND = 0")
    entries = entries.join(F.broadcast(_named(spark, of_manifest, "version")), "file")
    files = entries.select(F.col("_FILE._FILE_NAME").alias("file"), "_BUCKET", "version").localCheckpoint()
    paths = [str(table / f"bucket-{row['_BUCKET']}" / row["file"]) for row in files.toLocalIterator()]
    rows = spark.read.parquet(*paths).select(_file(), "id", "number")
    return rows.join(F.broadcast(files), "file").select("version", "id", "number")


def seen_at(keys: npt.NDArray[np.int64], written: pa.Table, versions: Mapping[int, float]) -> Times:
    """When each of the records 1, 2, ... with these keys could be seen: the time of the first of `versions` that has
    `written` (columns version, id, number) the record's key with its number or a later one. nan for one that none
    has."""
    version, id, number = (written.column(name).to_numpy() for name in ("version", "id", "number"))
    order = np.lexsort((number, id))
    version, id, number = version[order], id[order], number[order]
    bits = max(int(number.max(initial=0)), len(keys)).bit_length()
    place = np.searchsorted((id << bits) | number, (keys << bits) | np.arange(1, len(keys) + 1))
    there = place < len(id)
    there[there] = id[place[there]] == keys[there]
    times = np.full(len(keys), np.nan)
    at = np.array([versions[v] for v in range(min(versions), max(versions) + 1)])
    times[there] = at[version[place[there]] - min(versions)]
    return times


def _named(spark: SparkSession, values: Mapping[str, int], column: str) -> DataFrame:
    return spark.createDataFrame(list(values.items()), f"file STRING, {column} BIGINT")


def _avro(spark: SparkSession, table: Path, names: Mapping[str, int]) -> DataFrame:
    files = [str(table / "manifest" / name) for name in names]
    return spark.read.format("avro").load(files).withColumn("file", _file())


def _file() -> Column:
    return F.element_at(F.split(F.input_file_name(), "/"), -1).alias("file")
