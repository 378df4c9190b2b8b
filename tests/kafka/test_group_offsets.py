"""A consumer group's offsets are read and committed; refusals of Kafka are errors."""

from __future__ import annotations

import time
from contextlib import closing

import pytest
from confluent_kafka import Consumer

from bridge.embedded.broker import Broker
from bridge.errors import KafkaError
from bridge.kafka.group_offsets import ConsumerGroup
from bridge.offsets import Offsets
from tests.kafka.topics import Fresh, Unique, topic_of


def test_only_committed_offsets_are_returned(fresh: Fresh, broker: Broker, unique: Unique) -> None:
    name = fresh("topic", partitions=3)
    topic = topic_of(name, servers=broker.bootstrap, properties={"group.id": unique("group")})
    places = [(name, n) for n in range(3)]
    with closing(ConsumerGroup(topic)) as group:
        assert group.committed(places) == Offsets()
        group.commit(Offsets({(name, 0): 0, (name, 2): 7}))
        group.commit(Offsets())
        group.check_commits(10)
    with closing(ConsumerGroup(topic)) as group:
        assert group.committed(places) == Offsets({(name, 0): 0, (name, 2): 7})


def test_the_group_s_name_is_flink_s_where_none_is_given(broker: Broker) -> None:
    assert ConsumerGroup(topic_of("t", servers=broker.bootstrap)).name == "KafkaSource-t"


def test_a_group_with_members_takes_no_offsets_from_outside(broker: Broker, unique: Unique) -> None:
    name, named = unique("topic"), unique("group")
    broker.create_topic(name)
    member = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": named})
    member.subscribe([name])
    until = time.monotonic() + 30
    while not member.assignment() and time.monotonic() < until:
        member.poll(0.2)
    try:
        with closing(
            ConsumerGroup(topic_of(name, servers=broker.bootstrap, properties={"group.id": named}))
        ) as group:
            group.commit(Offsets({(name, 0): 1}))
            with pytest.raises(
                KafkaError, match=f"group '{named}' refuses to commit offsets: .*UNKNOWN_MEMBER"
            ):
                group.check_commits(10)
            group.check_commits(1)
    finally:
        member.close()


def test_no_broker() -> None:
    with (
        closing(ConsumerGroup(topic_of("t", servers="127.0.0.1:9"), timeout=0.5)) as group,
        pytest.raises(
            KafkaError, match=r"127\.0\.0\.1:9: group 'KafkaSource-t' refuses to return its offsets"
        ),
    ):
        group.committed([("t", 0)])


@pytest.mark.slow  # librdkafka lets go of a commit on its way only after its own time-out
def test_no_broker_to_commit_to() -> None:
    with closing(ConsumerGroup(topic_of("t", servers="127.0.0.1:9"), timeout=0.5)) as group:
        group.commit(Offsets({("t", 0): 1}))
        with pytest.raises(KafkaError, match="refuses to commit offsets"):
            group.check_commits(0.5)
