"""Kafka client settings behind `properties.*`: which are the bridge's own, which are secret, which exist."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType

from bridge.errors import OptionError
from bridge.options.model import KAFKA

__all__ = ["OVERRIDDEN", "PREFIX", "check_property", "is_secret"]

PREFIX = "properties."

_BYTES = "records are read and written as bytes, and 'key.format' and 'value.format' say what they mean"
_FLINK = "it is a setting of Flink's own source, not of Kafka's client"

OVERRIDDEN: Mapping[str, str] = MappingProxyType(
    {
        "key.serializer": _BYTES,
        "value.serializer": _BYTES,
        "key.deserializer": _BYTES,
        "value.deserializer": _BYTES,
        "auto.offset.reset": "'upsert-kafka' begins at the earliest offset, and a lost position is an error",
        "enable.auto.commit": "progress is kept in the Delta table, in the commit that holds the data",
        "interceptor.classes": "Spark's Kafka source refuses interceptors",
        "transactional.id": "transactions are named by 'sink.transactional-id-prefix'",
        "partitioner.class": "records are partitioned by murmur2 of the key's bytes, or as 'sink.partitioner' says",
        "partitioner.ignore.keys": "records of one key must stay in one partition, in order",
        "partition.discovery.interval.ms": f"{_FLINK}; use 'scan.topic-partition-discovery.interval'",
        "client.id.prefix": f"{_FLINK}; use 'properties.client.id'",
        "commit.offsets.on.checkpoint": _FLINK,
        "register.consumer.metrics": _FLINK,
    }
)
"""Settings that cannot be given, and why. `auto.offset.reset` may be given with the connector 'kafka'."""

_KNOWN_TEXT = """
acks allow.auto.create.topics auto.commit.interval.ms auto.offset.reset batch.size bootstrap.servers
buffer.memory check.crcs client.dns.lookup client.id client.rack compression.gzip.level
compression.lz4.level compression.type compression.zstd.level config.providers connections.max.idle.ms
default.api.timeout.ms delivery.timeout.ms enable.idempotence enable.metrics.push exclude.internal.topics
fetch.max.bytes fetch.max.wait.ms fetch.min.bytes group.id group.instance.id group.protocol
group.remote.assignor heartbeat.interval.ms isolation.level linger.ms max.block.ms
max.in.flight.requests.per.connection max.partition.fetch.bytes max.poll.interval.ms max.poll.records
max.request.size metadata.max.age.ms metadata.max.idle.ms metadata.recovery.rebootstrap.trigger.ms
metadata.recovery.strategy metric.reporters metrics.num.samples metrics.recording.level
metrics.sample.window.ms partition.assignment.strategy partitioner.adaptive.partitioning.enable
partitioner.availability.timeout.ms receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms
request.timeout.ms retries retry.backoff.max.ms retry.backoff.ms security.protocol security.providers
send.buffer.bytes session.timeout.ms socket.connection.setup.timeout.max.ms
socket.connection.setup.timeout.ms transaction.timeout.ms sasl.client.callback.handler.class
sasl.jaas.config sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.service.name
sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor sasl.login.callback.handler.class
sasl.login.class sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.mechanism ssl.cipher.suites
ssl.enabled.protocols ssl.endpoint.identification.algorithm ssl.engine.factory.class ssl.key.password
ssl.keymanager.algorithm ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location
ssl.keystore.password ssl.keystore.type ssl.protocol ssl.provider ssl.secure.random.implementation
ssl.trustmanager.algorithm ssl.truststore.certificates ssl.truststore.location ssl.truststore.password
ssl.truststore.type
"""
_KNOWN = frozenset(_KNOWN_TEXT.split())
_OPEN_FAMILIES = ("sasl.oauthbearer.",)
_PUBLIC_SASL = ("sasl.mechanism", "sasl.kerberos.service.name")
_SECRET = re.compile(
    r"password|passphrase|secret|token|credential|jaas|user[.-]info|private|(^|[.-])key$|certificate"
)


def is_secret(key: str) -> bool:
    """True when the value of this WITH key, or client setting, is never to be shown."""
    name = key.removeprefix(PREFIX)
    if name.startswith("sasl."):
        return name not in _PUBLIC_SASL
    return bool(_SECRET.search(name.lower()))


def check_property(connector: str, key: str) -> str | None:
    """Judge the client setting `key` (no prefix); returns a warning for one the bridge does not know.

    Raises OptionError for a setting of the bridge's own, and for a misspelt one, naming the nearest.
    """
    if key in OVERRIDDEN and not (key == "auto.offset.reset" and connector == KAFKA):
        raise OptionError(f"'{PREFIX}{key}' cannot be set: {OVERRIDDEN[key]}")
    if key in _KNOWN or key.startswith(_OPEN_FAMILIES):
        return None
    near = get_close_matches(key.lower(), _KNOWN, 1, 0.85)
    if near or not re.fullmatch(r"[A-Za-z0-9._-]+", key):
        hint = f"; did you mean '{PREFIX}{near[0]}'?" if near else ""
        raise OptionError(f"'{PREFIX}{key}' is not a setting of Kafka's clients{hint}")
    return (
        f"'{PREFIX}{key}' is not a setting of Kafka's clients that the bridge knows; it is handed on as it is"
    )
