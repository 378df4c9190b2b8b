"""A resync makes a table equal to its topic, and touches nothing else."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.delta.ingest_progress import read_progress
from bridge.delta.merge_contract import MergeResult
from bridge.delta.merge_spark import SparkEngine
from bridge.embedded.broker import Broker
from bridge.errors import BadRecordError, ConcurrentRunError, GapError
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.resync import topic_to_table
from bridge.pipelines.resync.report import direction_of
from bridge.pipelines.resync.topic_to_table import resync
from bridge.pipelines.runtime.preflight import open_whole_table
from tests.delta.tables import merged_by_delta_rs
from tests.metrics.openlineage import edges, events_in
from tests.pipelines.world import World, key, tombstone, upsert

Make = Callable[..., World]
ONE = Decimal("1.00")


@pytest.fixture
def make(spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]) -> Make:
    return lambda **more: World.make(spark, broker, lake, unique, **more)


def sql(world: World, text: str) -> None:
    world.spark.sql(text.format(table=f"delta.`{world.folder}/table`"))


def written(world: World, version: int) -> list[tuple[Any, ...]]:
    """The change feed of one version: (change, id)."""
    reader = world.spark.read.format("delta").option("readChangeFeed", "true")
    frame = reader.options(startingVersion=version, endingVersion=version).load(f"{world.folder}/table")
    return sorted((row["_change_type"], row["id"]) for row in frame.collect())


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("vectors", [True, False])
def test_random_damage_is_repaired_and_nothing_else_is_touched(make: Make, seed: int, vectors: bool) -> None:
    chance = random.Random(seed)
    world = make()
    world.send([upsert(n, f"n{n}") for n in range(40)] + [tombstone(n) for n in range(30, 40)])
    definition = world.definition()
    if not vectors:
        off = {"delta.enableDeletionVectors": "false"}
        definition = replace(definition, delta=replace(definition.delta, properties=off))
    ingest(world.spark, definition)
    right = world.rows()
    ids = chance.sample(range(30), 12)
    gone, other, null, twice = ids[:3], ids[3:6], ids[6:8], ids[8:12]
    ghosts = chance.sample(range(30, 60), 4)

    def among(these: list[int]) -> str:
        return f"id IN ({', '.join(map(str, these))})"

    sql(world, f"DELETE FROM {{table}} WHERE {among(gone)}")
    sql(world, f"UPDATE {{table}} SET name = 'wrong' WHERE {among(other)}")
    sql(world, f"UPDATE {{table}} SET amount = NULL WHERE {among(null)}")
    sql(world, f"INSERT INTO {{table}} SELECT id, name, amount FROM {{table}} WHERE {among(twice[:2])}")
    sql(world, f"INSERT INTO {{table}} SELECT id, 'second', amount FROM {{table}} WHERE {among(twice[2:])}")
    sql(world, "INSERT INTO {table} VALUES " + ", ".join(f"({n}, 'ghost', 1)" for n in [*ghosts, ghosts[0]]))

    planned = resync(world.spark, definition, dry_run=True)
    assert (planned.inserted, planned.updated, planned.deleted, planned.unchanged) == (3, 9, 4, 18)
    before = world.history()[0]["version"]
    done = resync(world.spark, definition)
    assert replace(done, dry_run=True, version=None) == planned and done.version == before + 1
    assert world.rows() == right
    assert verify(world.spark, definition).equal
    assert done.version is not None
    touched = {id for _, id in written(world, done.version)}
    assert touched == {*gone, *other, *null, *twice, *ghosts}
    again = resync(world.spark, definition)
    assert (again.version, again.unchanged) == (done.version, 30)
    world.send([upsert(1, "goes on"), tombstone(2)])
    assert ingest(world.spark, definition).records_in == 2
    assert verify(world.spark, definition).equal


@pytest.mark.slow
def test_it_is_all_or_nothing(make: Make, arm: Callable[[str, str], Path]) -> None:
    world = make()
    world.send([upsert(n, "a") for n in range(5)])
    ingest(world.spark, world.definition())
    sql(world, "UPDATE {table} SET name = 'wrong' WHERE id < 3")
    damaged, version = world.rows(), world.history()[0]["version"]
    arm("resync.before-commit", "raise")
    with pytest.raises(RuntimeError, match=r"failpoint resync\.before-commit"):
        resync(world.spark, world.definition())
    assert (world.rows(), world.history()[0]["version"]) == (damaged, version)
    arm("resync.after-commit", "raise")
    with pytest.raises(RuntimeError, match=r"failpoint resync\.after-commit"):
        resync(world.spark, world.definition())
    done = resync(world.spark, world.definition())
    assert (done.updated, done.unchanged, done.version) == (0, 5, version + 1)
    assert world.history()[0]["version"] == version + 1


@pytest.mark.slow
def test_an_ingest_that_commits_meanwhile_wins(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    world = make()
    world.send([upsert(1, "a")])
    ingest(world.spark, world.definition())
    sql(world, "DELETE FROM {table}")

    class Late(SparkEngine):
        def merge(self, *args: Any, **options: Any) -> MergeResult:
            world.send([upsert(2, "b")])
            ingest(world.spark, world.definition(run={"checkpoint": "another"}))  # past the lease of this one
            return super().merge(*args, **options)

    with monkeypatch.context() as patched:
        patched.setattr(topic_to_table, "SparkEngine", Late)
        with pytest.raises(ConcurrentRunError, match=r"batch 1 .* was not applied: run '.*' has committed"):
            resync(world.spark, world.definition())
    assert world.rows() == [(2, "b", ONE)]
    assert resync(world.spark, world.definition()).inserted == 1
    assert world.rows() == [(1, "a", ONE), (2, "b", ONE)]


@pytest.mark.slow
def test_a_table_that_lost_its_progress_is_taken_up_again(make: Make) -> None:
    world = make()
    world.send([upsert(1, "a"), upsert(2, "b")])
    definition = world.definition()
    ingest(world.spark, definition)
    then = world.history()[0]["timestamp"]
    sql(world, "DELETE FROM {table} WHERE id = 2")
    sql(world, f"RESTORE TABLE {{table}} TO TIMESTAMP AS OF '{then}'")
    sql(world, "DELETE FROM {table} WHERE id = 1")
    with pytest.raises(GapError, match=r"restored it by timestamp.*run `bridge resync FILE`"):
        ingest(world.spark, definition)
    assert direction_of(world.spark, definition, None) == "ingest"
    assert resync(world.spark, world.definition(run={"lineage": "events.jsonl"})).inserted == 1
    assert edges(events_in(world.folder / "events.jsonl")) == {
        (world.topic, "orders.resync"),
        ("orders.resync", f"{world.folder}/table"),
    }
    world.send([upsert(3, "c")])
    assert ingest(world.spark, definition).inserted == 1
    assert verify(world.spark, definition).equal


@pytest.mark.slow
def test_bad_records_are_treated_as_in_an_ingest(make: Make) -> None:
    world = make()
    world.send([upsert(1, "a"), upsert(2, "b")])
    ingest(world.spark, world.definition())
    sql(world, "UPDATE {table} SET name = 'wrong'")
    world.send([(key(1), "{")])
    before = world.rows()
    with pytest.raises(BadRecordError, match=rf"{world.topic}-\d at offset \d, row \(id: 1\): value: "):
        resync(world.spark, world.definition())
    assert world.rows() == before
    world.sections = "ingest: {bad-records: quarantine, quarantine: {path: aside}}\n"
    planned = resync(world.spark, world.definition(), dry_run=True)
    assert planned.bad == 1 and not (world.folder / "aside").exists()
    assert resync(world.spark, world.definition()) == replace(planned, dry_run=False, version=3)
    assert world.rows() == [(1, "a", ONE), (2, "b", ONE)]
    assert world.spark.read.format("delta").load(f"{world.folder}/aside").count() == 1


@pytest.mark.slow
def test_changes_of_a_database_are_folded_from_the_first(make: Make) -> None:
    """Values that Debezium leaves out are taken from the key's own earlier change."""
    options = {
        "connector": "kafka",
        "value.format": "debezium-json",
        "key.format": None,
        "scan.startup.mode": "earliest-offset",
    }
    world = make(
        options=options,
        columns="id BIGINT, name STRING, amount BIGINT, PRIMARY KEY (id) NOT ENFORCED",
        cleanup="delete",
        partitions=1,
    )
    hole = "__debezium_unavailable_value"

    def change(op: str, before: str, after: str) -> tuple[None, str]:
        return None, f'{{"before":{before},"after":{after},"op":"{op}"}}'

    first, second = '{"id":1,"name":"long","amount":1}', f'{{"id":1,"name":"{hole}","amount":2}}'
    world.send([change("c", "null", first), change("u", first, second)])
    world.send(
        [
            change("c", "null", '{"id":2,"name":"b","amount":1}'),
            change("d", '{"id":2,"name":"b","amount":1}', "null"),
        ]
    )
    ingest(world.spark, world.definition())
    assert world.rows() == [(1, "long", 2)]
    sql(world, "UPDATE {table} SET name = 'wrong'")
    sql(world, "INSERT INTO {table} VALUES (2, 'ghost', 1)")
    done = resync(world.spark, world.definition())
    assert (done.updated, done.deleted) == (1, 1)
    assert world.rows() == [(1, "long", 2)]
    assert verify(world.spark, world.definition()).equal


def test_a_key_that_wrong_statistics_have_doubled_is_repaired(make: Make) -> None:
    """As in an older bridge: delta-rs has written statistics of wide decimals, and nothing removes them."""
    wide = 1234567890123456789
    world = make(columns="id DECIMAL(20, 0), name STRING, PRIMARY KEY (id) NOT ENFORCED")
    definition = world.definition()
    world.send([(key(wide), f'{{"id":{wide},"name":"{name}"}}') for name in "ab"])
    ingest(world.spark, definition)
    sql(world, "DELETE FROM {table}")
    table = open_whole_table(world.spark, definition)
    progress = read_progress(table, definition.name)
    assert progress is not None
    for number, name in enumerate("ab", start=1):
        again = replace(progress[0], batch=progress[0].batch + number)
        merged_by_delta_rs(table, [(Decimal(wide), name)], again)
    assert {name for _, name in world.rows()} == {"a", "b"}, "the fault is not there"
    assert verify(world.spark, definition).comparison.table_rows == 2
    planned = resync(world.spark, definition, dry_run=True)
    assert (planned.updated, planned.warning) == (1, None)
    done = resync(world.spark, definition)
    assert done.updated == 1 and "2 files had wrong statistics of id" in str(done.warning)
    assert verify(world.spark, definition).equal
    world.send([(key(wide), f'{{"id":{wide},"name":"c"}}')])
    assert ingest(world.spark, definition).updated == 1
    assert world.rows() == [(Decimal(wide), "c")]
