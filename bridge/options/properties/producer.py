"""Settings of producers. The producer is librdkafka."""

from __future__ import annotations

from bridge.options.kinds import choice
from bridge.options.properties.model import (
    BOOL,
    INT_MAX,
    Setting,
    integer,
    producer_only,
    refused,
    set_by_bridge,
)

_BYTES = "records are read and written as bytes; 'key.format' and 'value.format' decode and encode them"
_BY_KEY = "the key determines the partition; remove it"
_LEVEL = "has an effect if 'properties.compression.type' is this codec"

LEVELS = tuple(f"compression.{codec}.level" for codec in ("gzip", "lz4", "zstd"))
"""Only the level of the codec in use is passed to librdkafka."""


def _kilobytes(size: int) -> str:
    return str(size // 1024)


PRODUCER: tuple[Setting, ...] = (
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
