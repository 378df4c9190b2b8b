"""Settings of a consumer. Spark's reader is one; it joins no group, since Spark assigns its partitions."""

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

_NO_MEMBER = "Spark assigns the partitions to its readers, so none joins a group"
_NO_SHARE = "the bridge reads by offsets, not as a member of a share group; leave it out"
_INTERNAL = "it is internal to Kafka's clients; leave it out"
_BYTES = "records are read and written as bytes, and 'key.format' and 'value.format' say what they mean"

CONSUMER: tuple[Setting, ...] = (
    consumer_only("allow.auto.create.topics", BOOL),
    replace(
        consumer_only(
            "auto.offset.reset",
            choice("earliest", "latest", "none", exact=True),
            "'upsert-kafka' begins at the earliest offset, and a lost position is an error",
        ),
        connectors=(KAFKA,),
    ),
    consumer_only("check.crcs", BOOL),
    consumer_only("client.rack", TEXT),
    consumer_only("fetch.max.bytes", integer(0)),
    consumer_only("fetch.max.wait.ms", integer(0), "10 where it is not set"),
    consumer_only("fetch.min.bytes", integer(0)),
    consumer_only("group.id", NAME, "what the ids of Spark's readers begin with; progress is shown under it"),
    consumer_only(
        "isolation.level",
        choice("read_committed", "read_uncommitted", exact=True),
        "read_committed where it is not set",
    ),
    consumer_only("max.partition.fetch.bytes", integer(0)),
    consumer_only("max.poll.records", integer(1)),
    set_by_bridge(
        "enable.auto.commit", "progress is kept in the Delta table, in the commit that holds the data"
    ),
    set_by_bridge("interceptor.classes", "Spark's Kafka source refuses interceptors"),
    set_by_bridge("key.deserializer", _BYTES),
    set_by_bridge("value.deserializer", _BYTES),
    ignored(
        "auto.commit.interval.ms",
        integer(0),
        "nothing is committed by itself; a group is shown each batch's end",
    ),
    ignored("exclude.internal.topics", BOOL, "the bridge finds topics itself, and never Kafka's own"),
    ignored("group.instance.id", NAME, _NO_MEMBER),
    ignored("group.protocol", choice("classic", "consumer"), _NO_MEMBER),
    ignored("group.remote.assignor", TEXT, _NO_MEMBER),
    ignored("heartbeat.interval.ms", integer(0), _NO_MEMBER),
    ignored("max.poll.interval.ms", integer(1), _NO_MEMBER),
    ignored("partition.assignment.strategy", TEXT, _NO_MEMBER),
    ignored("session.timeout.ms", integer(0), _NO_MEMBER),
    refused("internal.leave.group.on.close", _INTERNAL, "true"),
    refused("internal.throw.on.fetch.stable.offset.unsupported", _INTERNAL, "false"),
    refused("share.acknowledgement.mode", _NO_SHARE),
    refused("share.acquire.mode", _NO_SHARE),
)
