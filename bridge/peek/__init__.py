"""Shows records of a topic without Spark and without a consumer group; writes nothing."""

from __future__ import annotations

from bridge.definition import Definition
from bridge.kafka import admin
from bridge.peek.records import Start, fetch
from bridge.peek.view import DecodedRecord, matches, viewer

__all__ = ["DecodedRecord", "Start", "peek"]


def peek(
    definition: Definition, *, start: Start | None = None, limit: int = 10, key: str | None = None
) -> list[DecodedRecord]:
    """Return at most `limit` records of the pipeline's topics, decoded by its formats, ordered by timestamp.

    With `start` the first ones from there on, without it the newest ones. With `key` only records of that key: the text
    of a key of one column, or the whole key document. Aborted records are left out unless 'properties.isolation.level'
    is read_uncommitted. A record that cannot be decoded is shown as its bytes, with the reason. Values of fields that
    the pipeline hides (`peek: {hide: ...}`) are masked.

    Raises TopicMissingError, KafkaError as `kafka.admin`, and KafkaError for an offset that no partition has.
    """
    topic = admin.resolve(definition.topic)
    view = viewer(definition)
    filter = None if key is None else matches(topic, key)
    return [view(record) for record in fetch(topic, start or Start("latest"), limit, filter)]
