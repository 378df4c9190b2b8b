"""What a small batch and a small range cost in a table with an old log, beside the same table with a young one."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from benchmarks.goals import Outcome, at_most
from benchmarks.ground import Ground
from benchmarks.on_s3 import behind
from benchmarks.scale import SEED
from bridge.columns import KIND, frame_of
from bridge.definition import DeltaTarget, MergeSettings
from bridge.delta.changed_files import changes_in_driver
from bridge.delta.engine_choice import Engines
from bridge.delta.table import Table, create_table
from bridge.ingest_progress import IngestProgress
from bridge.lake.local_store import LocalStore
from bridge.lake.remote_store import RemoteStore
from bridge.lake.store import Store
from bridge.log_layout import commit_path
from bridge.offsets import Offsets
from tests.object_store import BUCKET, ObjectStore

_ROWS, _KEYS = 20_000, 100
_COLD, _WARM = 3, 30
_GOAL = 1.2


@dataclass(frozen=True)
class Age:
    """What the log of a table has behind it."""

    commits: int
    removed: int
    """Files that these commits have removed, which a checkpoint lists for a week."""

    def __str__(self) -> str:
        return f"{self.commits:,} commits, {self.removed:,} removed files"


AGES = (Age(100, 0), Age(10_000, 10_000), Age(100, 100_000))


@dataclass(frozen=True)
class Costs:
    """Mean seconds, checkpoints that fall due included."""

    batch: float
    range: float


def outcomes(ground: Ground) -> list[Outcome]:
    """Each older table beside the young one, on a disk and on S3 behind 20 ms a request."""
    found: list[Outcome] = []
    with ExitStack() as stack:
        store = stack.enter_context(ObjectStore(ground.folder / "s3"))
        stack.enter_context(behind(ground.spark, store))
        options = store.delta_rs_options()
        for where, root, login in (
            ("a disk", str(ground.folder), {}),
            ("S3", f"s3a://{BUCKET}", options),
        ):
            costs = [
                measured(ground.spark, f"{root}/age-{n}", age, login, (_ROWS, _KEYS, _WARM))
                for n, age in enumerate(AGES)
            ]
            for age, cost in zip(AGES, costs, strict=True):
                ground.say(f"on {where}, {age}: a batch {cost.batch:.3f} s, a range {cost.range:.3f} s")
            young = costs[0]
            for age, cost in zip(AGES[1:], costs[1:], strict=True):
                what = f"on {where}: {age} / {AGES[0]}"
                found += [
                    at_most(f"{what}, a batch", "s", young.batch, cost.batch, _GOAL),
                    at_most(f"{what}, a range", "s", young.range, cost.range, _GOAL),
                ]
    return found


def measured(
    spark: SparkSession, place: str, age: Age, login: dict[str, str], size: tuple[int, int, int]
) -> Costs:
    """Make a table of that age, then merge batches into it and read the changes of each.

    `size` is its rows, the keys of a batch and the number of batches."""
    rows, keys, warm = size
    draw = np.random.default_rng(SEED)
    filled = _rows(np.arange(rows), draw)
    schema = spark.createDataFrame(filled.slice(0, 1)).schema
    table = create_table(spark, DeltaTarget(path=place), schema.fields, pipeline="age")
    frame_of(spark, filled, schema).repartition(4).write.format("delta").mode("append").save(place)
    _grow(RemoteStore(place, login) if login else LocalStore(place), age)
    DeltaTable(place, storage_options=login).create_checkpoint()
    seconds = [*_turns(table, draw, (rows, keys, _COLD + warm))][_COLD:]
    return Costs(statistics.mean(s for s, _ in seconds), statistics.mean(s for _, s in seconds))


def _rows(ids: np.ndarray, draw: np.random.Generator) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array(draw.integers(0, 10**9, len(ids)))})


def _grow(store: Store, age: Age) -> None:
    """Add commits that change no row: each removes its share of files that no longer exist."""
    first = next(n for n in range(100) if store.head(commit_path(n)) is None)
    now, share = int(time.time() * 1000), -(-age.removed // age.commits)
    left = age.removed
    for number in range(age.commits):
        actions: list[dict[str, object]] = [{"commitInfo": {"timestamp": now, "operation": "OPTIMIZE"}}]
        for each in range(min(share, left)):
            gone = f"part-{number:05}-{each:03}-00000000-0000-0000-0000-000000000000-c000.snappy.parquet"
            remove = {"path": gone, "deletionTimestamp": now, "dataChange": False, "size": 1_000_000}
            actions.append({"remove": {**remove, "extendedFileMetadata": True, "partitionValues": {}}})
        left -= min(share, left)
        store.create(commit_path(first + number), "\n".join(map(json.dumps, actions)).encode())


def _turns(
    table: Table, draw: np.random.Generator, size: tuple[int, int, int]
) -> Iterator[tuple[float, float]]:
    """The seconds of a batch, and of reading its changes."""
    rows, keys, batches = size
    engines = Engines(MergeSettings())
    for number in range(batches):
        changes = _rows(draw.choice(rows, keys, replace=False), draw)
        changes = changes.append_column(KIND, pa.repeat("+U", keys))
        progress = IngestProgress("age", "run", number, Offsets({("t", 0): number}), {"t": "id"})
        began = time.perf_counter()
        merged = engines.merge(table, changes, key=["id"], adds=keys, progress=progress)
        committed = time.perf_counter()
        version = merged.version
        assert merged.engine == "driver"
        found = changes_in_driver(table, version, version, ["id", "v"], most_bytes=4 << 20, most_rows=100_000)
        ended = time.perf_counter()
        assert found.num_rows == 2 * keys  # rows before and after
        yield committed - began, ended - committed
