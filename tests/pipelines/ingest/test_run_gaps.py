"""Gaps between progress and topic: each stops the ingest, with what it needs, what exists, and the way out."""

from __future__ import annotations

import os
import threading
import time

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]

from bridge.errors import REBUILD, BridgeError, GapError
from bridge.metrics import BatchReport
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest.run import ingest
from tests.kafka.topics import transaction
from tests.pipelines.world import ONE, Make, World, tombstone, upsert


def admin(world: World) -> AdminClient:
    return AdminClient({"bootstrap.servers": world.broker.bootstrap})


def add_partitions(world: World, count: int) -> None:
    client = admin(world)
    for future in client.create_partitions([NewPartitions(world.topic, count)]).values():
        future.result()
    while len(client.list_topics(world.topic, timeout=10).topics[world.topic].partitions) < count:
        time.sleep(0.02)


def test_expired_offsets_are_counted_by_partition(make: Make) -> None:
    world = make(partitions=3, cleanup="delete")
    world.send([upsert(1, "a")], partition=0)
    ingest(world.spark, world.definition())
    for partition in range(3):
        world.send([upsert(n, "gone") for n in range(4)], partition=partition)
    ends = [TopicPartition(world.topic, 0, 4), TopicPartition(world.topic, 2, 2)]
    client = admin(world)
    for future in client.delete_records(ends).values():
        future.result()
    with pytest.raises(GapError) as caught:
        ingest(world.spark, world.definition())
    t = world.topic
    assert str(caught.value) == (
        f"{t}-0 is to be read from offset 1, but begins at 4: 3 offsets have expired; {t}-2 is to be read from offset "
        f"0, but begins at 2: 2 offsets have expired; {REBUILD}"
    )
    assert world.rows() == [(1, "a", ONE)]


def test_a_recreated_topic_is_refused_whatever_it_holds(make: Make) -> None:
    world = make(partitions=1)
    world.send([upsert(1, "a"), upsert(2, "b")])
    ingest(world.spark, world.definition())
    world.recreate_topic()
    for records in ([upsert(9, "fewer")], [upsert(n, "more") for n in range(5)]):
        world.send(records)
        with pytest.raises(GapError, match=r"was deleted and created anew \(id \S+, now \S+\); ") as caught:
            ingest(world.spark, world.definition())
        assert str(caught.value).endswith(REBUILD)
    assert world.rows() == [(1, "a", ONE), (2, "b", ONE)]


def test_added_partitions_are_read_from_their_first_record(make: Make, stop: threading.Event) -> None:
    """Some come between two runs, more while one runs: nothing of what was sent to them first is missed."""
    world = make(partitions=1)
    world.send([upsert(1, "a")])
    ingest(world.spark, world.definition())
    add_partitions(world, 2)
    world.send([upsert(2, "b")], partition=1)

    def heard(report: BatchReport) -> None:
        rows = len(world.rows())
        if rows == 2:
            add_partitions(world, 4)
            world.send([upsert(3, "c")], partition=3)
        elif rows == 3:
            stop.set()

    ingest(world.spark, world.definition(run={"trigger": "500 ms"}), listener=heard, stop=stop)
    assert world.rows() == [(n, name, ONE) for n, name in ((1, "a"), (2, "b"), (3, "c"))]
    assert ingest(world.spark, world.definition()).batches == 0


def test_a_topic_that_is_deleted_while_it_is_read(make: Make, stop: threading.Event) -> None:
    world = make(partitions=1)
    world.send([upsert(1, "a")])
    deleted = threading.Event()

    def heard(report: BatchReport) -> None:
        if not deleted.is_set():
            client = admin(world)
            client.delete_topics([world.topic])[world.topic].result(30)
            deleted.set()

    began = time.monotonic()
    with pytest.raises(BridgeError) as caught:
        ingest(world.spark, world.definition(run={"trigger": "500 ms"}), listener=heard, stop=stop)
    assert world.topic in str(caught.value), caught.value
    assert "deleted" in str(caught.value) or "does not exist" in str(caught.value), caught.value
    assert time.monotonic() - began < 90 and world.rows() == [(1, "a", ONE)]


def test_markers_aborts_and_an_open_transaction_keep_nothing_waiting(make: Make) -> None:
    """A batch of aborted records only moves progress past them; a bounded run ends before an open transaction."""
    world = make(partitions=1, cleanup="delete", options={"scan.bounded.mode": "latest-offset"})
    world.send([upsert(1, "a")])
    ingest(world.spark, world.definition())
    transaction(world.broker.bootstrap, world.topic, [b"aborted"], commit=False)
    passed = ingest(world.spark, world.definition())
    assert (passed.records_in, passed.batches, passed.pending_records) == (0, 1, 0)
    settings = {"bootstrap.servers": world.broker.bootstrap, "transactional.id": f"{world.topic}-open"}
    producer = Producer(settings)
    producer.init_transactions(20)
    producer.begin_transaction()
    key, value = upsert(2, "not yet")
    producer.produce(world.topic, value, key)
    assert producer.flush(20) == 0
    world.send([upsert(3, "behind it")])
    assert ingest(world.spark, world.definition()).batches == 0
    producer.commit_transaction(20)
    assert ingest(world.spark, world.definition()).records_in == 2
    assert world.rows() == [(1, "a", ONE), (2, "not yet", ONE), (3, "behind it", ONE)]


@pytest.mark.slow
def test_the_gaps_of_a_compacted_topic_are_no_gap(make: Make) -> None:
    """What compaction took out of the middle is passed over, tombstones too while the table has them by then."""
    world = make(partitions=1)
    quick = {"segment.ms": "100", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "100"}
    world.topic += "-compacted"
    world.broker.create_topic(
        world.topic, 1, {"cleanup.policy": "compact", "max.compaction.lag.ms": "100", **quick}
    )
    world.send([upsert(1, "a"), upsert(2, "b")])
    ingest(world.spark, world.definition(), stop=None)
    world.send([*(upsert(1, f"v{n}") for n in range(200)), tombstone(2)])
    deadline = time.monotonic() + 120
    while len(world.received()) > 50:
        assert time.monotonic() < deadline, "the cleaner did not come"
        time.sleep(0.5)
        world.send([upsert(3, "roll")])  # a new segment lets the one before be cleaned
    done = ingest(world.spark, world.definition())
    assert done.records_in < 200 and done.pending_records == 0
    assert {row[0]: row[1] for row in world.rows()}[1] == "v199"


@pytest.mark.slow
def test_no_clock_decides(make: Make) -> None:
    """Records from 1970 and 2100, commits whose files have odd times: offsets and versions are the order."""
    world = make(partitions=1)
    world.topic += "-any-time"
    world.broker.create_topic(world.topic, 1, {"message.timestamp.after.max.ms": str(2**62)})
    for n, at in enumerate((4_102_444_800_000, 1, 1_700_000_000_000)):
        world.send([upsert(1, f"v{n}"), upsert(n + 10, "x")], timestamp=at)
        ingest(world.spark, world.definition())
        log = sorted((world.folder / "table" / "_delta_log").glob("*.json"))
        for back, file in enumerate(reversed(log)):
            os.utime(file, (1_000_000_000 + back * 1000,) * 2)
    assert ingest(world.spark, world.definition()).batches == 0
    assert world.rows()[0] == (1, "v2", ONE)
    assert verify(world.spark, world.definition()).equal
