"""What the tests of this folder share: a topic's definition, and an independent producer and reader."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from bridge.definition import FormatSpec, Topic
from bridge.kafka.admin import describe
from bridge.schema import RowType, TableSchema

_NO_FORMAT = FormatSpec("raw", {}, RowType(()), ())


def topic_of(
    *names: str,
    servers: str,
    properties: Mapping[str, str] | None = None,
    keyed: bool = True,
    **more: Any,
) -> Topic:
    """A resolved topic; formats play no role in this layer."""
    return Topic(
        connector="upsert-kafka",
        names=names,
        schema=TableSchema(()),
        key=_NO_FORMAT if keyed else None,
        value=_NO_FORMAT,
        properties={"bootstrap.servers": servers, **(properties or {})},
        **more,
    )


def send(servers: str, topic: str, records: Iterable[tuple[bytes | None, bytes | None]], **more: Any) -> None:
    """Produce plainly (key, value) and wait."""
    producer = Producer({"bootstrap.servers": servers})
    for key, value in records:
        producer.produce(topic, value, key, **more)
    assert producer.flush(20) == 0


def transaction(servers: str, topic: str, values: Iterable[bytes], *, commit: bool) -> None:
    """One transaction on partition 0, committed or aborted after its records have reached the broker.

    Returns when readers can see past it: the broker writes the marker after it has answered.
    """
    plain = topic_of(topic, servers=servers)
    before = describe(plain).end.by_partition[topic, 0]
    values = list(values)
    producer = Producer({"bootstrap.servers": servers, "transactional.id": f"{topic}-writer"})
    producer.init_transactions(20)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, b"k", partition=0)
    assert producer.flush(20) == 0
    if commit:
        producer.commit_transaction(20)
    else:
        producer.abort_transaction(20)
    deadline = time.monotonic() + 20
    while describe(plain).end.by_partition[topic, 0] != before + len(values) + 1:
        assert time.monotonic() < deadline, "the transaction's marker is not there"
        time.sleep(0.01)


def read_all(servers: str, topic: str) -> list[Message]:
    """Every committed message of `topic`, by partition and offset, read by librdkafka and no code of ours."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "independent-reader",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    partitions = (
        AdminClient({"bootstrap.servers": servers}).list_topics(topic, timeout=10).topics[topic].partitions
    )
    consumer.assign([TopicPartition(topic, p, 0) for p in partitions])
    found: list[Message] = []
    open_partitions = set(partitions)
    while open_partitions:
        message = consumer.poll(20)
        assert message is not None, "the reader's patience is over"
        if message.error() is None:
            found.append(message)
        else:
            open_partitions.discard(message.partition() or 0)
    consumer.close()
    return sorted(found, key=lambda m: (m.partition() or 0, m.offset() or 0))
