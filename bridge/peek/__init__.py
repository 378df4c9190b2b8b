"""Look at a topic's records before anything is moved: no Spark, no consumer group, nothing written."""

from __future__ import annotations

from bridge.definition import Definition
from bridge.kafka import admin
from bridge.peek.key_filter import matches
from bridge.peek.records import Start, fetch
from bridge.peek.view import Seen, viewer

__all__ = ["Seen", "Start", "peek"]


def peek(
    definition: Definition, *, start: Start | None = None, limit: int = 10, key: str | None = None
) -> list[Seen]:
    """At most `limit` records of the pipeline's topics, decoded by its formats, in the order of their timestamps.

    From `start` on the first ones; without it the newest ones that are there. With `key` only records of that key: the
    text of a key of one column, or the whole key document. Aborted records are left out unless
    'properties.isolation.level' says read_uncommitted. A record that cannot be decoded is shown as its bytes, with the
    reason. Columns that the pipeline hides (`peek: {hide: ...}`) are not in the result.

    Raises TopicMissingError, KafkaError as `kafka.admin`, and KafkaError for an offset that no partition has.
    """
    topic = admin.resolve(definition.topic)
    view = viewer(definition)
    wanted = None if key is None else matches(topic, key)
    return [view(record) for record in fetch(topic, start or Start("latest"), limit, wanted)]
