"""Settings of a producer, which librdkafka is."""

from __future__ import annotations

from bridge.options.kinds import choice
from bridge.options.properties.model import BOOL, INT_MAX, Setting, own, refused, sending, whole

__all__ = ["LEVELS", "PRODUCER"]

_BYTES = "records are read and written as bytes, and 'key.format' and 'value.format' say what they mean"
_BY_KEY = "the key decides the partition; leave it out"
_LEVEL = "told where 'properties.compression.type' names this codec"

LEVELS = tuple(f"compression.{codec}.level" for codec in ("gzip", "lz4", "zstd"))
"""Of these the one of the codec in use is told."""


def _kilobytes(size: int) -> str:
    return str(size // 1024)


PRODUCER: tuple[Setting, ...] = (
    sending("acks", choice("all", "-1", "0", "1", exact=True)),
    sending("batch.size", whole(1)),
    sending(
        "buffer.memory",
        whole(1024, INT_MAX * 1024 + 1023),
        "queue.buffering.max.kbytes",
        convert=_kilobytes,
        reason="in whole kilobytes",
    ),
    sending("compression.type", choice("none", "gzip", "snappy", "lz4", "zstd", exact=True)),
    sending(LEVELS[0], whole(1, 9, also=-1), "compression.level", reason=_LEVEL),
    sending(LEVELS[1], whole(1, 12), "compression.level", reason=_LEVEL),
    sending(LEVELS[2], whole(0, 12), "compression.level", reason=_LEVEL),
    sending("delivery.timeout.ms", whole(1), reason="more than 'properties.linger.ms'"),
    sending("enable.idempotence", BOOL, reason="true needs 'properties.acks' = 'all'"),
    sending("linger.ms", whole(0, 900_000), reason="20 where it is not set"),
    sending(
        "max.in.flight.requests.per.connection", whole(1, 1_000_000), reason="at most 5 with idempotence"
    ),
    sending("max.request.size", whole(1000, 1_000_000_000), "message.max.bytes"),
    sending("retries", whole(0), reason="at least 1 with idempotence"),
    sending("transaction.timeout.ms", whole(1000)),
    own("key.serializer", _BYTES),
    own("value.serializer", _BYTES),
    own(
        "partitioner.class",
        "records are partitioned by murmur2 of the key's bytes, or as 'sink.partitioner' says",
    ),
    own("partitioner.ignore.keys", "records of one key must stay in one partition, in order"),
    own("transactional.id", "transactions are named by 'sink.transactional-id-prefix'"),
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
