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
    idle,
    own,
    reading,
    refused,
    whole,
)

__all__ = ["CONSUMER"]

_NO_MEMBER = "Spark assigns the partitions to its readers, so none joins a group"
_NO_SHARE = "the bridge reads by offsets, not as a member of a share group; leave it out"
_INTERNAL = "it is internal to Kafka's clients; leave it out"
_BYTES = "records are read and written as bytes, and 'key.format' and 'value.format' say what they mean"

CONSUMER: tuple[Setting, ...] = (
    reading("allow.auto.create.topics", BOOL),
    replace(
        reading(
            "auto.offset.reset",
            choice("earliest", "latest", "none", exact=True),
            "'upsert-kafka' begins at the earliest offset, and a lost position is an error",
        ),
        connectors=(KAFKA,),
    ),
    reading("check.crcs", BOOL),
    reading("client.rack", TEXT),
    reading("fetch.max.bytes", whole(0)),
    reading("fetch.max.wait.ms", whole(0), "10 where it is not set"),
    reading("fetch.min.bytes", whole(0)),
    reading("group.id", NAME, "what the ids of Spark's readers begin with; progress is shown under it"),
    reading(
        "isolation.level",
        choice("read_committed", "read_uncommitted", exact=True),
        "read_committed where it is not set",
    ),
    reading("max.partition.fetch.bytes", whole(0)),
    reading("max.poll.records", whole(1)),
    own("enable.auto.commit", "progress is kept in the Delta table, in the commit that holds the data"),
    own("interceptor.classes", "Spark's Kafka source refuses interceptors"),
    own("key.deserializer", _BYTES),
    own("value.deserializer", _BYTES),
    idle(
        "auto.commit.interval.ms",
        whole(0),
        "nothing is committed by itself; a group is shown each batch's end",
    ),
    idle("exclude.internal.topics", BOOL, "the bridge finds topics itself, and never Kafka's own"),
    idle("group.instance.id", NAME, _NO_MEMBER),
    idle("group.protocol", choice("classic", "consumer"), _NO_MEMBER),
    idle("group.remote.assignor", TEXT, _NO_MEMBER),
    idle("heartbeat.interval.ms", whole(0), _NO_MEMBER),
    idle("max.poll.interval.ms", whole(1), _NO_MEMBER),
    idle("partition.assignment.strategy", TEXT, _NO_MEMBER),
    idle("session.timeout.ms", whole(0), _NO_MEMBER),
    refused("internal.leave.group.on.close", _INTERNAL, "true"),
    refused("internal.throw.on.fetch.stable.offset.unsupported", _INTERNAL, "false"),
    refused("share.acknowledgement.mode", _NO_SHARE),
    refused("share.acquire.mode", _NO_SHARE),
)
