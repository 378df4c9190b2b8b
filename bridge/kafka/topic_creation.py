"""The topics that a publish is about to write to: created where they may be, looked over where they are there."""

from __future__ import annotations

from collections.abc import Iterator

from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient

from bridge.definition import Topic, TopicCreation
from bridge.kafka.admin import ensure_topic, topic_config
from bridge.kafka.client import AdminSession

__all__ = ["partition_counts", "prepare_topics"]

_TIMEOUT = 20.0
_POLICY = "cleanup.policy"


def prepare_topics(topic: Topic, *, timeout: float = _TIMEOUT) -> list[str]:
    """Create those of `topic.names` that are absent, if `topic.create` says so; warnings about the others.

    An existing topic is never changed: another number of partitions or cleanup policy than `topic.create` names
    is a warning, and so is an upsert topic that is not compacted. Who may not read a topic's configuration gets no
    warning about it. Raises TopicMissingError for a topic that is absent and not to be created, KafkaError.
    """
    made = {name for name in topic.names if topic.create and _create(topic, topic.create, name, timeout)}
    there = partition_counts(topic, timeout=timeout)
    warnings: list[str] = []
    for name in topic.names:
        if name not in made:
            warnings += _differences(topic, name, there[name], timeout)
    return warnings


def partition_counts(topic: Topic, *, timeout: float = _TIMEOUT) -> dict[str, int]:
    """How many partitions each of `topic.names` has. Raises TopicMissingError, KafkaError."""
    if not topic.names:  # a pattern that nobody has resolved
        return {}
    talk = AdminSession(topic.properties, timeout)
    described = talk.request(
        "describe topics", AdminClient.describe_topics, TopicCollection(list(topic.names))
    )
    return {name: len(described[name].partitions) for name in topic.names}


def _create(topic: Topic, wanted: TopicCreation, name: str, timeout: float) -> bool:
    return ensure_topic(
        topic.properties,
        name,
        wanted.partitions,
        wanted.config,
        replication=wanted.replication,
        timeout=timeout,
    )


def _differences(topic: Topic, name: str, partitions: int, timeout: float) -> Iterator[str]:
    wanted = topic.create or TopicCreation()
    if wanted.partitions not in (None, partitions):
        yield (
            f"topic '{name}' has {partitions} partitions, topic.create names {wanted.partitions}; it is left as it is, "
            "for with another number keys would change partitions"
        )
    expected = wanted.config.get(_POLICY)
    if expected is None and not topic.is_upsert:
        return
    found = _policy(topic, name, timeout)
    if found is None:
        return
    if topic.is_upsert and "compact" not in _words(found):
        yield (
            f"topic '{name}' is not compacted ({_POLICY}={found}): records expire, and with them rows that have not "
            f"changed for long; let it be kept with: kafka-configs.sh --bootstrap-server {topic.bootstrap_servers} "
            f"--alter --entity-type topics --entity-name {name} --add-config {_POLICY}=compact"
        )
    elif expected is not None and _words(found) != _words(expected):
        yield f"topic '{name}' has {_POLICY}={found}, topic.create names {expected}; it is left as it is"


def _policy(topic: Topic, name: str, timeout: float) -> str | None:
    """The topic's cleanup policy; None when it is not told."""
    return topic_config(topic, name, _POLICY, timeout=timeout)


def _words(policy: str) -> set[str]:
    return {word.strip() for word in policy.split(",")}
