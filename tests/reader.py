"""An independent reader of topics: a plain consumer, and no code of the bridge."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from confluent_kafka import Consumer, Message, TopicPartition

_WAIT = 60.0


def messages(
    servers: str, topic: str, places: dict[int, int] | None = None, *, isolation: str = "read_committed"
) -> Iterator[Message]:
    """All that there is, partition by partition in the order of offsets; with `places` (an offset by partition, which
    move on), all that is new. Fails when a partition has no end within a minute."""
    places = {} if places is None else places
    settings = {
        "bootstrap.servers": servers,
        "group.id": "independent-reader",
        "isolation.level": isolation,
        "enable.partition.eof": True,
        "enable.auto.commit": False,
        # The broker holds back the news that there is nothing for this long, half a second by default.
        "fetch.wait.max.ms": 10,
    }
    with closing(Consumer(settings)) as consumer:
        for partition in sorted(consumer.list_topics(topic, timeout=_WAIT).topics[topic].partitions):
            consumer.assign([TopicPartition(topic, partition, places.setdefault(partition, 0))])
            while True:
                message = consumer.poll(_WAIT)
                assert message is not None, f"{topic}-{partition} has no end within a minute"
                if message.error():
                    break
                places[partition] = (message.offset() or 0) + 1
                yield message
