"""Describes and creates topics, resolves where a reader starts and ends, and finds rights and releases.

Every function opens one AdminSession of at most `timeout` seconds, by default _TIMEOUT. For a broker that does not
answer or refuses a request it raises KafkaError with the addresses and librdkafka's last error.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclOperation,
    AdminClient,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from bridge.definition import Topic
from bridge.errors import KafkaError, OptionError, TopicMissingError
from bridge.kafka.client import AdminSession
from bridge.kafka.client_settings import for_librdkafka
from bridge.kafka.group_offsets import ConsumerGroup, starts_at_latest
from bridge.offsets import Offsets, TopicPartition

_TIMEOUT = 20.0
_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""All bits zero: the id that brokers without topic ids return."""
_log = logging.getLogger("bridge.kafka")


def missing_rights(
    topic: Topic, names: Iterable[str], *, sends: bool, timeout: float = _TIMEOUT
) -> list[str]:
    """Return the rights that the login lacks, such as `READ on topic 'orders'`; none where the broker tells no rights.

    A publish `sends`, and also looks at the topic; an ingest reads. Raises KafkaError, TopicMissingError.
    """
    needed = {"WRITE": AclOperation.WRITE} if sends else {"READ": AclOperation.READ}
    needed["DESCRIBE"] = AclOperation.DESCRIBE
    found = AdminSession(topic.properties, timeout).request(
        "describe topics",
        AdminClient.describe_topics,
        TopicCollection(list(names)),
        include_authorized_operations=True,
    )
    return [
        f"{right} on topic '{name}'"
        for name, description in found.items()
        if description.authorized_operations
        for right, operation in needed.items()
        if operation not in description.authorized_operations
        and AclOperation.ALL not in description.authorized_operations
    ]


@dataclass(frozen=True)
class TopicState:
    """The topics of a definition at one moment.

    ids       topic -> its id in Kafka; a recreated topic has another one
    earliest  the first available offset of every partition
    end       the offset after the last one that a reader may see, of every partition; with read_committed it is the
              last stable offset, so records of open transactions are after it
    """

    ids: Mapping[str, str]
    earliest: Offsets
    end: Offsets

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        return tuple(self.end.by_partition)


def resolve(topic: Topic, *, timeout: float = _TIMEOUT) -> Topic:
    """Return `topic` with the names that its `topic-pattern` matches now, in alphabetical order.

    Returns it unchanged without a pattern. A whole name must match (Flink: Matcher.matches); Kafka's internal topics
    never match. Raises TopicMissingError when no name matches.
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
    """Return the state of all of `topic.names`.

    Raises TopicMissingError for a missing topic, KafkaError for a broker that does not answer.
    """
    session = AdminSession(topic.properties, timeout)
    topics = session.describe_topics(topic.names)
    partitions = [(name, p.id) for name, description in topics.items() for p in description.partitions]
    return TopicState(
        ids={name: str(description.topic_id) for name, description in topics.items()},
        earliest=session.list_offsets(partitions, OffsetSpec.earliest()),  # type: ignore[no-untyped-call]
        end=session.list_offsets(partitions, OffsetSpec.latest()),  # type: ignore[no-untyped-call]
    )


def topic_ids(topic: Topic) -> dict[str, str]:
    """Return Kafka's id of each of `topic.names`, "" from brokers without topic ids (before Kafka 2.8).

    A recreated topic of the same name has another id. Raises TopicMissingError, KafkaError.
    """
    topics = AdminSession(topic.properties, _TIMEOUT).describe_topics(topic.names)
    ids = {name: str(description.topic_id or "") for name, description in topics.items()}
    return {name: "" if id == _NO_ID else id for name, id in ids.items()}


def log_end_offsets(topic: Topic) -> Offsets:
    """Return the offset after the last record of each partition, even if its transaction is still open.

    It makes two requests over one connection, since a publish calls it with every batch. Raises as `describe` does.
    """
    session = AdminSession(topic.properties, _TIMEOUT)
    topics = session.describe_topics(topic.names)
    partitions = [(name, p.id) for name, description in topics.items() for p in description.partitions]
    return session.list_offsets(partitions, OffsetSpec.latest(), committed=False)  # type: ignore[no-untyped-call]


def start_offsets(topic: Topic, state: TopicState, *, timeout: float = _TIMEOUT) -> Offsets:
    """Return where `scan.startup.mode` starts, for every partition of `state`.

    Without a committed offset, group-offsets uses `auto.offset.reset`: none is an error, as is no setting for
    upsert-kafka; for kafka the default is Kafka's own, latest (docs/adr/061). As in Flink, a timestamp selects the
    first record at or after it (no such record: the end), and partitions that specific-offsets does not name start
    at the group's committed offset, else at the earliest. Unlike in Flink, a specific offset that the topic does not
    have (any more) is an error unless `auto.offset.reset` is earliest or latest.
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
        default = state.end if starts_at_latest(topic) else _reset(topic, state)
        return _completed(committed, default, state, f"'{prefix}.mode' = 'group-offsets'")
    if mode == "specific-offsets":
        specific = _specific(topic, state, f"'{prefix}.specific-offsets'")
        if "group.id" in topic.properties and len(specific) < len(state.end):
            specific = Offsets({**_committed(topic, state, timeout).by_partition, **specific.by_partition})
        return _completed(specific, state.earliest, state, prefix)
    raise _unknown_mode(mode, prefix)


def end_offsets(topic: Topic, state: TopicState, *, timeout: float = _TIMEOUT) -> Offsets | None:
    """Return where `scan.bounded.mode` ends (exclusive), for every partition of `state`; None when it is unbounded.

    Ends are positions, not records: they may fall on transaction markers or compacted offsets. The end of a timestamp
    or a group is never after `state.end`; a specific end may be, and then the reader waits for its records. A partition
    that specific-offsets does not name ends where it begins, so none of its records is read.
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
        specific = topic.bounded.offsets or Offsets()
        _check_partitions(specific, state, f"'{prefix}.specific-offsets'")
        return _completed(specific, state.earliest, state, prefix)
    raise _unknown_mode(mode, prefix)


def ensure_topic(
    properties: Mapping[str, str],
    name: str,
    partitions: int | None = 1,
    config: Mapping[str, str] | None = None,
    *,
    replication: int | None = None,
) -> bool:
    """Create a topic; return True when created, False when it exists already.

    `partitions` and `replication` None are the broker's defaults. An existing topic is not changed. Returns when the
    new topic can be described. Raises KafkaError.
    """
    session = AdminSession(properties, _TIMEOUT)
    if session.topic_exists(name):
        return False
    new = NewTopic(
        name, num_partitions=partitions or -1, replication_factor=replication or -1, config=dict(config or {})
    )
    try:
        session.request(f"create topic '{name}'", AdminClient.create_topics, [new])
    except KafkaError:
        if session.topic_exists(name):  # another process has created it meanwhile
            return False
        raise
    session.wait_for_topic(name)
    return True


def topic_config(topic: Topic, name: str, key: str) -> str | None:
    """Return a setting of the topic `name`, by default the broker's; None when the login may not read it."""
    try:
        configs = topic_configs(topic, [name], [key])
    except KafkaError as refused:
        _log.info("%s of topic '%s' is not known: %s", key, name, refused)
        return None
    return configs.get(name, {}).get(key)


def topic_configs(
    topic: Topic, names: Iterable[str], keys: Iterable[str], *, timeout: float = _TIMEOUT
) -> dict[str, dict[str, str]]:
    """Return the settings `keys` of each of the topics `names`, in one request; unknown ones are absent.

    Raises KafkaError.
    """
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    session = AdminSession(topic.properties, timeout)
    configs = session.request("describe the configuration of topics", AdminClient.describe_configs, resources)
    return {
        resource.name: {k: str(config[k].value) for k in keys if k in config}
        for resource, config in configs.items()
    }


def offsets_at_timestamp(topic: Topic, partitions: Offsets, timestamp_ms: int) -> Offsets:
    """Return the first offset with this timestamp or a later one of each partition; no entry where there is none."""
    session = AdminSession(topic.properties, _TIMEOUT)
    return session.list_offsets(partitions.by_partition, OffsetSpec.for_timestamp(timestamp_ms))


def newest_timestamp(topic: Topic, names: Iterable[str], *, timeout: float = _TIMEOUT) -> int | None:
    """Return the largest timestamp of a record in the topics `names`, in epoch milliseconds; None without records.

    Raises KafkaError.
    """
    session = AdminSession(topic.properties, timeout)
    found = session.describe_topics(names)
    partitions = [(name, p.id) for name, described in found.items() for p in described.partitions]
    return max(session.newest_timestamps(partitions), default=None)


def _committed(topic: Topic, state: TopicState, timeout: float) -> Offsets:
    with closing(ConsumerGroup(topic, timeout=timeout)) as group:
        return group.committed(state.partitions)


def _at_timestamp(topic: Topic, state: TopicState, at: int | None, prefix: str, timeout: float) -> Offsets:
    if at is None:
        raise OptionError(f"'{prefix}.mode' = 'timestamp' needs '{prefix}.timestamp-millis'")
    offsets = AdminSession(topic.properties, timeout).list_offsets(
        state.partitions, OffsetSpec.for_timestamp(at)
    )
    return _completed(offsets, state.end, state, prefix)


def _completed(offsets: Offsets, default: Offsets | None, state: TopicState, option: str) -> Offsets:
    """Return an offset for each partition of `state`, by default from `default`; without it raise KafkaError."""
    missing = [f"{t}-{p}" for t, p in state.partitions if offsets.get(t, p) is None]
    if missing and default is None:
        raise KafkaError(
            f"{option}: the group ('properties.group.id') has committed no offset for {', '.join(missing)}; "
            "commit some, or (for the start) set 'properties.auto.offset.reset' to earliest or latest"
        )
    completed = {**(default or Offsets()).by_partition, **offsets.by_partition}
    return Offsets({key: completed[key] for key in state.partitions})


def _check_partitions(offsets: Offsets, state: TopicState, option: str) -> None:
    for name, partition, _ in offsets:
        if state.end.get(name, partition) is None:
            count = sum(t == name for t, _ in state.partitions)
            raise KafkaError(f"{option} names {name}-{partition}, but the topic has {count} partitions")


def _reset(topic: Topic, state: TopicState) -> Offsets | None:
    """Return the offsets that `auto.offset.reset` selects; None for `none`, the default, which is an error."""
    reset = str(topic.properties.get("auto.offset.reset", "none"))
    if reset not in ("earliest", "latest", "none"):
        raise OptionError(f"'properties.auto.offset.reset' must be earliest, latest or none, not '{reset}'")
    return {"earliest": state.earliest, "latest": state.end}.get(reset)


def _specific(topic: Topic, state: TopicState, option: str) -> Offsets:
    """Return `scan.startup.specific-offsets`, with `auto.offset.reset` for those that the topic does not have."""
    specific, reset = topic.startup.offsets or Offsets(), _reset(topic, state)
    _check_partitions(specific, state, option)
    offsets: dict[TopicPartition, int] = {}
    for name, partition, offset in specific:
        key = (name, partition)
        low, high = state.earliest.by_partition[key], state.end.by_partition[key]
        if not low <= offset <= high and reset is None:
            raise KafkaError(
                f"{option} starts {name}-{partition} at offset {offset}; legal is {low} to {high}. To begin at the "
                "earliest or latest instead, set 'properties.auto.offset.reset'"
            )
        offsets[key] = offset if low <= offset <= high or reset is None else reset.by_partition[key]
    return Offsets(offsets)


def _unknown_mode(mode: str, prefix: str) -> OptionError:
    modes = "earliest-offset, latest-offset, group-offsets, timestamp, specific-offsets"
    return OptionError(f"'{prefix}.mode' = '{mode}' is unknown; legal: {modes}")


# The first release that takes this version of this request, as the ApiKeys of each release's kafka-clients say.
_RELEASES: tuple[tuple[tuple[int, int], str, int], ...] = (
    ((4, 3), "DescribeLogDirs", 5),
    ((4, 2), "ListOffsets", 11),
    ((4, 1), "Fetch", 18),
    ((4, 0), "Produce", 12),
    ((3, 9), "Fetch", 17),
    ((3, 8), "Produce", 11),
    ((3, 7), "Produce", 10),
    ((3, 6), "OffsetCommit", 9),
    ((3, 5), "Fetch", 15),
    ((3, 3), "DescribeLogDirs", 4),
    ((3, 2), "JoinGroup", 9),
    ((3, 1), "Fetch", 13),
    ((3, 0), "ListOffsets", 7),
    ((2, 8), "CreateTopics", 7),
)
_LINE = re.compile(r"ApiKey (\w+) \(\d+\) Versions \d+\.\.(\d+)")


def broker_version(properties: Mapping[str, str], *, timeout: float) -> tuple[int, int] | None:
    """Return the newest release all of whose requests the first broker takes; (0, 0) for one before 2.8.

    A release that changed no request counts as the one before it. None if no broker tells it within `timeout` seconds.
    No client has a call for it: librdkafka only writes what a broker answers to its debug log.
    """
    versions = _Versions()
    log = logging.Logger("bridge.kafka.admin", logging.DEBUG)  # not registered: nobody else reads it
    log.addHandler(versions)
    client = AdminClient({**for_librdkafka(properties), "debug": "feature"}, logger=log)
    deadline = time.monotonic() + timeout
    try:
        client.list_topics(timeout=timeout)
    except KafkaException:
        return None
    while not versions.found and time.monotonic() < deadline:
        client.poll(0.1)
    return _release(versions.found) if versions.found else None


class _Versions(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, int] = {}

    def emit(self, record: logging.LogRecord) -> None:
        line = _LINE.search(record.getMessage())
        if line:
            self.found[line[1]] = int(line[2])


def _release(versions: Mapping[str, int]) -> tuple[int, int]:
    taken = (release for release, request, version in _RELEASES if versions.get(request, -1) >= version)
    return next(taken, (0, 0))
