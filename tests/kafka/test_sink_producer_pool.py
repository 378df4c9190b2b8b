"""A pooled producer serves the next block as a new one would."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]

from bridge.embedded.broker import Broker
from bridge.errors import KafkaError
from bridge.kafka.arrow_records import ArrowRecords
from bridge.kafka.client_settings import producer_settings
from bridge.kafka.producer import RecordProducer, partitions_of
from bridge.kafka.records import Records, SendCounts
from bridge.kafka.sink import ProducerPool
from bridge.partitioners import opened
from tests.faults.ground import QUICK_RETURN
from tests.kafka.topics import Fresh, Unique
from tests.reader import messages

_KEYS = [b"%d" % n for n in range(60)]


@pytest.fixture
def pool() -> ProducerPool:
    return ProducerPool()


def _settings(broker: Broker, **more: str) -> dict[str, object]:
    return producer_settings({"bootstrap.servers": broker.bootstrap, **more}, checked=True)


def _send(
    pool: ProducerPool,
    broker: Broker,
    topic: str,
    value: bytes = b"v",
    *,
    partitioner: str = "default",
    count: int | None = None,
) -> RecordProducer:
    made, counts = opened(partitioner, 0, 1), {topic: count} if count else None
    with pool.producer(
        ArrowRecords((topic,)), _settings(broker), partitioner=made, partition_counts=counts
    ) as producer:
        producer.send(Records([topic] * len(_KEYS), list(_KEYS), [value] * len(_KEYS)))
    return producer


def _places(broker: Broker, topic: str, value: bytes) -> dict[bytes | None, int | None]:
    return {m.key(): m.partition() for m in messages(broker.bootstrap, topic) if m.value() == value}


def test_the_next_block_reuses_the_producer_with_counts_of_its_own(
    fresh: Fresh, pool: ProducerPool, broker: Broker
) -> None:
    topic = fresh("again")
    first = _send(pool, broker, topic, b"1")
    counts = first.counts
    assert _send(pool, broker, topic, b"22") is first
    assert counts == SendCounts(records=60, tombstones=0, bytes=170, lost=0)
    assert first.counts == SendCounts(records=60, tombstones=0, bytes=230, lost=0)
    assert [m.value() for m in messages(broker.bootstrap, topic)] == [b"1"] * 60 + [b"22"] * 60


@pytest.mark.parametrize("partitioner", ["default", "round-robin"])
@pytest.mark.parametrize("change", ["added", "recreated", "added behind an empty block"])
def test_keys_are_partitioned_by_the_count_at_the_batch_s_start(
    pool: ProducerPool, broker: Broker, unique: Unique, change: str, partitioner: str
) -> None:
    """Even if the topic has other partitions by now: the broker's metadata may still be those of before."""
    change, _, empty = change.partition(" ")
    topic = unique("grown")
    before, after = (2, 7) if change == "added" else (5, 3)
    broker.create_topic(topic, partitions=before)
    first = _send(pool, broker, topic, b"before", partitioner=partitioner, count=before)
    if empty:
        with pool.producer(
            ArrowRecords((topic,)), _settings(broker), partitioner=opened(partitioner, 0, 1)
        ) as idle:
            assert idle is first
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    if change == "added":
        admin.create_partitions([NewPartitions(topic, after)])[topic].result(30)
        assert _send(pool, broker, topic, b"late", partitioner=partitioner, count=before) is first
        assert _places(broker, topic, b"late") == dict(zip(_KEYS, partitions_of(_KEYS, before), strict=True))
    else:
        admin.delete_topics([topic])[topic].result(30)
        broker.create_topic(topic, partitions=after)
    assert _send(pool, broker, topic, b"after", partitioner=partitioner, count=after) is first
    assert _places(broker, topic, b"after") == dict(zip(_KEYS, partitions_of(_KEYS, after), strict=True))


def test_a_topic_that_never_gets_as_many_partitions(fresh: Fresh, broker: Broker) -> None:
    topic = fresh("small", partitions=2)
    producer = RecordProducer(_settings(broker), partition_counts={topic: 3}, metadata_seconds=0.5)
    with (
        pytest.raises(
            KafkaError, match=r"had 3 partitions when the batch began, and .* reports 2: .*Run again"
        ),
        producer,
    ):
        producer.send(Records([topic], [b"k"], [b"v"]))


def test_other_topics_settings_and_guarantees_have_another_one(
    pool: ProducerPool, broker: Broker, unique: Unique
) -> None:
    topic, other = unique("one"), unique("other")
    for name in (topic, other):
        broker.create_topic(name)
    made = {id(_send(pool, broker, topic)), id(_send(pool, broker, other))}
    with pool.producer(ArrowRecords((topic,)), _settings(broker, **{"linger.ms": "1"})) as producer:
        made.add(id(producer))
    with pool.producer(ArrowRecords((topic,)), _settings(broker), checked=False) as producer:
        made.add(id(producer))
    assert len(made) == 4


def test_a_producer_whose_block_failed_is_not_reused(
    fresh: Fresh, pool: ProducerPool, broker: Broker
) -> None:
    """Its queued records are discarded, and results of them may still arrive."""
    topic = fresh("failed")
    first = _send(pool, broker, topic)
    with (
        contextlib.suppress(ZeroDivisionError),
        pool.producer(
            ArrowRecords((topic,)), _settings(broker), partitioner=opened("default", 0, 1)
        ) as producer,
    ):
        assert producer is first
        raise ZeroDivisionError
    assert _send(pool, broker, topic) is not first


def test_concurrent_blocks_have_separate_producers(fresh: Fresh, pool: ProducerPool, broker: Broker) -> None:
    topic = fresh("both")
    packing, settings = ArrowRecords((topic,)), _settings(broker)
    with pool.producer(packing, settings) as one, pool.producer(packing, settings) as two:
        assert one is not two


def test_a_producer_that_was_idle_too_long_is_not_reused(fresh: Fresh, broker: Broker) -> None:
    pool = ProducerPool(idle_seconds=0.0)
    topic = fresh("old")
    first = _send(pool, broker, topic)
    assert _send(pool, broker, topic) is not first


def test_the_number_of_idle_producers_is_bounded(pool: ProducerPool, broker: Broker) -> None:
    for number in range(11):
        with pool.producer(ArrowRecords((f"t-{number}",)), _settings(broker)):
            pass
    assert pool.idle_topics == [(f"t-{number}",) for number in range(3, 11)]


def test_a_deleted_topic_is_the_same_error_as_of_a_new_producer(
    fresh: Fresh, pool: ProducerPool, broker: Broker
) -> None:
    topic = fresh("gone")
    more = {"delivery.timeout.ms": "2000"}
    for _ in range(2):
        with pool.producer(ArrowRecords((topic,)), _settings(broker, **more)) as producer:
            producer.send(Records([topic], [b"k"], [b"v"]))
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics([topic])[topic].result(30)
    errors = []
    for made in (
        pool.producer(ArrowRecords((topic,)), _settings(broker, **more)),
        RecordProducer(_settings(broker, **more)),
    ):
        with pytest.raises(KafkaError, match="did not take a record") as raised, made as producer:
            producer.send(Records([topic], [b"k"], [b"v"]))
        errors.append(str(raised.value))
    assert errors[0] == errors[1]


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path / "broker", settings=QUICK_RETURN) as broker:
        yield broker


def test_a_producer_that_lost_its_broker_is_not_reused(pool: ProducerPool, mortal: Broker) -> None:
    mortal.create_topic("t")
    first = _send(pool, mortal, "t", b"before")
    mortal.kill()
    mortal.start()
    assert _send(pool, mortal, "t", b"after") is not first
    assert len(_places(mortal, "t", b"after")) == len(_KEYS)


def test_threads_share_a_pool_and_no_two_have_one_producer(
    fresh: Fresh, pool: ProducerPool, broker: Broker
) -> None:
    """Several pipelines of one process send in the driver (docs/adr/046)."""
    topic = fresh("threads")
    in_use: set[int] = set()
    twice: list[int] = []

    def block(_: int) -> None:
        with pool.producer(ArrowRecords((topic,)), _settings(broker)) as producer:
            if id(producer) in in_use:
                twice.append(id(producer))
            in_use.add(id(producer))
            producer.send(Records([topic], [b"k"], [b"v"]))
            in_use.discard(id(producer))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(block, range(60)))
    assert not twice
    assert len(pool.idle_topics) <= 8
    assert sum(1 for _ in messages(broker.bootstrap, topic)) == 60
