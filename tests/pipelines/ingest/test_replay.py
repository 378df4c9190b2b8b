"""Quarantined records are corrected, and applied in their place."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from bridge.errors import DefinitionError, GapError
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest.replay import Replay, replay
from bridge.pipelines.ingest.run import ingest
from tests.metrics.openlineage import edges, events_in
from tests.pipelines.world import ROWS, Make, World, key, making, tombstone, upsert, value

ASIDE = "ingest: {bad-records: quarantine}\n"


make = making(partitions=1, cleanup="delete", sections=ASIDE)


def correct(world: World, offset: int, document: str) -> None:
    """What a user does: the right bytes in place of the bad ones."""
    world.spark.sql(
        f"UPDATE delta.`{world.folder}/table_quarantine` SET value = CAST('{document}' AS BINARY) "
        f"WHERE offset = {offset}"
    )


def quarantined_offsets(world: World) -> list[int]:
    """Offsets of the records in the quarantine."""
    records = world.spark.read.format("delta").load(f"{world.folder}/table_quarantine")
    return sorted(row["offset"] for row in records.select("offset").collect())


@pytest.mark.slow
def test_a_corrected_record_takes_its_place_and_overtakes_nothing(make: Make) -> None:
    world = make()
    world.send(
        [
            (key(1), "{"),  # 0: the last word about 1
            (key(2), "{"),  # 1: 2 was set later
            (key(3), "{"),  # 2: 3 was deleted later, which changed nothing then
            (key(4), "{"),  # 3: stays bad
            (key(5), "{"),  # 4: and 5: both bad, the later one counts
            (key(5), "{"),
            upsert(2, "newer"),
            tombstone(3),
        ]
    )
    ingest(world.spark, world.definition())
    assert world.rows() == [(2, "newer", Decimal("1.00"))]
    world.send([upsert(1, "not read yet")])
    for offset, id in ((0, 1), (1, 2), (2, 3), (4, 5)):
        correct(world, offset, value(id, "old"))
    correct(world, 5, value(5, "late"))
    done = replay(world.spark, world.definition())
    assert (done.replayed, done.overtaken, done.still_bad, done.former_topic) == (5, 3, 1, 0)
    assert world.rows() == [
        (1, "old", Decimal("1.00")),
        (2, "newer", Decimal("1.00")),
        (5, "late", Decimal("1.00")),
    ]
    assert quarantined_offsets(world) == [3]
    assert ingest(world.spark, world.definition()).updated == 1
    assert world.rows()[0] == (1, "not read yet", Decimal("1.00"))


@pytest.mark.slow
def test_a_replay_that_dies_after_its_commit_adds_nothing_twice(
    make: Make, arm: Callable[[str, str], Path]
) -> None:
    """Rows without a key: only the commit itself shows that they are in the table."""
    world = make(options=ROWS, columns="id BIGINT, name STRING")
    world.send([(None, '{"id":1,"name":"a"}'), (None, "{"), (None, "[")])
    ingest(world.spark, world.definition())
    correct(world, 1, '{"id":2,"name":"b"}')
    arm("replay.committed", "raise")
    with pytest.raises(RuntimeError, match=r"failpoint replay\.committed"):
        replay(world.spark, world.definition())
    assert (world.rows(), quarantined_offsets(world)) == ([(1, "a"), (2, "b")], [1, 2])
    definition = world.definition(run={"lineage": "events.jsonl"})
    assert replay(world.spark, definition) == Replay("orders", still_bad=1)
    table, events = f"{world.folder}/table", events_in(world.folder / "events.jsonl")
    assert edges(events) == {
        (world.topic, "orders.replay"),
        (f"{table}_quarantine", "orders.replay"),
        ("orders.replay", table),
    }
    assert (world.rows(), quarantined_offsets(world)) == ([(1, "a"), (2, "b")], [2])


@pytest.mark.slow
def test_a_replay_that_dies_before_its_commit_begins_again(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make()
    world.send([(key(1), "{")])
    ingest(world.spark, world.definition())
    correct(world, 0, value(1, "a"))

    def died(*_: object, **__: object) -> None:
        raise RuntimeError("died")

    with monkeypatch.context() as patched:
        patched.setattr("bridge.pipelines.ingest.replay.SparkEngine", died)
        with pytest.raises(RuntimeError, match="died"):
            replay(world.spark, world.definition())
    assert world.rows() == []
    assert replay(world.spark, world.definition()).replayed == 1
    assert (world.rows(), quarantined_offsets(world)) == ([(1, "a", Decimal("1.00"))], [])


@pytest.mark.slow
def test_what_came_in_between_must_be_known(make: Make) -> None:
    world = make()
    world.send([(key(1), "{")])
    ingest(world.spark, world.definition())
    correct(world, 0, value(1, "a"))
    admin = AdminClient({"bootstrap.servers": world.broker.bootstrap})
    entry = ConfigEntry("delete.retention.ms", "0", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, world.topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(10)
    with pytest.raises(GapError, match=r"older than the topic's delete\.retention\.ms \(0\).*--force"):
        replay(world.spark, world.definition())
    assert replay(world.spark, world.definition(), force=True).replayed == 1


@pytest.mark.slow
def test_records_of_a_topic_that_is_gone_stay(make: Make) -> None:
    world = make()
    world.send([(key(1), "{"), upsert(2, "x")])
    ingest(world.spark, world.definition())
    correct(world, 0, value(1, "a"))
    world.recreate_topic()
    assert replay(world.spark, world.definition()) == Replay("orders", former_topic=1)
    assert quarantined_offsets(world) == [0]


@pytest.mark.slow
def test_a_place_of_two_topics_is_two_places(make: Make) -> None:
    """A recreated topic starts at offset 0: records of the former topic at the same offset stay in the quarantine."""
    world = make()
    world.send([(key(1), "{"), (key(2), "{")])
    ingest(world.spark, world.definition())
    correct(world, 0, value(1, "a"))
    quarantine = f"delta.`{world.folder}/table_quarantine`"
    world.spark.sql(f"UPDATE {quarantine} SET offset = 0, topic_id = 'former' WHERE offset = 1")
    done = replay(world.spark, world.definition())
    assert (done.replayed, done.former_topic) == (1, 1)
    assert [row["topic_id"] for row in world.spark.sql(f"SELECT topic_id FROM {quarantine}").collect()] == [
        "former"
    ]


def test_nothing_is_quarantined_without_a_quarantine(make: Make) -> None:
    world = make(sections="")
    with pytest.raises(
        DefinitionError, match=r"quarantines no bad records: set ingest: \{bad-records: quarantine\}"
    ):
        replay(world.spark, world.definition())
    quarantined = make()
    with pytest.raises(DefinitionError, match=r"has not ingested into .* yet: nothing to replay"):
        replay(quarantined.spark, quarantined.definition())


@pytest.mark.slow
def test_a_corrected_ddl_reads_what_the_old_one_could_not(make: Make) -> None:
    """Compacted, as upsert topics are: the table equals the topic's fold by the new DDL."""
    world = make(cleanup="compact", columns="id BIGINT, amount INT, PRIMARY KEY (id) NOT ENFORCED")
    world.send([(key(1), '{"id":1,"amount":5000000000}'), (key(2), '{"id":2,"amount":1}')])
    assert ingest(world.spark, world.definition()).bad_records == 1
    world.columns = "id BIGINT, amount BIGINT, PRIMARY KEY (id) NOT ENFORCED"
    world.spark.sql(
        f"ALTER TABLE delta.`{world.folder}/table` SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
    )
    world.spark.sql(f"ALTER TABLE delta.`{world.folder}/table` ALTER COLUMN amount TYPE BIGINT")
    assert replay(world.spark, world.definition()).replayed == 1
    assert verify(world.spark, world.definition()).equal
