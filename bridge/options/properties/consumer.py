"""Settings of consumers. The consumer is Spark's reader, which joins no group: Spark assigns its partitions."""

from __future__ import annotations

from dataclasses import replace

from bridge.options.kinds import choice
from bridge.options.model import KAFKA
from bridge.options.properties.model import (
    BOOL,
    NAME,
    TEXT,
    Setting,
    consumer_only,
    ignored,
    integer,
    refused,
    set_by_bridge,
)

__all__ = ["CONSUMER"]

_NO_CONSUMER_GROUP = "Spark assigns the partitions to its readers, so they do not join a consumer group"
_NO_SHARE_GROUP = "the bridge reads by offset and is not a member of a share group; remove it"
_INTERNAL = "it is internal to Kafka's clients; remove it"
_BYTES = "records are read and written as bytes; 'key.format' and 'value.format' decode and encode them"

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
