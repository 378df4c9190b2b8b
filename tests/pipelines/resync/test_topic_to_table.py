"""A resync makes a table equal to its topic, and touches nothing else.

Another writer restores the table while a resync compares it with its topic.

A resync of topics that no longer have all records, or never had them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from bridge import failpoints
from bridge.delta.ingest_progress import read_progress
from bridge.delta.merge_contract import MergeResult
from bridge.delta.merge_spark import SparkEngine
from bridge.delta.rows_taken_back import RowsTakenBack
from bridge.embedded.broker import Broker
from bridge.errors import BadRecordError, ConcurrentRunError, DefinitionError, GapError
from bridge.kafka.offset_availability import check_offsets_available
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.publish.run import publish
from bridge.pipelines.resync import table_to_topic, topic_to_table
from bridge.pipelines.resync.report import direction_of
from bridge.pipelines.resync.topic_to_table import resync
from bridge.pipelines.runtime.preflight import open_whole_table
from tests.delta.tables import merged_by_delta_rs
from tests.metrics.openlineage import edges, events_in
from tests.pipelines.world import Make, World, key, tombstone, upsert

ONE = Decimal("1.00")


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


@pytest.fixture
def world(make: Make, spark: SparkSession) -> World:
    """The rows of two batches: versions 1 and 2."""
    made = make(partitions=1)
    for id in (1, 2):
        made.send([upsert(id, "a")])
        ingest(spark, made.definition())
    return made


def restore(world: World, version: int) -> None:
    DeltaTable(str(world.folder / "table")).restore(version, protocol_downgrade_allowed=True)


@pytest.mark.slow
@pytest.mark.parametrize("damaged", [True, False])
def test_nothing_is_written_after_a_restore(
    world: World, monkeypatch: pytest.MonkeyPatch, damaged: bool
) -> None:
    """Also where the restored version has the offsets to which the resync has compared, and nothing differed then."""
    place = f"delta.`{world.folder}/table`"
    world.spark.sql(f"UPDATE {place} SET name = 'wrong' WHERE id = 1")
    if not damaged:
        world.spark.sql(f"UPDATE {place} SET name = 'a' WHERE id = 1")

    def checked(*given: Any) -> None:
        check_offsets_available(*given)
        restore(world, 1 if damaged else 3)

    with monkeypatch.context() as patched:
        patched.setattr("bridge.pipelines.resync.topic_to_table.check_offsets_available", checked)
        with pytest.raises(
            RowsTakenBack,
            match=r"\(RESTORE\) took rows back or .* while this run was at work; start it again: it continues",
        ):
            topic_to_table.resync(world.spark, world.definition())
    assert world.history()[0]["operation"] == "RESTORE"
    done = topic_to_table.resync(world.spark, world.definition())
    assert (done.inserted, done.updated) == ((1, 0) if damaged else (0, 1))
    assert world.rows() == [(1, "a", ONE), (2, "a", ONE)]


@pytest.mark.slow
def test_what_a_restore_changes_is_published_after_a_resync_of_the_topic(
    world: World, unique: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The resync sends the version that it has read; the next publish goes on from there."""
    spark, pending, hit = world.spark, [1], failpoints.hit
    out = World(spark, world.broker, world.folder, unique("out"))
    world.broker.create_topic(out.topic, partitions=1)
    definition = out.definition("out", {"checkpoint": "out"})

    def restored(name: str) -> None:
        hit(name)
        if name == "resync.opened" and pending:
            restore(world, pending.pop())

    with monkeypatch.context() as patched:
        patched.setattr(failpoints, "hit", restored)
        assert table_to_topic.resync(spark, definition).inserted == 2
    assert len(out.received()) == 2
    publish(spark, definition)
    assert out.received()[2:] == [(b'{"id":2}', None)]
    assert verify(spark, definition, direction="publish").equal


def test_a_topic_created_anew_takes_the_table_over(make: Make) -> None:
    """With more records than the saved offset: only the topic's id shows it."""
    world = make(partitions=1)
    world.send([upsert(1, "a"), upsert(2, "b")])
    ingest(world.spark, world.definition())
    world.recreate_topic()
    world.send([upsert(2, "b"), upsert(3, "c"), upsert(4, "d"), upsert(4, "e")])
    with pytest.raises(GapError, match=r"deleted and created anew.*run `bridge resync FILE`"):
        ingest(world.spark, world.definition())
    done = resync(world.spark, world.definition())
    assert (done.inserted, done.updated, done.deleted, done.unchanged) == (2, 0, 1, 1)
    assert world.rows() == [(2, "b", ONE), (3, "c", ONE), (4, "e", ONE)]
    world.send([upsert(5, "f")])
    assert ingest(world.spark, world.definition()).records_in == 1
    assert verify(world.spark, world.definition()).equal


def expire(world: World, upto: int) -> None:
    admin = AdminClient({"bootstrap.servers": world.broker.bootstrap})
    place = TopicPartition(world.topic, 0, upto)
    admin.delete_records([place])[place].result(30)


def test_rows_whose_records_may_have_expired_are_for_the_user_to_decide(make: Make) -> None:
    world = make(partitions=1, cleanup="delete")
    world.send([upsert(1, "a"), upsert(2, "b"), upsert(2, "c"), upsert(3, "d")])
    ingest(world.spark, world.definition())
    world.send([upsert(4, "lost"), upsert(3, "e"), tombstone(2)])
    expire(world, 5)
    with pytest.raises(GapError, match=r"begins at 5: 1 offsets have expired; run `bridge resync FILE`"):
        ingest(world.spark, world.definition())
    version = world.history()[0]["version"]
    with pytest.raises(DefinitionError, match=rf"{world.topic}-0 at 5.*--missing delete .*--missing keep"):
        resync(world.spark, world.definition())
    assert world.history()[0]["version"] == version
    done = resync(world.spark, world.definition(), missing="keep")
    assert (done.updated, done.kept, done.deleted) == (1, 1, 1), "the topic has the deletion of 2"
    assert world.rows() == [(1, "a", ONE), (3, "e", ONE)]
    assert ingest(world.spark, world.definition()).records_in == 0
    assert resync(world.spark, world.definition(), missing="delete").deleted == 1
    assert world.rows() == [(3, "e", ONE)]


@pytest.mark.parametrize(
    ("more", "sections", "words"),
    [
        (
            {"options": {"connector": "kafka", "key.format": None}, "columns": "id BIGINT, name STRING"},
            "",
            "no PRIMARY KEY.*move it away",
        ),
        (
            {
                "options": {
                    "connector": "kafka",
                    "value.format": "debezium-json",
                    "key.format": None,
                    "scan.startup.mode": "latest-offset",
                }
            },
            "",
            "'scan.startup.mode' is 'latest-offset'.*RESTORE",
        ),
        ({}, "ingest: {base: existing}\n", "ingest.base is existing"),
    ],
    ids=["no key", "a later start", "an existing base"],
)
def test_tables_with_rows_from_elsewhere_are_not_resynced(
    spark: SparkSession, broker: Broker, lake: Path, more: dict[str, Any], sections: str, words: str
) -> None:
    world = World(spark, broker, lake, "nowhere", sections=sections, **more)
    with pytest.raises(DefinitionError, match=words):
        resync(spark, world.definition())
