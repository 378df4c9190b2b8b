"""Foreign writes in the topic of an at-least-once publish: stale keys are sent again, other writers' keys stay."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from bridge.definition import Topic
from bridge.delta.file_state import FileState
from bridge.delta.publish_log import PublishLog
from bridge.embedded.broker import Broker
from bridge.errors import GapError, KafkaError
from bridge.kafka import admin
from bridge.offsets import Offsets
from bridge.pipelines.publish import foreign_writes
from bridge.pipelines.publish.run import publish
from tests.pipelines.world import Make, World, tombstone, upsert


@pytest.fixture
def make(make: Make, spark: SparkSession) -> Make:
    def made(**more: object) -> World:
        world = make(sections="publish: {start: 'version:0'}\n", **more)
        world.create_table()
        world.sql("INSERT INTO t VALUES (1, 'a', 1), (2, 'a', 1), (3, 'a', 1), (4, 'a', 1)")
        world.sql("UPDATE t SET name = 'b' WHERE id < 3")
        world.sql("DELETE FROM t WHERE id = 4")
        publish(spark, world.definition())
        return world

    return made


def folded(world: World) -> dict[int, str]:
    """The topic's fold, read by a plain consumer."""
    rows: dict[int, str] = {}
    for key, value in world.received():
        assert key is not None
        id = json.loads(key)["id"]
        if value is None:
            rows.pop(id, None)
        else:
            rows[id] = json.loads(value)["name"]
    return rows


def table(world: World) -> dict[int, str]:
    return {row["id"]: row["name"] for row in world.table().collect()}


STALE = (upsert(1, "a"), upsert(4, "a"), tombstone(3))
"""An older value, a row that is deleted by now, and a deletion of one that is there."""


def test_what_a_zombie_wrote_after_the_last_run_is_repaired_by_the_next(make: Make) -> None:
    """Though the table has not changed, and once more though it has not."""
    world = make()
    world.send(STALE)
    assert folded(world) != table(world)
    repaired = publish(world.spark, world.definition())
    assert folded(world) == table(world) == {1: "b", 2: "b", 3: "a"}
    assert (repaired.records_out, repaired.tombstones, repaired.batches) == (3, 1, 0)
    assert repaired.warning is not None
    assert (
        "3 records in " in repaired.warning
        and "3 keys were stale there and have been sent again" in repaired.warning
    )
    assert f"{world.topic}-" in repaired.warning
    again = publish(world.spark, world.definition())
    assert (again.records_out, again.warning) == (0, None)


def test_between_two_ranges(make: Make) -> None:
    """What the range sends itself is not stale, and is not sent twice."""
    world = make()
    world.send((*STALE, upsert(2, "a")))
    world.sql("UPDATE t SET name = 'c' WHERE id = 2")
    sent = publish(world.spark, world.definition())
    assert folded(world) == table(world) == {1: "b", 2: "c", 3: "a"}
    assert (sent.records_out, sent.tombstones, sent.batches) == (4, 1, 1)


def test_behind_a_range_that_is_not_recorded_yet(make: Make) -> None:
    """And one that comes during the repair."""
    world = make()
    world.sql("UPDATE t SET name = 'c' WHERE id = 2")
    world.send([upsert(1, "a")])
    behind = iter([[upsert(2, "b")], [upsert(1, "a")]])

    def written(topic: Topic) -> Offsets:
        world.send(next(behind, []))
        return ends(topic)

    ends = admin.log_end_offsets
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(admin, "log_end_offsets", written)
        publish(world.spark, world.definition())
    assert folded(world) == table(world) == {1: "b", 2: "c", 3: "a"}


def test_rows_of_another_writer_are_left_alone(make: Make) -> None:
    """Whose keys the table never had."""
    world = make()
    world.send([upsert(77, "theirs"), upsert(4, "a")])
    sent = publish(world.spark, world.definition())
    assert folded(world) == {**table(world), 77: "theirs"}
    assert sent.tombstones == 1 and sent.warning is not None
    assert "1 keys that are not in the table, and by its change feed never were" in sent.warning


def test_a_run_that_was_killed_in_a_range_makes_nothing_stale(make: Make) -> None:
    """Its records are in order, behind those of the versions before: nothing is stale, and there is no warning."""
    world = make()
    world.sql("UPDATE t SET name = 'c' WHERE id = 2")
    world.send([upsert(2, "c")])
    sent = publish(world.spark, world.definition())
    assert (sent.records_out, sent.warning) == (1, None)
    assert folded(world) == table(world)


def test_messages_of_a_database(make: Make) -> None:
    """Their fold has the message before the last as its `before`."""
    options = {"connector": "kafka", "key.format": None, "value.format": "debezium-json"}
    world = make(options=options, cleanup="delete", partitions=1)
    first = next(v for _, v in world.received() if v and b'"id":1' in v)
    world.send([(None, first)])
    sent = publish(world.spark, world.definition())
    rows = {}
    for _, value in world.received():
        message = json.loads(value or b"")
        rows[(message["after"] or message["before"])["id"]] = message["after"] and message["after"]["name"]
    assert rows == {**table(world), 4: None}
    assert sent.records_out == 1 and sent.warning is not None


def test_records_that_cannot_be_decoded_give_a_warning(make: Make) -> None:
    world = make()
    world.send([(b"\xff", b"{}")])
    world.sql("UPDATE t SET name = 'c' WHERE id = 2")
    sent = publish(world.spark, world.definition())
    assert sent.records_out == 1
    assert sent.warning is not None and "cannot be compared with the table" in sent.warning


def test_records_of_an_open_transaction_are_repaired_later(make: Make, unique: Callable[[str], str]) -> None:
    """They cannot be read before it ends, and a publish does not wait for that."""
    world = make()
    other = Producer(
        {
            "bootstrap.servers": world.broker.bootstrap,
            "transactional.id": unique("other"),
            "partitioner": "murmur2_random",
        }
    )
    other.init_transactions(30)
    other.begin_transaction()
    key, value = upsert(1, "a")
    other.produce(world.topic, value, key)
    assert other.flush(30) == 0
    world.sql("UPDATE t SET name = 'c' WHERE id = 2")
    sent = publish(world.spark, world.definition())
    assert (sent.records_out, sent.warning) == (1, None)
    other.commit_transaction(30)
    assert folded(world) == {**table(world), 1: "a"}
    assert publish(world.spark, world.definition()).records_out == 1
    assert folded(world) == table(world)


def test_a_topic_that_lost_records_is_no_success(make: Make) -> None:
    world = make()
    log = PublishLog(FileState(world.spark, f"{world.folder}/checkpoint"), "orders")
    last = log.last()
    assert last is not None and last.ends is not None
    with pytest.raises(KafkaError, match="7 records were acknowledged, and 0 are there"):
        foreign_writes.count_foreign_records(last.ends, last.ends, 7)
    more = Offsets({place: at + 5 for place, at in last.ends.by_partition.items()})
    log.write(replace(last, batch=last.batch + 1, ends=more))
    with pytest.raises(GapError, match=r"-0 ended at offset \d+ and now ends at \d+: .*bridge resync"):
        publish(world.spark, world.definition())


@pytest.mark.parametrize(
    ("options", "columns"),
    [
        ({"sink.delivery-guarantee": "none"}, "id BIGINT, PRIMARY KEY (id) NOT ENFORCED"),
        (
            {"sink.delivery-guarantee": "exactly-once", "sink.transactional-id-prefix": "p"},
            "id BIGINT, PRIMARY KEY (id) NOT ENFORCED",
        ),
        ({"connector": "kafka", "key.format": None, "value.format": None, "format": "json"}, "id BIGINT"),
    ],
    ids=["none", "exactly-once", "appends"],
)
def test_where_foreign_writes_are_not_looked_for(
    spark: SparkSession, broker: Broker, lake: Path, options: dict[str, str | None], columns: str
) -> None:
    assert not foreign_writes.applies_to(World(spark, broker, lake, "t", columns, options).definition())
