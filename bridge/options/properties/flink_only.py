"""Settings of Flink's own source that stand among Kafka's in a DDL."""

from __future__ import annotations

from bridge.options.properties.model import Setting, refused

__all__ = ["FLINK_ONLY"]

_FLINK = "it is a setting of Flink's own source, not of Kafka's client"

FLINK_ONLY: tuple[Setting, ...] = (
    refused("partition.discovery.interval.ms", f"{_FLINK}; use 'scan.topic-partition-discovery.interval'"),
    refused("client.id.prefix", f"{_FLINK}; use 'properties.client.id'"),
    refused("commit.offsets.on.checkpoint", f"{_FLINK}; leave it out"),
    refused("register.consumer.metrics", f"{_FLINK}; leave it out"),
)
