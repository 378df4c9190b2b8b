"""What holds under the rules of serverless compute. `test_connect_serverless` runs it with a session that has them."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bridge import config, failpoints
from bridge.backend import Feature, backend_of, persist
from bridge.backend.connect import SERVERLESS
from bridge.definition import Definition, Reader
from bridge.delta.ingest_progress import read_progress
from bridge.errors import BridgeError, DefinitionError, UnsupportedError
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.publish.run import publish
from bridge.pipelines.resync.topic_to_table import resync
from bridge.pipelines.runtime.preflight import ingest_table
from bridge.schema import ColumnRule
from tests.backend.serverless import SETTINGS
from tests.pipelines.world import Make, World, key, value

ROUNDS = int(os.environ.get("KILLS", "6"))


def definition(world: World, name: str = "orders", most: int = 1000) -> Definition:
    """With the state in a table, and this many offsets in a batch."""
    run = {"checkpoint": None, "state": f"{world.folder}/state", "max-offsets-per-batch": most}
    return world.definition(name, run=run)


def test_the_rules(spark: SparkSession) -> None:
    for name in SETTINGS - {"spark.databricks.execution.timeout", "spark.sql.legacy.timeParserPolicy"}:
        before = spark.conf.get(name)
        assert before is not None
        spark.conf.set(name, before)
    frame = spark.range(3)
    one_more = "spark.sql.codegen.wholeStage"
    refused: dict[str, Callable[[], object]] = {
        "CONFIG_NOT_AVAILABLE": lambda: spark.conf.set("spark.databricks.delta.commitInfo.userMetadata", "x"),
        "PERSIST TABLE is not supported": frame.persist,
        "CACHE TABLE is not supported": lambda: spark.sql("CACHE TABLE a AS SELECT 1"),
        "CHECKPOINT is not supported": frame.localCheckpoint,
        "GLOBAL TEMPORARY VIEW is not supported": lambda: frame.createGlobalTempView("v"),
        f"Configuration {one_more} is not": lambda: spark.sql(f"SET {one_more}=false"),
        "Configuration spark.master is not": lambda: spark.conf.get("spark.master"),
    }
    for words, breaks in refused.items():
        with pytest.raises(PySparkException, match=words):
            breaks()
    with pytest.raises(PySparkException, match="no network"):
        frame.mapInArrow(_with_kafka, "id bigint").collect()
    assert persist(frame) is frame


def _with_kafka(batches: Iterator[Any]) -> Iterator[Any]:
    import confluent_kafka  # noqa: F401

    return batches


def test_the_backend_knows_them(spark: SparkSession) -> None:
    backend = backend_of(spark)
    assert {f: why for f in Feature if (why := backend.can(f)) is not None} == SERVERLESS
    assert backend.master == "connect" and backend.parallelism > 0
    assert backend.setting("spark.local.dir") is None


@pytest.mark.parametrize("columns", ["key", "no key"])
def test_topic_to_table(make: Make, spark: SparkSession, columns: str) -> None:
    rows = {"options": {"connector": "kafka", "key.format": None, "scan.startup.mode": "earliest-offset"}}
    no_key = {"columns": "id BIGINT, name STRING", "cleanup": "delete", **rows}
    world = make(**(no_key if columns == "no key" else {}))
    world.send([(key(n), value(n, "a")) for n in range(8)])
    first = ingest(spark, definition(world))
    world.send([(key(n), value(n, "b")) for n in range(4)])
    if columns == "key":
        world.send([(key(7), None)])
    second = ingest(spark, definition(world, most=2))
    assert (first.records_in, first.batches) == (8, 1) and second.batches > 1
    names = [row[1] for row in world.rows()]
    assert sorted(names) == (["a"] * 3 + ["b"] * 4 if columns == "key" else ["a"] * 8 + ["b"] * 4)
    assert verify(spark, definition(world)).equal
    assert ingest(spark, definition(world)).batches == 0


def test_other_readers_and_options_are_refused_by_name(make: Make, spark: SparkSession) -> None:
    world = make()
    world.send([(key(1), value(1, "a"))])
    with pytest.raises(
        DefinitionError, match=r"`ingest\.reader: consumer` is not possible, as .* no network"
    ):
        ingest(spark, replace(definition(world), reader=Reader.CONSUMER))
    with pytest.raises(DefinitionError, match=r"`run\.checkpoint: .*let `run\.state` name a table"):
        ingest(spark, world.definition())
    ingest(spark, definition(world))
    with pytest.raises(UnsupportedError, match=r"resync of a table is not possible .* six settings of Spark"):
        resync(spark, definition(world))
    sums = definition(world)
    sums = replace(sums, delta=replace(sums.delta, aggregate={"value": ColumnRule.SUM}))
    with pytest.raises(UnsupportedError, match=r"a sum \(delta\.aggregate\) is not possible .* six settings"):
        ingest(spark, sums)
    two = make(folder="out", options={"sink.parallelism": "2"}, delta="path: ../table")
    with pytest.raises(UnsupportedError, match=r"'sink\.parallelism' = '2' is not possible .* no network"):
        publish(spark, definition(two, "out"))


@pytest.mark.parametrize("guarantee", ["at-least-once", "exactly-once"])
def test_table_to_topic(make: Make, spark: SparkSession, guarantee: str) -> None:
    world = make()
    world.send([(key(n), value(n, "a")) for n in range(20)])
    ingest(spark, definition(world))
    once = {"sink.delivery-guarantee": "exactly-once", "sink.transactional-id-prefix": world.topic}
    options = once if guarantee == "exactly-once" else {}
    out = make(folder="out", delta="path: ../table", options=options)
    assert publish(spark, definition(out, "out")).records_out == 20
    world.send([(key(n), value(n, "b")) for n in range(5)] + [(key(19), None)])
    ingest(spark, definition(world))
    assert publish(spark, definition(out, "out")).records_out == 6
    assert verify(spark, definition(out, "out")).equal
    assert publish(spark, definition(out, "out")).records_out == 0


@pytest.mark.parametrize("at", ["ingest.begun", "ingest.merged"])
def test_what_was_begun_is_read_again_as_a_whole(
    make: Make, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """A shorter batch would take rows back to earlier records."""
    world = make(partitions=1)
    world.send([(key(n), value(n, "a")) for n in range(3)])
    ingest(spark, definition(world))
    world.send([(key(1), value(1, name)) for name in "bcde"])
    with monkeypatch.context() as killed:
        killed.setattr(failpoints, "hit", _dies_at(at))
        with pytest.raises(BridgeError, match="killed"):
            ingest(spark, definition(world))
    table = ingest_table(spark, definition(world))
    known = read_progress(table, "orders")
    assert known is not None and known[0].reaches is not None
    assert (known[0].offsets.get(world.topic, 0), known[0].reaches.get(world.topic, 0)) == (3, 7)
    done = ingest(spark, definition(world, most=1))
    assert (done.batches, done.records_in) == (1, 4)
    assert [name for name, _ in feed(world)[1]] == ["a", "e"]


@pytest.mark.timeout(1800)
def test_drawn_kills(make: Make, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """`KILLS` of them, each between two steps of a batch: rows never go back, and no change comes twice."""
    seed = int(os.environ.get("SEED", "0")) or random.randrange(1 << 32)
    print(f"SEED={seed}")
    chance = random.Random(seed)
    world, sent, last, kills = make(partitions=2), 0, dict[int, str | None](), 0
    while kills < ROUNDS:
        for _ in range(chance.randint(1, 9)):
            n, sent = chance.randrange(4), sent + 1
            last[n] = None if chance.random() < 0.1 else f"{sent:06}"
            text = last[n]
            world.send([(key(n), None if text is None else value(n, text))], partition=n % 2)
        run = definition(world, most=chance.randint(1, 8))
        at = chance.choice(["ingest.before-merge", "ingest.begun", "ingest.merged", "ingest.after-merge"])
        with monkeypatch.context() as killed:
            killed.setattr(failpoints, "hit", _dies_at(at, chance.randint(1, 2)))
            try:
                ingest(spark, run)
            except BridgeError:
                kills += 1
    ingest(spark, definition(world))
    assert {row[0]: row[1] for row in world.rows()} == {n: name for n, name in last.items() if name}
    for n, changes in feed(world).items():
        names = [name for name, _ in changes]
        assert names == sorted(set(names)), (seed, n, changes)


def _dies_at(name: str, after: int = 1) -> Callable[[str], None]:
    left = [after]

    def hit(found: str) -> None:
        left[0] -= found == name
        if found == name and left[0] == 0:
            raise BridgeError("killed")

    return hit


def feed(world: World) -> dict[int, list[tuple[str, str]]]:
    """The changes of each row by its id, in the order of versions: the name and the kind."""
    reader = world.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0)
    frame = reader.load(str(world.folder / "table")).where("_change_type != 'update_preimage'")
    found: dict[int, list[tuple[str, str]]] = {}
    for row in frame.orderBy("_commit_version").collect():
        if row["_change_type"] != "delete":
            found.setdefault(row["id"], []).append((row["name"], row["_change_type"]))
    return found


def test_state_of_all_is_in_the_table(make: Make, spark: SparkSession) -> None:
    world = make()
    world.send([(key(1), value(1, "a"))])
    ingest(spark, definition(world))
    assert sorted(path.name for path in Path(world.folder).iterdir() if path.is_dir()) == ["state", "table"]
    assert config.load(world.folder / "orders.yaml").run.state is not None
