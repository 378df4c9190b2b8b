"""What topics there are, what they hold, where a reader starts and ends; and how to make a new one.

Every function is one short conversation of at most `timeout` seconds. A broker that cannot be reached or
refuses us is a KafkaError naming the addresses and librdkafka's last word.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from confluent_kafka import TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from bridge.definition import Topic
from bridge.errors import KafkaError, OptionError, TopicMissingError
from bridge.kafka.client import AdminSession
from bridge.kafka.group_offsets import ConsumerGroup
from bridge.offsets import Offsets, TopicPartition

__all__ = [
    "TopicState",
    "describe",
    "end_offsets",
    "ensure_topic",
    "log_end_offsets",
    "offsets_at_timestamp",
    "resolve",
    "start_offsets",
    "topic_config",
    "topic_configs",
    "topic_ids",
]

_TIMEOUT = 20.0
_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""All bits zero, as brokers without topic ids say."""
_log = logging.getLogger("bridge.kafka")


@dataclass(frozen=True)
class TopicState:
    """The topics of a definition at one moment.

    ids       topic -> the id Kafka gave it; a topic created anew has another one
    earliest  the first offset that is still there, for every partition
    end       the offset after the last one a reader may see, for every partition; with read_committed that is
              the last stable offset, so records of open transactions lie behind it
    """

    ids: Mapping[str, str]
    earliest: Offsets
    end: Offsets

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        return tuple(self.end.by_partition)


def resolve(topic: Topic, *, timeout: float = _TIMEOUT) -> Topic:
    """`topic` with the names that its `topic-pattern` matches now, in alphabetical order; itself without a pattern.

    A name must match as a whole (Flink: Matcher.matches). Kafka's own topics never match. Raises TopicMissingError
    when none does.
    """
    if topic.pattern is None:
        return topic
    pattern = re.compile(topic.pattern)
    names = [n for n in AdminSession(topic.properties, timeout).topic_names() if pattern.fullmatch(n)]
    if not names:
        raise TopicMissingError(
            f"no topic on {topic.bootstrap_servers} matches 'topic-pattern' = '{topic.pattern}' as a whole; create "
            "one, or correct the pattern"
        )
    return replace(topic, names=tuple(names))


def describe(topic: Topic, *, timeout: float = _TIMEOUT) -> TopicState:
    """The state of all of `topic.names`.

    Raises TopicMissingError for a topic that is not there, KafkaError for a broker that does not answer.
    """
    talk = AdminSession(topic.properties, timeout)
    topics = talk.request("describe topics", AdminClient.describe_topics, TopicCollection(list(topic.names)))
    partitions = [(name, p.id) for name, found in topics.items() for p in found.partitions]
    return TopicState(
        ids={name: str(found.topic_id) for name, found in topics.items()},
        earliest=talk.list_offsets(partitions, OffsetSpec.earliest()),  # type: ignore[no-untyped-call]
        end=talk.list_offsets(partitions, OffsetSpec.latest()),  # type: ignore[no-untyped-call]
    )


def topic_ids(topic: Topic, *, timeout: float = _TIMEOUT) -> dict[str, str]:
    """Kafka's id of each of `topic.names`, by which it tells a topic from one of the same name that came after it; ""
    where the broker tells none (before Kafka 2.8). Raises TopicMissingError, KafkaError."""
    talk = AdminSession(topic.properties, timeout)
    found = talk.request("describe topics", AdminClient.describe_topics, TopicCollection(list(topic.names)))
    ids = {name: str(told.topic_id or "") for name, told in found.items()}
    return {name: "" if id == _NO_ID else id for name, id in ids.items()}


def log_end_offsets(topic: Topic, *, timeout: float = _TIMEOUT) -> Offsets:
    """The offset after the last record written to each partition, whether its transaction has ended or not.

    Two requests over one connection: it is asked with every batch of a publish. Raises as `describe` does.
    """
    talk = AdminSession(topic.properties, timeout)
    topics = talk.request("describe topics", AdminClient.describe_topics, TopicCollection(list(topic.names)))
    partitions = [(name, p.id) for name, found in topics.items() for p in found.partitions]
    return talk.list_offsets(partitions, OffsetSpec.latest(), committed=False)  # type: ignore[no-untyped-call]


def start_offsets(topic: Topic, state: TopicState, *, timeout: float = _TIMEOUT) -> Offsets:
    """Where `scan.startup.mode` starts, for every partition of `state`.

    As in Flink: group-offsets without a committed offset goes by `auto.offset.reset` (none: an error), a
    timestamp finds the first record at or after it (none: the end), and partitions that specific-offsets
    does not name start at the group's committed offset, else at the earliest. Unlike Flink, a specific offset that
    the topic does not have (any more) is an error unless `auto.offset.reset` says where to go.
    """
    mode, prefix = topic.startup.mode, "scan.startup"
    if mode == "earliest-offset":
        return state.earliest
    if mode == "latest-offset":
        return state.end
    if mode == "timestamp":
        return _at_timestamp(topic, state, topic.startup.timestamp_ms, prefix, timeout)
    if mode == "group-offsets":
        committed = _committed(topic, state, timeout)
        return _completed(committed, _reset(topic, state), state, f"'{prefix}.mode' = 'group-offsets'")
    if mode == "specific-offsets":
        named = _specific(topic, state, f"'{prefix}.specific-offsets'")
        if "group.id" in topic.properties and len(named) < len(state.end):
            named = Offsets({**_committed(topic, state, timeout).by_partition, **named.by_partition})
        return _completed(named, state.earliest, state, prefix)
    raise _unknown_mode(mode, prefix)


def end_offsets(topic: Topic, state: TopicState, *, timeout: float = _TIMEOUT) -> Offsets | None:
    """Where `scan.bounded.mode` ends (exclusive), for every partition of `state`; None when it is unbounded.

    Ends are positions, not records: they may fall on transaction markers or compacted offsets. A timestamp
    or group end never lies beyond `state.end`; a specific one may, and then its records are still to come.
    A partition that specific-offsets does not name ends where it begins, so nothing of it is read.
    """
    mode, prefix = topic.bounded.mode, "scan.bounded"
    if mode == "unbounded":
        return None
    if mode == "latest-offset":
        return state.end
    if mode == "timestamp":
        return _at_timestamp(topic, state, topic.bounded.timestamp_ms, prefix, timeout).capped(state.end)
    if mode == "group-offsets":
        committed = _committed(topic, state, timeout)
        return _completed(committed, None, state, f"'{prefix}.mode' = 'group-offsets'").capped(state.end)
    if mode == "specific-offsets":
        named = topic.bounded.offsets or Offsets()
        _check_partitions(named, state, f"'{prefix}.specific-offsets'")
        return _completed(named, state.earliest, state, prefix)
    raise _unknown_mode(mode, prefix)


def ensure_topic(
    properties: Mapping[str, str],
    name: str,
    partitions: int | None = 1,
    config: Mapping[str, str] | None = None,
    *,
    replication: int | None = None,
    timeout: float = _TIMEOUT,
) -> bool:
    """Create a topic; True when created, False when it was there. None is the broker's own default.

    An existing topic is left as it is. Returns when the new topic can be described. Raises KafkaError.
    """
    talk = AdminSession(properties, timeout)
    if talk.topic_exists(name):
        return False
    new = NewTopic(
        name, num_partitions=partitions or -1, replication_factor=replication or -1, config=dict(config or {})
    )
    try:
        talk.request(f"create topic '{name}'", AdminClient.create_topics, [new])
    except KafkaError:
        if talk.topic_exists(name):  # somebody else was faster
            return False
        raise
    talk.wait_for_topic(name)
    return True


def topic_config(topic: Topic, name: str, key: str, *, timeout: float = _TIMEOUT) -> str | None:
    """A setting of the topic `name`, the broker's default where it has none of its own; None when it is not told, as to
    who may not read it."""
    try:
        found = topic_configs(topic, [name], [key], timeout=timeout)
    except KafkaError as refused:
        _log.info("%s of topic '%s' is not known: %s", key, name, refused)
        return None
    return found.get(name, {}).get(key)


def topic_configs(
    topic: Topic, names: Iterable[str], keys: Iterable[str], *, timeout: float = _TIMEOUT
) -> dict[str, dict[str, str]]:
    """These settings of each of the topics `names`, in one question; what is not told is absent. Raises KafkaError."""
    asked = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    talk = AdminSession(topic.properties, timeout)
    found = talk.request("describe the configuration of topics", AdminClient.describe_configs, asked)
    return {
        resource.name: {k: str(told[k].value) for k in keys if k in told} for resource, told in found.items()
    }


def offsets_at_timestamp(
    topic: Topic, partitions: Offsets, timestamp_ms: int, *, timeout: float = _TIMEOUT
) -> Offsets:
    """The first offset with a timestamp of `at_ms` or later, for each of `partitions`; no entry where there is none."""
    talk = AdminSession(topic.properties, timeout)
    return talk.list_offsets(partitions.by_partition, OffsetSpec.for_timestamp(timestamp_ms))


def _committed(topic: Topic, state: TopicState, timeout: float) -> Offsets:
    with ConsumerGroup(topic, timeout=timeout) as group:
        return group.committed(state.partitions)


def _at_timestamp(topic: Topic, state: TopicState, at: int | None, prefix: str, timeout: float) -> Offsets:
    if at is None:
        raise OptionError(f"'{prefix}.mode' = 'timestamp' needs '{prefix}.timestamp-millis'")
    found = AdminSession(topic.properties, timeout).list_offsets(
        state.partitions, OffsetSpec.for_timestamp(at)
    )
    return _completed(found, state.end, state, prefix)


def _completed(some: Offsets, otherwise: Offsets | None, state: TopicState, option: str) -> Offsets:
    """One offset for each partition of `state`; without `otherwise`, an absent one is an error."""
    missing = [f"{t}-{p}" for t, p in state.partitions if some.get(t, p) is None]
    if missing and otherwise is None:
        raise KafkaError(
            f"{option}: the group ('properties.group.id') has committed no offset for {', '.join(missing)}; "
            "commit some, or (for the start) set 'properties.auto.offset.reset' to earliest or latest"
        )
    all_of_them = {**(otherwise or Offsets()).by_partition, **some.by_partition}
    return Offsets({key: all_of_them[key] for key in state.partitions})


def _check_partitions(named: Offsets, state: TopicState, option: str) -> None:
    for name, partition, _ in named:
        if state.end.get(name, partition) is None:
            count = sum(t == name for t, _ in state.partitions)
            raise KafkaError(f"{option} names {name}-{partition}, but the topic has {count} partitions")


def _reset(topic: Topic, state: TopicState) -> Offsets | None:
    """Where `auto.offset.reset` goes when a start has no offset; None for an error, which is the default."""
    reset = str(topic.properties.get("auto.offset.reset", "none"))
    if reset not in ("earliest", "latest", "none"):
        raise OptionError(f"'properties.auto.offset.reset' must be earliest, latest or none, not '{reset}'")
    return {"earliest": state.earliest, "latest": state.end}.get(reset)


def _specific(topic: Topic, state: TopicState, option: str) -> Offsets:
    """`scan.startup.specific-offsets`, those that the topic does not have replaced by `auto.offset.reset`."""
    named, instead = topic.startup.offsets or Offsets(), _reset(topic, state)
    _check_partitions(named, state, option)
    found: dict[TopicPartition, int] = {}
    for name, partition, offset in named:
        place = (name, partition)
        low, high = state.earliest.by_partition[place], state.end.by_partition[place]
        if not low <= offset <= high and instead is None:
            raise KafkaError(
                f"{option} starts {name}-{partition} at offset {offset}; legal is {low} to {high}. To begin at the "
                "earliest or latest instead, set 'properties.auto.offset.reset'"
            )
        found[place] = offset if low <= offset <= high or instead is None else instead.by_partition[place]
    return Offsets(found)


def _unknown_mode(mode: str, prefix: str) -> OptionError:
    modes = "earliest-offset, latest-offset, group-offsets, timestamp, specific-offsets"
    return OptionError(f"'{prefix}.mode' = '{mode}' is unknown; legal: {modes}")
