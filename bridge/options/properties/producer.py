"""Settings of a producer, which librdkafka is."""

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

__all__ = ["LEVELS", "PRODUCER"]

_BYTES = "records are read and written as bytes, and 'key.format' and 'value.format' say what they mean"
_BY_KEY = "the key decides the partition; leave it out"
_LEVEL = "told where 'properties.compression.type' names this codec"

LEVELS = tuple(f"compression.{codec}.level" for codec in ("gzip", "lz4", "zstd"))
"""Of these the one of the codec in use is told."""


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
        reason="in whole kilobytes",
    ),
    producer_only("compression.type", choice("none", "gzip", "snappy", "lz4", "zstd", exact=True)),
    producer_only(LEVELS[0], integer(1, 9, also=-1), "compression.level", reason=_LEVEL),
    producer_only(LEVELS[1], integer(1, 12), "compression.level", reason=_LEVEL),
    producer_only(LEVELS[2], integer(0, 12), "compression.level", reason=_LEVEL),
    producer_only("delivery.timeout.ms", integer(1), reason="more than 'properties.linger.ms'"),
    producer_only("enable.idempotence", BOOL, reason="true needs 'properties.acks' = 'all'"),
    producer_only("linger.ms", integer(0, 900_000), reason="20 where it is not set"),
    producer_only(
        "max.in.flight.requests.per.connection", integer(1, 1_000_000), reason="at most 5 with idempotence"
    ),
    producer_only("max.request.size", integer(1000, 1_000_000_000), "message.max.bytes"),
    producer_only("retries", integer(0), reason="at least 1 with idempotence"),
    producer_only("transaction.timeout.ms", integer(1000)),
    set_by_bridge("key.serializer", _BYTES),
    set_by_bridge("value.serializer", _BYTES),
    set_by_bridge(
        "partitioner.class",
        "records are partitioned by murmur2 of the key's bytes, or as 'sink.partitioner' says",
    ),
    set_by_bridge("partitioner.ignore.keys", "records of one key must stay in one partition, in order"),
    set_by_bridge("transactional.id", "transactions are named by 'sink.transactional-id-prefix'"),
    refused("max.block.ms", "sending waits at most 'properties.delivery.timeout.ms'; set that one", "60000"),
    refused("metadata.max.idle.ms", "the bridge's producer lives for one batch; leave it out", "300000"),
    refused("partitioner.adaptive.partitioning.enable", _BY_KEY, "true"),
    refused("partitioner.availability.timeout.ms", _BY_KEY, "0"),
    refused(
        "transaction.two.phase.commit.enable",
        "nobody outside ends the bridge's transactions; leave it out",
        "false",
    ),
)
