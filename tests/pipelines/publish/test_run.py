"""Publish: what reaches the topic, in which order, and where the next run continues."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.embedded.broker import Broker
from bridge.errors import GapError, KafkaError, OptionError, TableError
from bridge.pipelines.publish.run import publish
from bridge.rows import Change, RowKind, replay
from tests.pipelines.world import World

Make = Callable[..., World]


@pytest.fixture
def make(spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]) -> Make:
    def made(**more: object) -> World:
        world = World.make(spark, broker, lake, unique, **more)
        spark.sql(
            f"CREATE TABLE delta.`{lake}/table` (id BIGINT, name STRING, amount DECIMAL(10,2)) USING delta "
            "TBLPROPERTIES ('delta.enableChangeDataFeed'='true')"
        )
        return world

    return made


def sql(world: World, statement: str) -> None:
    """Run a statement on the table, written as `t`."""
    world.spark.sql(statement.replace(" t ", f" delta.`{world.folder}/table` "))


def folded(world: World) -> dict[object, object]:
    """The topic's fold by the oracle."""
    changes = []
    for key, value in world.received():
        assert key is not None
        row = None if value is None else json.loads(value)
        kind = RowKind.DELETE if value is None else RowKind.UPDATE_AFTER
        changes.append(Change(kind, json.loads(key)["id"], row))
    return dict(replay(changes))


def table(world: World) -> dict[object, object]:
    return {
        row["id"]: {"id": row["id"], "name": row["name"], "amount": float(row["amount"])}
        for row in world.table().collect()
    }


def test_a_snapshot_and_then_every_change(make: Make) -> None:
    world = make()
    sql(world, "INSERT INTO t VALUES (1, 'a', 1.5), (2, 'b', 2.5)")
    first = publish(world.spark, world.definition())
    assert (first.records_out, first.tombstones) == (2, 0)
    assert folded(world) == table(world)

    sql(world, "UPDATE t SET name = 'a2' WHERE id = 1")
    sql(world, "DELETE FROM t WHERE id = 2")
    sql(world, "INSERT INTO t VALUES (3, 'c', 3.5)")
    second = publish(world.spark, world.definition())
    assert (second.records_out, second.tombstones) == (3, 1)
    assert folded(world) == table(world) and set(table(world)) == {1, 3}

    nothing = publish(world.spark, world.definition())
    assert nothing.batches == 0 and len(world.received()) == 5


def test_a_range_without_changes_sends_nothing_and_moves_on(make: Make) -> None:
    """An empty snapshot, then commits that change no rows: Spark may plan such a read away altogether."""
    world = make()
    empty = publish(world.spark, world.definition())
    assert (empty.batches, empty.records_out) == (1, 0)
    sql(world, "ALTER TABLE t SET TBLPROPERTIES ('note'='x')")
    moved = publish(world.spark, world.definition())
    assert (moved.records_out, moved.version) == (0, 1)
    assert world.received() == []


def test_every_commit_gives_its_own_record_in_order(make: Make) -> None:
    world = make(partitions=2)
    for n in range(5):
        sql(world, f"INSERT INTO t VALUES ({n}, 'v0', 0)")
    for version in range(1, 4):
        sql(world, f"UPDATE t SET name = 'v{version}' WHERE id < 3")
    world.sections = "publish: {start: 'version:1'}\n"
    publish(world.spark, world.definition())
    seen: dict[int, list[str]] = {}
    for key, value in world.received():
        assert key is not None and value is not None
        seen.setdefault(json.loads(key)["id"], []).append(json.loads(value)["name"])
    assert seen == {n: ["v0", "v1", "v2", "v3"] if n < 3 else ["v0"] for n in range(5)}


def test_a_changed_primary_key_is_a_tombstone_and_an_upsert(make: Make) -> None:
    world = make()
    sql(world, "INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)")
    publish(world.spark, world.definition())
    sql(world, "UPDATE t SET id = id + 10 WHERE id = 1")
    moved = publish(world.spark, world.definition())
    assert (moved.records_out, moved.tombstones) == (2, 1)
    assert set(folded(world)) == {2, 11}


@pytest.mark.slow
def test_keys_that_swap_places_in_one_commit(make: Make) -> None:
    world = make(partitions=1)
    sql(world, "INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)")
    publish(world.spark, world.definition())
    sql(world, "UPDATE t SET id = 3 - id")
    swapped = publish(world.spark, world.definition())
    assert (swapped.records_out, swapped.tombstones) == (2, 0)
    assert folded(world) == table(world)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("start", "ids"),
    [
        ("latest", {4}),
        pytest.param("version:3", {3, 4}, marks=pytest.mark.slow),
        pytest.param("snapshot", {2, 3, 4}, marks=pytest.mark.slow),
        pytest.param("version:2", {2, 3, 4}, marks=pytest.mark.slow),
    ],
)
def test_where_the_first_run_starts(make: Make, start: str, ids: set[int]) -> None:
    world = make(sections=f"publish: {{start: '{start}'}}\n")
    for statement in ("(1, 'a', 1)", "(2, 'b', 1)", "(3, 'c', 1)"):
        sql(world, f"INSERT INTO t VALUES {statement}")
    sql(world, "DELETE FROM t WHERE id = 1")
    publish(world.spark, world.definition())
    sql(world, "INSERT INTO t VALUES (4, 'd', 1)")
    publish(world.spark, world.definition())
    assert set(folded(world)) == ids


@pytest.mark.slow
def test_a_key_goes_where_a_java_producer_would_send_it(make: Make) -> None:
    world = make(partitions=7)
    sql(world, "INSERT INTO t SELECT id, 'x', 1 FROM range(50)")
    publish(world.spark, world.definition())
    jvm = world.spark._jvm
    assert jvm is not None
    partitioner = jvm.org.apache.kafka.clients.producer.internals.BuiltInPartitioner
    rows = world.spark.read.format("kafka").option("kafka.bootstrap.servers", world.broker.bootstrap)
    placed = rows.option("subscribe", world.topic).load().select("key", "partition").collect()
    assert len(placed) == 50
    assert all(row["partition"] == partitioner.partitionForKey(bytes(row["key"]), 7) for row in placed)


def test_a_table_without_change_feed_is_refused_with_the_way_out(make: Make) -> None:
    world = make()
    sql(world, "ALTER TABLE t SET TBLPROPERTIES ('delta.enableChangeDataFeed'='false')")
    with pytest.raises(TableError, match=r"(?s)change data feed.*enableChangeDataFeed"):
        publish(world.spark, world.definition())
    assert world.received() == []


def test_a_replaced_table_is_refused(make: Make) -> None:
    world = make()
    sql(world, "INSERT INTO t VALUES (1, 'a', 1)")
    publish(world.spark, world.definition())
    path = f"delta.`{world.folder}/table`"
    world.spark.sql(f"DROP TABLE IF EXISTS {path}")
    import shutil

    shutil.rmtree(world.folder / "table", ignore_errors=True)
    world.spark.sql(
        f"CREATE TABLE {path} (id BIGINT, name STRING, amount DECIMAL(10,2)) USING delta "
        "TBLPROPERTIES ('delta.enableChangeDataFeed'='true')"
    )
    with pytest.raises(GapError, match="table"):
        publish(world.spark, world.definition())


@pytest.mark.slow
def test_rows_without_a_key_are_appended_and_nothing_else(make: Make) -> None:
    options = {"connector": "kafka", "key.format": None}
    world = make(options=options, columns="id BIGINT, name STRING, amount DECIMAL(10, 2)", cleanup="delete")
    sql(world, "INSERT INTO t VALUES (1, 'a', 1), (1, 'a', 1)")
    publish(world.spark, world.definition())
    sql(world, "INSERT INTO t VALUES (2, NULL, NULL)")
    publish(world.spark, world.definition())
    sent = sorted(value for _, value in world.received() if value is not None)
    assert [key for key, _ in world.received()] == [None] * 3
    assert sent == [b'{"id":1,"name":"a","amount":1}'] * 2 + [b'{"id":2,"name":null,"amount":null}']
    sql(world, "INSERT INTO t VALUES (3, 'x', 1)")
    sql(world, "UPDATE t SET name = 'b' WHERE id = 2")
    refusal = (
        r"version 4 updates or deletes rows, and a 'kafka' table with an insert-only format doesn't support"
    )
    with pytest.raises(TableError, match=refusal):
        publish(world.spark, world.definition())
    assert len(world.received()) == 3


@pytest.mark.slow
def test_each_row_goes_to_the_topic_it_names(make: Make) -> None:
    world = make(columns="id BIGINT, t STRING METADATA FROM 'topic', PRIMARY KEY (id) NOT ENFORCED")
    other = f"{world.topic}-other"
    world.broker.create_topic(other)
    world.spark.sql(f"ALTER TABLE delta.`{world.folder}/table` ADD COLUMNS (t STRING)")
    sql(world, f"INSERT INTO t VALUES (1, 'a', 1, '{world.topic}'), (2, 'b', 1, '{other}')")
    listed = replace(world, options={"topic": f"{world.topic};{other}"})
    publish(world.spark, listed.definition())
    assert world.received() == [(b'{"id":1}', b'{"id":1}')]
    assert world.received(other) == [(b'{"id":2}', b'{"id":2}')]
    sql(world, "INSERT INTO t VALUES (3, 'c', 1, 'elsewhere')")
    with pytest.raises(
        KafkaError, match=r"The topic of the sink record is not valid\. .* but was: elsewhere"
    ):
        publish(world.spark, listed.definition())


def test_several_topics_need_a_column_that_says_which(make: Make) -> None:
    world = make()
    with pytest.raises(
        OptionError, match="with a list of topics the 'topic' metadata column must be specified"
    ):
        publish(world.spark, replace(world, options={"topic": f"{world.topic};other"}).definition())


def test_a_snapshot_goes_on_in_the_chunk_where_it_was_stopped(
    make: Make, arm: Callable[[str, str], Path]
) -> None:
    world = make(sections="publish: {snapshot-chunk-rows: 10}\n")
    sql(world, "INSERT INTO t SELECT id, 'x', 1 FROM range(60)")
    arm("publish.sent", "raise after 3")
    with pytest.raises(RuntimeError, match=r"failpoint publish\.sent"):
        publish(world.spark, world.definition())
    before = len(world.received())
    rest = publish(world.spark, world.definition())
    assert folded(world) == table(world) and len(table(world)) == 60
    assert rest.batches == 3 and before + rest.records_out == len(world.received())
    assert 60 < len(world.received()) < 90  # one chunk twice: at least once
    assert publish(world.spark, world.definition()).batches == 0


@pytest.mark.parametrize("encoder", ["auto", "spark"])
def test_a_text_that_is_not_utf_8_is_not_sent(make: Make, encoder: str) -> None:
    """By the driver, and by Spark."""
    world = make(sections=f"publish: {{start: snapshot, encoder: {encoder}}}\n")
    publish(world.spark, world.definition())
    sql(world, "INSERT INTO t VALUES (1, CAST(X'61ff' AS STRING), 1.5)")
    with pytest.raises(TableError) as refused:
        publish(world.spark, world.definition())
    assert str(refused.value).startswith(
        f"'{world.definition().name}': sending versions 1 to 1 failed, table {world.folder}/table: column 'name' "
        "of a row holds a text that is not valid UTF-8, which format 'json' cannot carry"
    )
    assert world.received() == []
