"""Shared by the tests of this folder: a topic's definition, and an independent producer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from confluent_kafka import Producer

from bridge.definition import FormatSpec, Topic
from bridge.kafka.admin import describe
from bridge.schema import RowType, TableSchema

_NO_FORMAT = FormatSpec("raw", {}, RowType(()), ())


Unique = Callable[[str], str]
"""The fixture `unique`."""
Fresh = Callable[..., str]
"""The fixture `fresh`."""


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
