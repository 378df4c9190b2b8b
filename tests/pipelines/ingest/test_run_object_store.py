"""Pipeline file, suite, table, checkpoint and results on S3: ingest, publish and verify, by both engines."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

from bridge import config
from bridge.definition import Definition
from bridge.embedded.broker import Broker
from bridge.errors import ConcurrentRunError
from bridge.metrics import BatchReport
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest.replay import replay
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.operations.maintain import maintain
from bridge.pipelines.publish.run import publish
from bridge.pipelines.quality.check import check
from bridge.pipelines.resync.topic_to_table import resync
from bridge.pipelines.runtime.lease import LeaseTiming, acquire_lease
from bridge.store_options import given_settings
from tests.config.files import pipeline_text
from tests.lossy_proxy import LossyProxy
from tests.object_store import KEY, SECRET, ObjectStore, only_on_s3
from tests.pipelines.world import COLUMNS, Make, World, tombstone, upsert

INGEST = """\
ingest: {bad-records: quarantine, quarantine: {path: ../bad}}
quality: {suite: suite.json, results: {path: ../results}, report: ../report.html}
"""


@pytest.fixture
def bucket(store: ObjectStore, unique: Callable[[str], str]) -> str:
    return f"{store.root}/{unique('run')}"


def pipeline(
    world: World,
    store: ObjectStore,
    bucket: str,
    topic: str,
    name: str,
    engine: str = "auto",
    options: Mapping[str, str] | None = None,
) -> Definition:
    """A pipeline whose file is in the bucket, in conf/, and names all places relative to itself."""
    place = {"topic": topic, "properties.bootstrap.servers": world.broker.bootstrap}
    conf = f"{bucket.removeprefix(f'{store.root}/')}/conf"
    suite = {
        "name": "s",
        "expectations": [{"type": "expect_key_to_be_unique", "kwargs": {"column_list": ["id"]}}],
    }
    text = pipeline_text(
        COLUMNS,
        {**place, **(options or {})},
        name=name,
        delta="path: ../orders",
        run=f'checkpoint: "../checkpoints/{name}"',
        sections=f"merge: {{engine: {engine}}}\n{INGEST if name == 'in' else ''}",
    )
    for file, content in (("suite.json", json.dumps(suite)), (f"{name}.yaml", text)):
        store.put(f"{conf}/{file}", content.encode())
    with given_settings(lambda: {f"spark.hadoop.{k}": v for k, v in store.settings().items()}):
        return config.load(f"{bucket}/conf/{name}.yaml")


def rows(store: ObjectStore, bucket: str) -> list[tuple[int, str]]:
    """The table, read by delta-rs with a login of its own."""
    queries = QueryBuilder().register(
        "t", DeltaTable(f"{bucket}/orders", storage_options=store.delta_rs_options())
    )
    found = pa.table(queries.execute("SELECT id, name FROM t").read_all())
    return sorted((row["id"], row["name"]) for row in found.to_pylist())


@pytest.mark.parametrize("engine", ["driver", pytest.param("spark", marks=pytest.mark.slow)])
def test_topics_and_a_table_on_s3_are_equal(
    make: Make,
    spark: SparkSession,
    broker: Broker,
    store: ObjectStore,
    bucket: str,
    engine: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = make()
    out = f"{world.topic}-out"
    broker.create_topic(out, partitions=2)
    once = {"sink.delivery-guarantee": "exactly-once", "sink.transactional-id-prefix": out}
    into = pipeline(world, store, bucket, world.topic, "in", engine)
    outward = pipeline(world, store, bucket, out, "out", options=once if engine == "spark" else None)
    for first, records in enumerate(
        (
            [upsert(1, "a"), upsert(2, "b"), upsert(3, "c"), ('{"id":4}', "{")],
            [upsert(1, "A"), tombstone(2), upsert(5, "e")],
        )
    ):
        world.send(records)
        done = ingest(spark, into)
        assert done.batches == 1 and done.bad_records == (first == 0)
        publish(spark, outward)
    assert rows(store, bucket) == [(1, "A"), (3, "c"), (5, "e")]
    fold = {}
    for key, value in world.received(out):
        fold[json.loads(key or b"")["id"]] = value and json.loads(value)["name"]
    assert fold == {1: "A", 2: None, 3: "c", 5: "e"}
    assert verify(spark, outward).equal
    if engine == "spark":
        assert verify(spark, into).equal and check(spark, into).verdict.success
        assert "<html" in store.text(f"{bucket.removeprefix(f'{store.root}/')}/report.html")
    assert ingest(spark, into).batches == 0

    own = store.names(bucket.removeprefix(f"{store.root}/"))
    assert {name.split("/")[1] for name in own} >= {"orders", "checkpoints", "bad"}
    commits = [store.text(name) for name in own if "/orders/_delta_log/0" in name and name.endswith(".json")]
    merges = [commit for commit in commits if '"operation":"MERGE"' in commit]
    assert merges
    assert all(('"engineInfo":"changelog-bridge' in merge) == (engine == "driver") for merge in merges)
    told = caplog.text + Path(os.environ["BRIDGE_LOG"]).read_text()
    told += "".join(store.text(name) for name in own if name.endswith(".json"))
    assert SECRET not in told and KEY not in told


def test_a_table_on_s3_is_corrected_repaired_and_maintained(
    make: Make, spark: SparkSession, lake: Path, store: ObjectStore, bucket: str
) -> None:
    """`replay`, `resync` and `maintain`: their files are in the bucket, and so are those of `ingest`."""
    world = make()
    into = pipeline(world, store, bucket, world.topic, "in")
    world.send([upsert(1, "a"), upsert(2, "b"), ('{"id":3}', "{")])
    assert ingest(spark, into).bad_records == 1

    spark.sql(f"DELETE FROM delta.`{bucket}/orders` WHERE id = 1")
    spark.sql(f"UPDATE delta.`{bucket}/orders` SET name = 'wrong' WHERE id = 2")
    spark.sql(f"INSERT INTO delta.`{bucket}/orders` VALUES (9, 'ghost', 1)")
    planned, done = resync(spark, into, dry_run=True), resync(spark, into)
    assert (planned.inserted, planned.updated, planned.deleted) == (1, 1, 1)
    assert (done.inserted, done.updated, done.deleted) == (1, 1, 1)
    assert rows(store, bucket) == [(1, "a"), (2, "b")]

    good = '{"id":3,"name":"c","amount":1}'
    spark.sql(f"UPDATE delta.`{bucket}/bad` SET value = CAST('{good}' AS BINARY)")
    assert replay(spark, into).replayed == 1
    assert rows(store, bucket) == [(1, "a"), (2, "b"), (3, "c")]

    maintained = maintain(spark, into)
    assert maintained.files_compacted and maintained.files_deleted is not None
    world.send([tombstone(1)])
    assert ingest(spark, into).deleted == 1
    assert rows(store, bucket) == [(2, "b"), (3, "c")]
    assert sorted(path.name for path in lake.iterdir()) == []


def test_a_turn_asks_the_store_for_what_it_changes(
    make: Make, spark: SparkSession, broker: Broker, store: ObjectStore, bucket: str
) -> None:
    """From batch to batch, and for a publish of few changes; nothing is listed within a run."""
    only_on_s3(store)
    world = make(partitions=1)
    out = f"{world.topic}-out"
    broker.create_topic(out)
    into, outward = (pipeline(world, store, bucket, t, n) for t, n in ((world.topic, "in"), (out, "out")))
    into = replace(into, run=replace(into.run, max_offsets_per_batch=2))
    world.send([upsert(n % 5, f"{n}") for n in range(12)])
    turns: list[list[str]] = []

    def count(_: BatchReport) -> None:
        turns.append(
            [request.split("?")[0] + "?list" * ("list-type" in request) for request in proxy.requests]
        )
        proxy.requests.clear()

    with LossyProxy("127.0.0.1", store.port) as proxy:
        for name, value in store.settings(url=proxy.url).items():
            spark.conf.set(name, value)
        assert ingest(spark, into, listener=count).batches == 6
        batches = turns[2:]
        publish(spark, outward)
        world.send([upsert(1, "again")])
        ingest(spark, into)
        turns.clear()
        proxy.requests.clear()
        assert publish(spark, outward, listener=count).records_out == 1
    # Is the newest commit there, is there a next one; files with the keys; new files and their commit; the lease.
    assert max(map(len, batches)) <= 12, batches
    assert not [request for turn in batches for request in turn if request.endswith("?list")]
    assert len(turns) == 1 and len(turns[0]) <= 24, "\n".join(turns[0])


@pytest.mark.parametrize("times", [5, pytest.param(200, marks=pytest.mark.slow)])
def test_of_two_runs_that_start_at_once_one_works(
    make: Make, spark: SparkSession, store: ObjectStore, bucket: str, times: int
) -> None:
    world = make()
    into = pipeline(world, store, bucket, world.topic, "in")
    timing = LeaseTiming(remote_heartbeat_seconds=0.2, poll_seconds=0.02)

    def run(number: int) -> None:
        try:
            with acquire_lease(spark, into, "ingest", timing=timing):
                working.append(number)
                deadline = time.monotonic() + 60
                while not refused and len(working) == 1 and time.monotonic() < deadline:
                    time.sleep(0.02)
        except ConcurrentRunError:
            refused.append(number)

    for _ in range(times):
        working: list[int] = []
        refused: list[int] = []
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(run, range(2)))
        assert (len(working), len(refused)) == (1, 1)
