"""A producer that is left by one block serves the next one as a new one would."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]

from bridge.embedded.broker import Broker
from bridge.errors import KafkaError
from bridge.kafka import producer as writer_module
from bridge.kafka import producer_pool
from bridge.kafka.arrow_records import ArrowRecords
from bridge.kafka.murmur2 import partitions_of
from bridge.kafka.producer import RecordProducer
from bridge.kafka.producer_pool import pooled_producer
from bridge.kafka.producer_settings import producer_settings
from bridge.kafka.records import Records, SendCounts
from bridge.partitioners import opened
from tests.reader import messages

Unique = Callable[[str], str]
_KEYS = [b"%d" % n for n in range(60)]


@pytest.fixture(autouse=True)
def nothing_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_pool, "_idle", [])


def _settings(broker: Broker, **more: str) -> dict[str, object]:
    return producer_settings({"bootstrap.servers": broker.bootstrap, **more}, checked=True)


def _send(
    broker: Broker, topic: str, value: bytes = b"v", *, partitioner: str = "default", count: int | None = None
) -> RecordProducer:
    made, counts = opened(partitioner, 0, 1), {topic: count} if count else None
    with pooled_producer(
        ArrowRecords((topic,)), _settings(broker), partitioner=made, partition_counts=counts
    ) as writer:
        writer.send(Records([topic] * len(_KEYS), list(_KEYS), [value] * len(_KEYS)))
    return writer


def _places(broker: Broker, topic: str, value: bytes) -> dict[bytes | None, int | None]:
    return {m.key(): m.partition() for m in messages(broker.bootstrap, topic) if m.value() == value}


def test_the_next_block_has_the_producer_of_the_one_before_and_counts_of_its_own(
    broker: Broker, unique: Unique
) -> None:
    topic = unique("again")
    broker.create_topic(topic)
    first = _send(broker, topic, b"1")
    counts = first.counts
    assert _send(broker, topic, b"22") is first
    assert counts == SendCounts(records=60, tombstones=0, bytes=170, lost=0)
    assert first.counts == SendCounts(records=60, tombstones=0, bytes=230, lost=0)
    assert [m.value() for m in messages(broker.bootstrap, topic)] == [b"1"] * 60 + [b"22"] * 60


@pytest.mark.parametrize("partitioner", ["default", "round-robin"])
@pytest.mark.parametrize("change", ["added", "recreated", "added behind an empty block"])
def test_keys_go_by_the_count_that_the_batch_began_with(
    broker: Broker, unique: Unique, change: str, partitioner: str
) -> None:
    """Though the topic has other partitions by now: the broker itself may know of them a little later than whoever
    added them, so what it says is not to be compared with anything."""
    change, _, empty = change.partition(" ")
    topic = unique("grown")
    before, after = (2, 7) if change == "added" else (5, 3)
    broker.create_topic(topic, partitions=before)
    first = _send(broker, topic, b"before", partitioner=partitioner, count=before)
    if empty:
        with pooled_producer(
            ArrowRecords((topic,)), _settings(broker), partitioner=opened(partitioner, 0, 1)
        ) as idle:
            assert idle is first
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    if change == "added":
        admin.create_partitions([NewPartitions(topic, after)])[topic].result(30)
        assert _send(broker, topic, b"late", partitioner=partitioner, count=before) is first
        assert _places(broker, topic, b"late") == dict(zip(_KEYS, partitions_of(_KEYS, before), strict=True))
    else:
        admin.delete_topics([topic])[topic].result(30)
        broker.create_topic(topic, partitions=after)
    assert _send(broker, topic, b"after", partitioner=partitioner, count=after) is first
    assert _places(broker, topic, b"after") == dict(zip(_KEYS, partitions_of(_KEYS, after), strict=True))


def test_a_topic_that_never_gets_as_many_partitions(
    broker: Broker, unique: Unique, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = unique("small")
    broker.create_topic(topic, partitions=2)
    monkeypatch.setattr(writer_module, "_METADATA_SECONDS", 0.5)
    with pytest.raises(
        KafkaError, match=r"had 3 partitions when the batch began, and .* knows of 2: .*Run again"
    ):
        _send(broker, topic, count=3)


def test_other_topics_settings_and_guarantees_have_another_one(broker: Broker, unique: Unique) -> None:
    topic, other = unique("one"), unique("other")
    for name in (topic, other):
        broker.create_topic(name)
    made = {id(_send(broker, topic)), id(_send(broker, other))}
    with pooled_producer(ArrowRecords((topic,)), _settings(broker, **{"linger.ms": "1"})) as writer:
        made.add(id(writer))
    with pooled_producer(ArrowRecords((topic,)), _settings(broker), checked=False) as writer:
        made.add(id(writer))
    assert len(made) == 4


def test_one_whose_block_failed_is_not_used_again(broker: Broker, unique: Unique) -> None:
    """What it had queued is thrown away, and an answer to it may still come."""
    topic = unique("failed")
    broker.create_topic(topic)
    first = _send(broker, topic)
    with (
        contextlib.suppress(ZeroDivisionError),
        pooled_producer(
            ArrowRecords((topic,)), _settings(broker), partitioner=opened("default", 0, 1)
        ) as writer,
    ):
        assert writer is first
        raise ZeroDivisionError
    assert _send(broker, topic) is not first


def test_two_blocks_at_a_time_have_one_each(broker: Broker, unique: Unique) -> None:
    topic = unique("both")
    broker.create_topic(topic)
    packing, settings = ArrowRecords((topic,)), _settings(broker)
    with pooled_producer(packing, settings) as one, pooled_producer(packing, settings) as two:
        assert one is not two


def test_one_that_was_left_too_long_is_not_used_again(
    broker: Broker, unique: Unique, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = unique("old")
    broker.create_topic(topic)
    first = _send(broker, topic)
    monkeypatch.setattr(producer_pool, "_IDLE_SECONDS", 0.0)
    assert _send(broker, topic) is not first


def test_a_worker_that_serves_many_pipelines_keeps_few(broker: Broker) -> None:
    for number in range(11):
        with pooled_producer(ArrowRecords((f"t-{number}",)), _settings(broker)):
            pass
    assert [idle.packing.topics for idle in producer_pool._idle] == [
        (f"t-{number}",) for number in range(3, 11)
    ]


def test_a_topic_that_has_gone_is_told_as_a_new_producer_tells_it(broker: Broker, unique: Unique) -> None:
    topic = unique("gone")
    broker.create_topic(topic)
    more = {"delivery.timeout.ms": "5000"}
    for _ in range(2):
        with pooled_producer(ArrowRecords((topic,)), _settings(broker, **more)) as writer:
            writer.send(Records([topic], [b"k"], [b"v"]))
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics([topic])[topic].result(30)
    said = []
    for made in (
        pooled_producer(ArrowRecords((topic,)), _settings(broker, **more)),
        RecordProducer(_settings(broker, **more)),
    ):
        with pytest.raises(KafkaError, match="did not take a record") as told, made as writer:
            writer.send(Records([topic], [b"k"], [b"v"]))
        said.append(str(told.value))
    assert said[0] == said[1]


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path / "broker") as broker:
        yield broker


def test_one_that_lost_its_broker_meanwhile_is_not_used_again(mortal: Broker) -> None:
    mortal.create_topic("t")
    first = _send(mortal, "t", b"before")
    mortal.kill()
    mortal.start()
    assert _send(mortal, "t", b"after") is not first
    assert len(_places(mortal, "t", b"after")) == len(_KEYS)
