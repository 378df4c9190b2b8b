"""Settings of Flink's Kafka source that a DDL gives with the prefix of client settings."""

from __future__ import annotations

from bridge.options.properties.model import Setting, refused

__all__ = ["FLINK_ONLY"]

_FLINK = "it is a setting of Flink's source, not of Kafka's clients"

FLINK_ONLY: tuple[Setting, ...] = (
    refused("partition.discovery.interval.ms", f"{_FLINK}; use 'scan.topic-partition-discovery.interval'"),
    refused("client.id.prefix", f"{_FLINK}; use 'properties.client.id'"),
    refused("commit.offsets.on.checkpoint", f"{_FLINK}; remove it"),
    refused("register.consumer.metrics", f"{_FLINK}; remove it"),
)
