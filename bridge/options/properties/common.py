"""Settings of every client: connections, retries, metadata, metrics."""

from __future__ import annotations

from bridge.options.kinds import SERVERS, choice
from bridge.options.properties.model import (
    BOOL,
    LONG_MAX,
    TEXT,
    Setting,
    asked,
    both,
    refused,
    whole,
)

__all__ = ["COMMON"]

_BUFFER = whole(1, 100_000_000, also=-1)
_BACKOFF = whole(0, 3_600_000)
_RETRY = whole(1, 300_000)
_JMX = "org.apache.kafka.common.metrics.JmxReporter"


def _system(size: int) -> str:
    return str(max(0, size))


COMMON: tuple[Setting, ...] = (
    both("bootstrap.servers", SERVERS),
    both(
        "client.dns.lookup", choice("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only", exact=True)
    ),
    both("client.id", TEXT),
    both(
        "connections.max.idle.ms",
        whole(1, also=-1),
        convert=_system,
        reason="-1, for ever, is 0 there",
    ),
    both("enable.metrics.push", BOOL),
    both("metadata.max.age.ms", whole(1, 3_600_000), "topic.metadata.refresh.interval.ms"),
    both(
        "metadata.recovery.strategy",
        choice("none", "rebootstrap"),
        reason="'sink.delivery-guarantee' = 'exactly-once' needs none",
    ),
    both(
        "metadata.recovery.rebootstrap.trigger.ms",
        whole(0),
        reason="Spark's reader knows it from Kafka 4.0 on",
    ),
    both(
        "receive.buffer.bytes",
        _BUFFER,
        "socket.receive.buffer.bytes",
        convert=_system,
        reason="-1 is 0 there",
    ),
    both("send.buffer.bytes", _BUFFER, "socket.send.buffer.bytes", convert=_system, reason="-1 is 0 there"),
    both("reconnect.backoff.ms", _BACKOFF, reason="at most 'properties.reconnect.backoff.max.ms'"),
    both("reconnect.backoff.max.ms", _BACKOFF, reason="10000 where it is not set and the other is"),
    both(
        "request.timeout.ms",
        whole(1000, 300_000),
        "socket.timeout.ms",
        reason="the producer's `request.timeout.ms`, too",
    ),
    both("retry.backoff.ms", _RETRY),
    both("retry.backoff.max.ms", _RETRY),
    both("socket.connection.setup.timeout.ms", whole(1000)),
    asked("socket.connection.setup.timeout.max.ms", whole(0, LONG_MAX)),
    asked("default.api.timeout.ms", whole(0)),
    asked("metrics.num.samples", whole(1)),
    asked("metrics.recording.level", choice("INFO", "DEBUG", "TRACE", exact=True)),
    asked("metrics.sample.window.ms", whole(0, LONG_MAX)),
    asked("auto.include.jmx.reporter", BOOL, reason="Kafka 4 has it no more"),
    refused(
        "metric.reporters",
        "a class of yours may be missing where Spark runs, and librdkafka loads none; Spark's own metrics tell of its "
        "reader. Leave it out",
        _JMX,
    ),
    refused(
        "bootstrap.controllers",
        "the bridge asks brokers, not controllers; use 'properties.bootstrap.servers'",
        "",
    ),
    refused(
        "config.providers",
        "values are filled in when the file is read; write ${env:...}, ${file:...} or ${secret:...}",
        "",
    ),
)
