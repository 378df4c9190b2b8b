"""Lists Kafka's client settings by their Java names; checks a setting and suggests a name for unknown ones.

- `COMMON`: connections, retries, metadata and metrics of all clients
- `CONSUMER`: of Spark's reader, which joins no group: Spark assigns its partitions
- `FLINK_ONLY`: of Flink's Kafka source; a DDL gives them with the prefix of client settings
- `TLS`: librdkafka uses OpenSSL, to which Java classes and Java names do not apply
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from types import MappingProxyType

from bridge.errors import OptionError
from bridge.options.kinds import SERVERS, Kind, choice
from bridge.options.model import KAFKA
from bridge.options.properties.model import (
    ALL_CLIENTS,
    BOOL,
    INT_MAX,
    LONG_MAX,
    NAME,
    PREFIX,
    TEXT,
    Setting,
    Treatment,
    all_clients,
    consumer_only,
    ignored,
    integer,
    java_clients_only,
    producer_only,
    refused,
    set_by_bridge,
)
from bridge.options.properties.sasl import SASL

_BYTES = "records are read and written as bytes; 'key.format' and 'value.format' decode and encode them"
_BY_KEY = "the key determines the partition; remove it"
_LEVEL = "has an effect if 'properties.compression.type' is this codec"

LEVELS = tuple(f"compression.{codec}.level" for codec in ("gzip", "lz4", "zstd"))
"""Only the level of the codec in use is passed to librdkafka."""


def _kilobytes(size: int) -> str:
    return str(size // 1024)


_PRODUCER: tuple[Setting, ...] = (
    producer_only("acks", choice("all", "-1", "0", "1", exact=True)),
    producer_only("batch.size", integer(1)),
    producer_only(
        "buffer.memory",
        integer(1024, INT_MAX * 1024 + 1023),
        "queue.buffering.max.kbytes",
        convert=_kilobytes,
        reason="rounded down to kilobytes",
    ),
    producer_only("compression.type", choice("none", "gzip", "snappy", "lz4", "zstd", exact=True)),
    producer_only(LEVELS[0], integer(1, 9, also=-1), "compression.level", reason=_LEVEL),
    producer_only(LEVELS[1], integer(1, 12), "compression.level", reason=_LEVEL),
    producer_only(LEVELS[2], integer(0, 12), "compression.level", reason=_LEVEL),
    producer_only("delivery.timeout.ms", integer(1), reason="must be greater than 'properties.linger.ms'"),
    producer_only("enable.idempotence", BOOL, reason="true requires 'properties.acks' = 'all'"),
    producer_only("linger.ms", integer(0, 900_000), reason="default: 20"),
    producer_only(
        "max.in.flight.requests.per.connection",
        integer(1, 1_000_000),
        reason="at most 5 for an idempotent producer",
    ),
    producer_only("max.request.size", integer(1000, 1_000_000_000), "message.max.bytes"),
    producer_only("retries", integer(0), reason="at least 1 for an idempotent producer"),
    producer_only("transaction.timeout.ms", integer(1000)),
    set_by_bridge("key.serializer", _BYTES),
    set_by_bridge("value.serializer", _BYTES),
    set_by_bridge(
        "partitioner.class",
        "'sink.partitioner' selects the partitioner; by default it is the murmur2 hash of the key's bytes",
    ),
    set_by_bridge(
        "partitioner.ignore.keys", "the records of a key must be in one partition to remain in order"
    ),
    set_by_bridge("transactional.id", "transactional ids are derived from 'sink.transactional-id-prefix'"),
    refused(
        "max.block.ms",
        "sending blocks for at most 'properties.delivery.timeout.ms'; set that instead",
        "60000",
    ),
    refused("metadata.max.idle.ms", "librdkafka has no such setting; remove it", "300000"),
    refused("partitioner.adaptive.partitioning.enable", _BY_KEY, "true"),
    refused("partitioner.availability.timeout.ms", _BY_KEY, "0"),
    refused(
        "transaction.two.phase.commit.enable",
        "no external coordinator completes the transactions of the bridge; remove it",
        "false",
    ),
)


_BUFFER = integer(1, 100_000_000, also=-1)
_BACKOFF = integer(0, 3_600_000)
_RETRY = integer(1, 300_000)
_JMX = "org.apache.kafka.common.metrics.JmxReporter"


def _system(size: int) -> str:
    return str(max(0, size))


COMMON: tuple[Setting, ...] = (
    all_clients("bootstrap.servers", SERVERS),
    all_clients(
        "client.dns.lookup", choice("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only", exact=True)
    ),
    all_clients("client.id", TEXT),
    all_clients(
        "connections.max.idle.ms",
        integer(1, also=-1),
        convert=_system,
        reason="-1 (never close connections) is 0 in librdkafka",
    ),
    all_clients("enable.metrics.push", BOOL),
    all_clients("metadata.max.age.ms", integer(1, 3_600_000), "topic.metadata.refresh.interval.ms"),
    all_clients(
        "metadata.recovery.strategy",
        choice("none", "rebootstrap"),
        reason="must be none with 'sink.delivery-guarantee' = 'exactly-once'",
    ),
    all_clients(
        "metadata.recovery.rebootstrap.trigger.ms",
        integer(0),
        reason="Spark's reader supports it as of Kafka 4.0",
    ),
    all_clients(
        "receive.buffer.bytes",
        _BUFFER,
        "socket.receive.buffer.bytes",
        convert=_system,
        reason="-1 (the system default) is 0 in librdkafka",
    ),
    all_clients(
        "send.buffer.bytes",
        _BUFFER,
        "socket.send.buffer.bytes",
        convert=_system,
        reason="-1 (the system default) is 0 in librdkafka",
    ),
    all_clients(
        "reconnect.backoff.ms",
        _BACKOFF,
        reason="must not be greater than 'properties.reconnect.backoff.max.ms'",
    ),
    all_clients(
        "reconnect.backoff.max.ms",
        _BACKOFF,
        reason="default: 10000 if 'properties.reconnect.backoff.ms' is set",
    ),
    all_clients(
        "request.timeout.ms",
        integer(1000, 300_000),
        "socket.timeout.ms",
        reason="also librdkafka's `request.timeout.ms` of the producer",
    ),
    all_clients("retry.backoff.ms", _RETRY),
    all_clients("retry.backoff.max.ms", _RETRY),
    all_clients("socket.connection.setup.timeout.ms", integer(1000)),
    java_clients_only("socket.connection.setup.timeout.max.ms", integer(0, LONG_MAX)),
    java_clients_only("default.api.timeout.ms", integer(0)),
    java_clients_only("metrics.num.samples", integer(1)),
    java_clients_only("metrics.recording.level", choice("INFO", "DEBUG", "TRACE", exact=True)),
    java_clients_only("metrics.sample.window.ms", integer(0, LONG_MAX)),
    java_clients_only("auto.include.jmx.reporter", BOOL, reason="removed in Kafka 4"),
    refused(
        "metric.reporters",
        "librdkafka cannot load Java classes, and the executors of Spark may not have the class; use the metrics of "
        "Spark for its reader, and remove it",
        _JMX,
    ),
    refused(
        "bootstrap.controllers",
        "the bridge connects to brokers, not to controllers; use 'properties.bootstrap.servers'",
        "",
    ),
    refused(
        "config.providers",
        "references are substituted when the pipeline file is loaded; write ${env:...}, ${file:...} or ${secret:...}",
        "",
    ),
)


_NO_CONSUMER_GROUP = "Spark assigns the partitions to its readers, so they do not join a consumer group"
_NO_SHARE_GROUP = "the bridge reads by offset and is not a member of a share group; remove it"
_INTERNAL = "it is internal to Kafka's clients; remove it"

CONSUMER: tuple[Setting, ...] = (
    consumer_only("allow.auto.create.topics", BOOL),
    replace(
        consumer_only(
            "auto.offset.reset",
            choice("earliest", "latest", "none", exact=True),
            "'upsert-kafka' starts at the earliest offset, and an expired offset is an error",
        ),
        connectors=(KAFKA,),
    ),
    consumer_only("check.crcs", BOOL),
    consumer_only("client.rack", TEXT),
    consumer_only("fetch.max.bytes", integer(0)),
    consumer_only("fetch.max.wait.ms", integer(0), "default: 10"),
    consumer_only("fetch.min.bytes", integer(0)),
    consumer_only(
        "group.id",
        NAME,
        "prefix of the group ids of Spark's readers; the bridge commits the offsets it has read to this group",
    ),
    consumer_only(
        "isolation.level",
        choice("read_committed", "read_uncommitted", exact=True),
        "default: read_committed",
    ),
    consumer_only("max.partition.fetch.bytes", integer(0)),
    consumer_only("max.poll.records", integer(1)),
    set_by_bridge(
        "enable.auto.commit", "the progress is stored in the Delta table, in the same commit as the data"
    ),
    set_by_bridge("interceptor.classes", "Spark's Kafka source refuses interceptors"),
    set_by_bridge("key.deserializer", _BYTES),
    set_by_bridge("value.deserializer", _BYTES),
    ignored(
        "auto.commit.interval.ms",
        integer(0),
        "the bridge commits offsets after each batch, not at intervals",
    ),
    ignored(
        "exclude.internal.topics",
        BOOL,
        "the bridge resolves 'topic-pattern' itself and never reads Kafka's internal topics",
    ),
    ignored("group.instance.id", NAME, _NO_CONSUMER_GROUP),
    ignored("group.protocol", choice("classic", "consumer"), _NO_CONSUMER_GROUP),
    ignored("group.remote.assignor", TEXT, _NO_CONSUMER_GROUP),
    ignored("heartbeat.interval.ms", integer(0), _NO_CONSUMER_GROUP),
    ignored("max.poll.interval.ms", integer(1), _NO_CONSUMER_GROUP),
    ignored("partition.assignment.strategy", TEXT, _NO_CONSUMER_GROUP),
    ignored("session.timeout.ms", integer(0), _NO_CONSUMER_GROUP),
    refused("internal.leave.group.on.close", _INTERNAL, "true"),
    refused("internal.throw.on.fetch.stable.offset.unsupported", _INTERNAL, "false"),
    refused("share.acknowledgement.mode", _NO_SHARE_GROUP),
    refused("share.acquire.mode", _NO_SHARE_GROUP),
)


_FLINK = "it is a setting of Flink's source, not of Kafka's clients"

FLINK_ONLY: tuple[Setting, ...] = (
    refused("partition.discovery.interval.ms", f"{_FLINK}; use 'scan.topic-partition-discovery.interval'"),
    refused("client.id.prefix", f"{_FLINK}; use 'properties.client.id'"),
    refused("commit.offsets.on.checkpoint", f"{_FLINK}; remove it"),
    refused("register.consumer.metrics", f"{_FLINK}; remove it"),
)


_OPENSSL = (
    "librdkafka, with which the bridge sends records and looks up offsets, uses OpenSSL and cannot load Java classes; "
    "remove it"
)
_VERSIONS = (
    "librdkafka, with which the bridge sends records and looks up offsets, cannot disable TLS 1.2 or TLS 1.3; remove "
    "it, and set 'ssl.enabled.protocols' in the broker"
)
_SUITES = (
    "librdkafka, with which the bridge sends records and looks up offsets, uses OpenSSL's names of cipher suites and "
    "cannot select those of TLS 1.3; remove it, and set 'ssl.cipher.suites' in the broker"
)
_STORES = choice("JKS", "PKCS12", "PEM")


def _store(key: str, kind: Kind[str] = TEXT, reason: str = "") -> Setting:
    return Setting(
        key,
        kind,
        Treatment.TRANSLATED,
        ALL_CLIENTS,
        reason=reason or "librdkafka receives the content as PEM",
    )


def _endpoint(text: str) -> str:
    return text or "none"


def _https(text: str) -> str:
    if text.lower() not in ("https", ""):
        raise ValueError(text)
    return text.lower()


_ENDPOINT: Kind[str] = Kind("String", _https, "https, or empty to disable the check of host names")

TLS: tuple[Setting, ...] = (
    all_clients("security.protocol", choice("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")),
    all_clients(
        "ssl.endpoint.identification.algorithm",
        _ENDPOINT,
        convert=_endpoint,
        reason="empty is none in librdkafka",
    ),
    all_clients("ssl.key.password", TEXT),
    _store("ssl.keystore.location", NAME),
    _store("ssl.keystore.password"),
    _store(
        "ssl.keystore.type",
        _STORES,
        "librdkafka receives the content as PEM; JKS and PKCS12 are detected from the file",
    ),
    all_clients("ssl.keystore.certificate.chain", NAME, "ssl.certificate.pem"),
    all_clients("ssl.keystore.key", NAME, "ssl.key.pem"),
    _store("ssl.truststore.location", NAME),
    _store("ssl.truststore.password"),
    _store(
        "ssl.truststore.type",
        _STORES,
        "librdkafka receives the content as PEM; JKS and PKCS12 are detected from the file",
    ),
    all_clients("ssl.truststore.certificates", NAME, "ssl.ca.pem"),
    refused("ssl.cipher.suites", _SUITES, ""),
    refused("ssl.enabled.protocols", _VERSIONS, "TLSv1.2,TLSv1.3"),
    refused("ssl.protocol", _VERSIONS, "TLSv1.3"),
    refused("ssl.engine.factory.class", _OPENSSL),
    refused("ssl.keymanager.algorithm", _OPENSSL, "SunX509"),
    refused("ssl.provider", _OPENSSL),
    refused("ssl.secure.random.implementation", _OPENSSL),
    refused("ssl.trustmanager.algorithm", _OPENSSL, "PKIX"),
    refused("security.providers", _OPENSSL),
)


_ALL = (*COMMON, *CONSUMER, *_PRODUCER, *TLS, *SASL, *FLINK_ONLY)

SETTINGS: Mapping[str, Setting] = MappingProxyType({setting.key: setting for setting in _ALL})
"""All settings of Kafka's Java consumer, producer and admin client, and those of Flink's source."""

if len(SETTINGS) < len(_ALL):
    raise ValueError("a client setting is declared twice")

_LIBRDKAFKA_NAMES = {
    **{s.librdkafka: s.key for s in _ALL if s.librdkafka and s.librdkafka not in SETTINGS},
    "sasl.username": "sasl.jaas.config",
    "sasl.password": "sasl.jaas.config",
    "sasl.mechanisms": "sasl.mechanism",
    "ssl.ca.location": "ssl.truststore.location",
    "queue.buffering.max.ms": "linger.ms",
    "message.timeout.ms": "delivery.timeout.ms",
    "compression.codec": "compression.type",
    "request.required.acks": "acks",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "metadata.broker.list": "bootstrap.servers",
}


def check_property(connector: str, key: str, text: str, masked: bool = False) -> None:
    """Checks the client setting `key` (without prefix) and its value, which is not quoted if `masked`.

    Raises OptionError for a setting that does not exist, with the most similar name; for one that the bridge sets or
    refuses, with the reason; and for a value that one of its clients does not accept, with the legal values.
    """
    setting = SETTINGS.get(key)
    if setting is None:
        raise OptionError(f"'{PREFIX}{key}' is not a setting of Kafka's clients; {_suggestion(key)}")
    setting.check(connector, text, masked)


def ignored_warning(key: str) -> str | None:
    """Returns the warning for a legal setting that has no effect; None for all other settings."""
    setting = SETTINGS.get(key)
    if setting is None or setting.treatment is not Treatment.IGNORED:
        return None
    return f"'{PREFIX}{key}' has no effect: {setting.reason}"


def _suggestion(key: str) -> str:
    if key in _LIBRDKAFKA_NAMES:
        return f"it is librdkafka's name; write the Java name '{PREFIX}{_LIBRDKAFKA_NAMES[key]}'"
    near = get_close_matches(key.lower(), SETTINGS, 1, 0.6)
    return f"did you mean '{PREFIX}{near[0]}'?" if near else "docs/options.md lists all settings"
