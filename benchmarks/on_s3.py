"""A table on S3 beside the same table on a disk: the store is a local S3 server (moto) behind 20 ms a request."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks.goals import Outcome, at_most
from benchmarks.ground import Ground
from benchmarks.scale import SEED
from bridge.columns import KIND, frame_of
from bridge.definition import DeltaTarget, Engine, MergeSettings
from bridge.delta.engine_choice import Engines
from bridge.delta.table import create_table
from bridge.ingest_progress import IngestProgress
from bridge.offsets import Offsets
from tests.lossy_proxy import LossyProxy
from tests.object_store import BUCKET, ObjectStore

_SEEDS, _COLD, _WARM = 5, 2, 5
_DELAY_SECONDS = 0.02
_FEW_SECONDS, _MOST_REQUESTS = 0.45, 60
_LARGE_GOAL = 1.2


@dataclass(frozen=True)
class _Shape:
    """Drawn: the key's type, the number of further columns, and the length of their texts."""

    of_texts: bool
    columns: int
    letters: int

    def rows(self, keys: np.ndarray, draw: np.random.Generator) -> pa.Table:
        """A row of each key."""
        ids = pa.array(keys, pa.int64())
        made = {"id": ids.cast(pa.string()) if self.of_texts else ids}
        for n in range(self.columns):
            numbers = pa.array(draw.integers(0, 10**9, keys.size), pa.int64())
            made[f"c{n}"] = (
                numbers if n % 2 else pa.array([f"{v:0{self.letters}}" for v in numbers.to_pylist()])
            )
        return pa.table(made)


def outcomes(ground: Ground, rows: int) -> list[Outcome]:
    """Batches of a thousandth of half the rows and of a twentieth of them, each into `rows` rows; the worst of five
    drawn shapes."""
    few, many = rows // 2_000, rows // 20
    found: list[tuple[float, float, float, int]] = []
    with ObjectStore(ground.folder / "s3") as store, behind(ground.spark, store) as proxy:
        for seed in range(SEED, SEED + _SEEDS):
            draw = random.Random(seed)
            shape = _Shape(draw.random() < 0.5, draw.randrange(3, 12), draw.choice((8, 24, 60)))
            disk = _measured(
                ground.spark, f"{ground.folder}/disk-{seed}", shape, rows, (few, many), seed, None
            )
            s3 = _measured(ground.spark, f"s3a://{BUCKET}/t{seed}", shape, rows, (few, many), seed, proxy)
            ground.say(f"seed {seed}, {shape}: {few:,} and {many:,} keys on a disk {disk}, on S3 {s3}")
            found.append((s3.few, disk.few, s3.many / disk.many, s3.requests))
    few_s3, few_disk = max(each[0] for each in found), statistics.median(each[1] for each in found)
    large, requests = max(each[2] for each in found), max(each[3] for each in found)
    what = f"on S3: {few:,} random keys into {rows:,} rows"
    return [
        at_most(f"{what} / {_FEW_SECONDS} s", "s a batch", _FEW_SECONDS, few_s3, 1.0),
        at_most(f"{what} / on a disk", "s a batch", few_disk, few_s3, 0.0),
        at_most(f"{what}, requests", "requests", float(_MOST_REQUESTS), float(requests), 1.0),
        at_most(f"on S3: {many:,} keys into {rows:,} rows / on a disk", "times", 1.0, large, _LARGE_GOAL),
    ]


@dataclass(frozen=True)
class _Found:
    few: float
    many: float
    requests: int

    def __str__(self) -> str:
        return f"{self.few:.3f} and {self.many:.3f} s, {self.requests} requests"


def _measured(
    spark: SparkSession,
    place: str,
    shape: _Shape,
    rows: int,
    sizes: tuple[int, int],
    seed: int,
    proxy: LossyProxy | None,
) -> _Found:
    """The median seconds of warm batches of both sizes, and the most requests of a small one."""
    draw = np.random.default_rng(seed)
    filled = shape.rows(np.arange(rows), draw)
    schema = spark.createDataFrame(filled.slice(0, 1)).schema
    table = create_table(spark, DeltaTarget(path=place), schema.fields, pipeline="s3")
    frame_of(spark, filled, schema).repartition(4).write.format("delta").mode("append").save(place)
    engines, batch = Engines(MergeSettings(engine=Engine.AUTO)), 0
    seconds: dict[int, list[float]] = {size: [] for size in sizes}
    requests = [0]
    for size in sizes:
        for number in range(_COLD + _WARM):
            changes = shape.rows(draw.choice(rows, size, replace=False), draw)
            changes = changes.append_column(KIND, pa.repeat("+U", size))
            before, started = len(proxy.requests) if proxy else 0, time.perf_counter()
            engines.merge(table, changes, key=["id"], adds=size, progress=_progress(batch))
            taken, batch = time.perf_counter() - started, batch + 1
            if number >= _COLD:
                seconds[size].append(taken)
                if proxy and size == sizes[0]:
                    requests.append(len(proxy.requests) - before)
    few, many = (statistics.median(seconds[size]) for size in sizes)
    return _Found(few, many, max(requests))


def _progress(batch: int) -> IngestProgress:
    return IngestProgress("s3", "run", batch, Offsets({("t", 0): batch}), {"t": "id"})


@contextmanager
def behind(spark: SparkSession, store: ObjectStore) -> Iterator[LossyProxy]:
    """The store as the session reaches it: behind a proxy that delays each request."""
    with LossyProxy("127.0.0.1", store.port, delay=_DELAY_SECONDS) as proxy:
        for name, value in store.settings(url=proxy.url).items():
            spark.conf.set(name, value)
        yield proxy
