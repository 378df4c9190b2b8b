"""Creates and describes topics, and warns before a publish about settings of existing ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    ConfigSource,
    ResourceType,
)

from bridge.definition import Topic, TopicCreation
from bridge.kafka.admin import describe, ensure_topic, resolve, topic_config
from bridge.kafka.client import AdminSession

_TIMEOUT = 20.0
_POLICY = "cleanup.policy"


@dataclass(frozen=True)
class FoundPartition:
    """A partition and its offsets: of the first record, and after the last one that readers may see."""

    partition: int
    earliest: int
    latest: int


@dataclass(frozen=True)
class FoundTopic:
    """A topic as the broker describes it; without partitions it does not exist."""

    name: str
    connector: str
    partitions: tuple[FoundPartition, ...] = ()
    replication: int = 0
    settings: Mapping[str, str] = field(default_factory=dict)
    """Its cleanup policy, and what was set for this topic alone."""

    def as_dict(self) -> dict[str, Any]:
        """Return what `bridge topics --json` prints."""
        return {
            "topic": self.name,
            "connector": self.connector,
            "exists": bool(self.partitions),
            "partitions": [vars(partition) for partition in self.partitions],
            "replication_factor": self.replication,
            "settings": dict(self.settings),
        }


def found_topics(topic: Topic) -> list[FoundTopic]:
    """Describe each of `topic.names`, or those that its pattern matches now, also missing ones.

    Raises TopicMissingError where a pattern matches none, and KafkaError.
    """
    topic = resolve(topic)
    session = AdminSession(topic.properties, _TIMEOUT)
    there = [name for name in topic.names if session.topic_exists(name)]
    if not there:
        return [FoundTopic(name, topic.connector) for name in topic.names]
    state = describe(replace(topic, names=tuple(there)))
    replicas = {name: found.partitions for name, found in session.describe_topics(there).items()}
    settings = _own_settings(session, there)
    earliest = state.earliest.by_partition
    partitions: dict[str, list[FoundPartition]] = {name: [] for name in topic.names}
    for name, partition, latest in state.end:
        partitions[name].append(FoundPartition(partition, earliest[name, partition], latest))
    return [
        FoundTopic(
            name,
            topic.connector,
            tuple(sorted(partitions[name], key=lambda p: p.partition)),
            min((len(p.replicas) for p in replicas.get(name, ())), default=0),
            settings.get(name, {}),
        )
        for name in topic.names
    ]


def create_topic(topic: Topic, given: TopicCreation) -> list[str]:
    """Create the missing ones of `topic.names` and return them. What `given` does not say is that of `topic.create`,
    else the broker's default; a topic of upsert-kafka is compacted unless one of them sets its cleanup policy.

    A pattern names no topic to create. Raises KafkaError.
    """
    declared = topic.create or TopicCreation()
    compacted = {_POLICY: "compact"} if topic.is_upsert else {}
    creation = TopicCreation(
        given.partitions or declared.partitions,
        given.replication or declared.replication,
        {**compacted, **declared.config, **given.config},
    )
    return [name for name in topic.names if _create(topic, creation, name)]


def _own_settings(session: AdminSession, names: list[str]) -> dict[str, dict[str, str]]:
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    found = session.request("describe the configuration of topics", AdminClient.describe_configs, resources)
    own = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    return {
        resource.name: {
            key: str(entry.value)
            for key, entry in sorted(entries.items())
            if key == _POLICY or entry.source == own
        }
        for resource, entries in found.items()
    }


def prepare_topics(topic: Topic) -> list[str]:
    """Create the missing ones of `topic.names`, if `topic.create` is set; return warnings about the others.

    An existing topic is never changed: another number of partitions or cleanup policy than in `topic.create` is a
    warning, and so is an upsert topic that is not compacted. A login that may not read a topic's configuration gets no
    warning about it. Raises TopicMissingError for a missing topic without `topic.create`, KafkaError.
    """
    created = {name for name in topic.names if topic.create and _create(topic, topic.create, name)}
    counts = partition_counts(topic)
    warnings: list[str] = []
    for name in topic.names:
        if name not in created:
            warnings += _differences(topic, name, counts[name])
    return warnings


def partition_counts(topic: Topic) -> dict[str, int]:
    """Return the number of partitions of each of `topic.names`. Raises TopicMissingError, KafkaError."""
    if not topic.names:  # a pattern that is not resolved
        return {}
    described = AdminSession(topic.properties, _TIMEOUT).describe_topics(topic.names)
    return {name: len(described[name].partitions) for name in topic.names}


def _create(topic: Topic, creation: TopicCreation, name: str) -> bool:
    replication = creation.replication
    return ensure_topic(topic.properties, name, creation.partitions, creation.config, replication=replication)


def _differences(topic: Topic, name: str, partitions: int) -> Iterator[str]:
    creation = topic.create or TopicCreation()
    if creation.partitions not in (None, partitions):
        yield (
            f"topic '{name}' has {partitions} partitions, topic.create names {creation.partitions}; it is left as it "
            "is, because another number would move keys to other partitions"
        )
    expected = creation.config.get(_POLICY)
    if expected is None and not topic.is_upsert:
        return
    policy = topic_config(topic, name, _POLICY)
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


def _values(policy: str) -> set[str]:
    return {value.strip() for value in policy.split(",")}
