"""Settings of all clients: connections, retries, metadata and metrics."""

from __future__ import annotations

from bridge.options.kinds import SERVERS, choice
from bridge.options.properties.model import (
    BOOL,
    LONG_MAX,
    TEXT,
    Setting,
    all_clients,
    integer,
    java_clients_only,
    refused,
)

__all__ = ["COMMON"]

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
