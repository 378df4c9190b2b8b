"""Kafka client properties, given under their Java names, for the two clients the bridge uses.

Records are read by Spark's source (the Java client); all else is done with librdkafka, whose names and ranges
differ. What a side cannot honour is refused with the reason. Properties of fetching and of group membership
concern Spark's reader alone, those of sending the producer alone.

Secrets become text here and in `security`, nowhere else: never log what these functions return.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from bridge.errors import OptionError
from bridge.kafka import security
from bridge.secret import Secret

__all__ = ["Role", "for_java_admin", "for_librdkafka", "for_spark", "read_committed"]

Role = Literal["admin", "producer"]
_Convert = Callable[[str, str], str]


def _as_is(key: str, value: str) -> str:
    return value


def _number(low: int, high: int, *, minus_one: int | None = None, unit: int = 1) -> _Convert:
    """A whole number in `unit`s, moved into librdkafka's range; `minus_one` is its word for Java's -1."""

    def convert(key: str, value: str) -> str:
        try:
            number = int(value)
        except ValueError:
            raise OptionError(f"'properties.{key}' must be a whole number, not '{value}'") from None
        if number == -1 and minus_one is not None:
            return str(minus_one)
        return str(min(max(number // unit, low), high))

    return convert


_INT = 2**31 - 1
_DAY = 86_400_000
_COMMON: dict[str, tuple[str, _Convert]] = {
    "bootstrap.servers": ("bootstrap.servers", _as_is),
    "client.dns.lookup": ("client.dns.lookup", _as_is),
    "client.id": ("client.id", _as_is),
    "connections.max.idle.ms": ("connections.max.idle.ms", _number(0, _INT, minus_one=0)),
    "enable.metrics.push": ("enable.metrics.push", _as_is),
    "metadata.max.age.ms": ("topic.metadata.refresh.interval.ms", _number(1, 3_600_000)),
    "metadata.recovery.rebootstrap.trigger.ms": (
        "metadata.recovery.rebootstrap.trigger.ms",
        _number(0, _INT),
    ),
    "metadata.recovery.strategy": ("metadata.recovery.strategy", _as_is),
    "receive.buffer.bytes": ("socket.receive.buffer.bytes", _number(0, 100_000_000, minus_one=0)),
    "reconnect.backoff.max.ms": ("reconnect.backoff.max.ms", _number(0, 3_600_000)),
    "reconnect.backoff.ms": ("reconnect.backoff.ms", _number(0, 3_600_000)),
    "request.timeout.ms": ("socket.timeout.ms", _number(1000, 300_000)),
    "retry.backoff.max.ms": ("retry.backoff.max.ms", _number(1, 300_000)),
    "retry.backoff.ms": ("retry.backoff.ms", _number(1, 300_000)),
    "send.buffer.bytes": ("socket.send.buffer.bytes", _number(0, 100_000_000, minus_one=0)),
    "socket.connection.setup.timeout.ms": ("socket.connection.setup.timeout.ms", _number(1000, _INT)),
}
_PRODUCER: dict[str, tuple[str, _Convert]] = {
    "acks": ("acks", _as_is),
    "batch.size": ("batch.size", _number(1, _INT)),
    "buffer.memory": ("queue.buffering.max.kbytes", _number(1, _INT, unit=1024)),
    "compression.type": ("compression.type", _as_is),
    "delivery.timeout.ms": ("delivery.timeout.ms", _number(1, _INT)),
    "enable.idempotence": ("enable.idempotence", _as_is),
    "linger.ms": ("linger.ms", _number(0, 900_000)),
    "max.in.flight.requests.per.connection": ("max.in.flight.requests.per.connection", _number(1, 1_000_000)),
    "max.request.size": ("message.max.bytes", _number(1000, 1_000_000_000)),
    "retries": ("retries", _number(0, _INT)),
    "transaction.timeout.ms": ("transaction.timeout.ms", _number(1000, _INT)),
}
_LEVELS = tuple(f"compression.{codec}.level" for codec in ("gzip", "lz4", "zstd"))
_CONSUMER = frozenset(
    {
        "allow.auto.create.topics",
        "auto.commit.interval.ms",
        "auto.offset.reset",
        "check.crcs",
        "client.rack",
        "enable.auto.commit",
        "exclude.internal.topics",
        "fetch.max.bytes",
        "fetch.max.wait.ms",
        "fetch.min.bytes",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "group.remote.assignor",
        "heartbeat.interval.ms",
        "isolation.level",
        "max.partition.fetch.bytes",
        "max.poll.interval.ms",
        "max.poll.records",
        "partition.assignment.strategy",
        "session.timeout.ms",
    }
)
# How the Java client reports on itself and paces its own retries; librdkafka has no counterpart to mislead.
_JAVA_ONLY = frozenset(
    {
        "auto.include.jmx.reporter",
        "default.api.timeout.ms",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "socket.connection.setup.timeout.max.ms",
    }
)
_REFUSED = {
    "interceptor.classes": "Spark's Kafka source allows no interceptors; leave it out",
    "key.deserializer": "keys are decoded by 'key.format'; leave it out",
    "key.serializer": "keys are encoded by 'key.format'; leave it out",
    "max.block.ms": "sending waits at most 'properties.delivery.timeout.ms'; set that one",
    "metadata.max.idle.ms": "the bridge's producer lives for one batch; leave it out",
    "partitioner.adaptive.partitioning.enable": "the key decides the partition; leave it out",
    "partitioner.availability.timeout.ms": "the key decides the partition; leave it out",
    "partitioner.class": "records go where Java's default partitioner puts their keys, or where 'sink.partitioner' "
    "(connector 'kafka') says; leave it out",
    "partitioner.ignore.keys": "all changes of a key must stay in one partition; leave it out",
    "transactional.id": "it is made from 'sink.transactional-id-prefix'; leave it out",
    "value.deserializer": "values are decoded by 'value.format'; leave it out",
    "value.serializer": "values are encoded by 'value.format'; leave it out",
}
_OF_NO_CONCERN = _CONSUMER | _JAVA_ONLY | _PRODUCER.keys() | set(_LEVELS) | security.KEYS
# Spark's source refuses these as options; what they mean is done by the bridge (see admin.start_offsets).
_NOT_FOR_SPARK = frozenset({"auto.offset.reset", "enable.auto.commit", "auto.commit.interval.ms", "group.id"})


def for_spark(properties: Mapping[str, str]) -> dict[str, str]:
    """Options of Spark's Kafka source for `properties`: `kafka.*`, read_committed unless they say otherwise.

    `group.id` becomes `groupIdPrefix`: Spark's readers of one pipeline must not share a group, and an ACL
    on the prefix still lets them in. The committed offsets of the group itself are `admin`'s business.
    Raises OptionError for a property the bridge or Spark cannot honour, without its value where it is secret.
    """
    _refuse(properties)
    plain = {key: _text(value) for key, value in properties.items()}
    # Spark reads to offsets that it knows are there, and its readers ask ahead for what comes behind. The broker would
    # hold that request for half a second, and with it the next batch, which has the reader now.
    made = {"kafka.isolation.level": "read_committed", "kafka.fetch.max.wait.ms": "10"}
    for key, value in plain.items():
        if key not in _NOT_FOR_SPARK and key not in _PRODUCER and key not in _LEVELS:
            made["kafka." + key] = value
    made |= {f"kafka.{key}": value for key, value in security.for_java(plain).items()}
    if "group.id" in properties:
        made["groupIdPrefix"] = properties["group.id"]
    return made


def for_java_admin(properties: Mapping[str, str]) -> dict[str, str]:
    """Settings of Kafka's Java AdminClient for `properties`. Raises OptionError as `for_spark` does."""
    told = {key.removeprefix("kafka."): value for key, value in for_spark(properties).items()}
    return {key: value for key, value in told.items() if key not in _CONSUMER and key != "groupIdPrefix"}


def for_librdkafka(properties: Mapping[str, str], role: Role = "admin") -> dict[str, str]:
    """librdkafka's configuration for `properties`, without those that do not concern `role`.

    Numbers beyond librdkafka's range are moved to its limit. Raises OptionError for a property that
    librdkafka cannot honour, with the reason and the way out.
    """
    _refuse(properties)
    plain = {key: _text(value) for key, value in properties.items()}
    made = security.for_librdkafka(plain)
    translated = _COMMON | _PRODUCER if role == "producer" else _COMMON
    for key, value in plain.items():
        if key in translated:
            name, convert = translated[key]
            made[name] = convert(key, value)
        elif key not in _OF_NO_CONCERN:
            raise OptionError(
                f"'properties.{key}' is refused: librdkafka, with which the bridge sends and administers, "
                "has no such property; leave it out"
            )
    if role == "producer":
        level = f"compression.{plain.get('compression.type', 'none')}.level"
        if level in plain:
            made["compression.level"] = _number(-1, 12)(level, plain[level])
        if "request.timeout.ms" in plain:
            made["request.timeout.ms"] = _number(1, 900_000)(
                "request.timeout.ms", plain["request.timeout.ms"]
            )
    return made


def read_committed(properties: Mapping[str, str]) -> bool:
    """True unless `isolation.level` says `read_uncommitted`; the bridge's default differs from Kafka's."""
    level = properties.get("isolation.level", "read_committed")
    if level not in ("read_committed", "read_uncommitted"):
        raise OptionError(
            f"'properties.isolation.level' must be read_committed or read_uncommitted, not '{level}'"
        )
    return level == "read_committed"


def _text(value: str) -> str:
    return value.reveal() if isinstance(value, Secret) else str(value)


def _refuse(properties: Mapping[str, str]) -> None:
    for key in properties:
        if key in _REFUSED:
            raise OptionError(f"'properties.{key}' is refused: {_REFUSED[key]}")
    if _text(properties.get("enable.auto.commit", "false")).lower() != "false":
        raise OptionError(
            "'properties.enable.auto.commit' is refused: offsets are committed after the table's commit; "
            "leave it out"
        )
