"""Prepares the topics of a publish: creates missing ones, and warns about settings of existing ones."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.definition import Topic, TopicCreation
from bridge.kafka.admin import ensure_topic, topic_config
from bridge.kafka.client import AdminSession

__all__ = ["partition_counts", "prepare_topics"]

_TIMEOUT = 20.0
_POLICY = "cleanup.policy"


def prepare_topics(topic: Topic, *, timeout: float = _TIMEOUT) -> list[str]:
    """Create the missing ones of `topic.names`, if `topic.create` is set; return warnings about the others.

    An existing topic is never changed: another number of partitions or cleanup policy than in `topic.create` is a
    warning, and so is an upsert topic that is not compacted. A login that may not read a topic's configuration gets no
    warning about it. Raises TopicMissingError for a missing topic without `topic.create`, KafkaError.
    """
    created = {name for name in topic.names if topic.create and _create(topic, topic.create, name, timeout)}
    counts = partition_counts(topic, timeout=timeout)
    warnings: list[str] = []
    for name in topic.names:
        if name not in created:
            warnings += _differences(topic, name, counts[name], timeout)
    return warnings


def partition_counts(topic: Topic, *, timeout: float = _TIMEOUT) -> dict[str, int]:
    """Return the number of partitions of each of `topic.names`. Raises TopicMissingError, KafkaError."""
    if not topic.names:  # a pattern that is not resolved
        return {}
    session = AdminSession(topic.properties, timeout)
    described = session.describe_topics(topic.names)
    return {name: len(described[name].partitions) for name in topic.names}


def _create(topic: Topic, creation: TopicCreation, name: str, timeout: float) -> bool:
    return ensure_topic(
        topic.properties,
        name,
        creation.partitions,
        creation.config,
        replication=creation.replication,
        timeout=timeout,
    )


def _differences(topic: Topic, name: str, partitions: int, timeout: float) -> Iterator[str]:
    creation = topic.create or TopicCreation()
    if creation.partitions not in (None, partitions):
        yield (
            f"topic '{name}' has {partitions} partitions, topic.create names {creation.partitions}; it is left as it "
            "is, because another number would move keys to other partitions"
        )
    expected = creation.config.get(_POLICY)
    if expected is None and not topic.is_upsert:
        return
    policy = _policy(topic, name, timeout)
    if policy is None:
        return
    if topic.is_upsert and "compact" not in _values(policy):
        yield (
            f"topic '{name}' is not compacted ({_POLICY}={policy}): records expire, and with them rows that have not "
            f"changed for long; compact it with: kafka-configs.sh --bootstrap-server {topic.bootstrap_servers} "
            f"--alter --entity-type topics --entity-name {name} --add-config {_POLICY}=compact"
        )
    elif expected is not None and _values(policy) != _values(expected):
        yield f"topic '{name}' has {_POLICY}={policy}, topic.create names {expected}; it is left as it is"


def _policy(topic: Topic, name: str, timeout: float) -> str | None:
    """Return the topic's cleanup policy; None when the login may not read it."""
    return topic_config(topic, name, _POLICY, timeout=timeout)


def _values(policy: str) -> set[str]:
    return {value.strip() for value in policy.split(",")}
