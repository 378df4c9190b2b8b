"""Reads records with Spark's Kafka source, from exact start offsets and, for a batch, to exact end offsets."""

from __future__ import annotations

import json

from pyspark.sql import DataFrame, SparkSession

from bridge.definition import Topic
from bridge.kafka.admin import describe
from bridge.kafka.client_settings import for_spark
from bridge.offsets import Offsets

RECORDS = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "timestampType int, headers array<struct<key: string, value: binary>>"
)
"""The columns of records, in this order."""

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
"""Their names."""

_EARLIEST = -2  # Spark's notation for it in an offset vector


def stream(spark: SparkSession, topic: Topic, start: Offsets, *, max_offsets: int | None = None) -> DataFrame:
    """Return an unbounded frame of records from `start` on; within a partition they have the topic's order.

    Partitions that `start` does not name, and those added later, are read from their earliest offset, unless
    `scan.topic-partition-discovery.interval` is 0: then only the current partitions are read. Spark looks for
    new partitions with every batch, whatever the interval. `max_offsets` limits one batch over all partitions.
    Expired offsets fail the query (failOnDataLoss). A checkpoint takes precedence over `start`.
    """
    everything = Offsets({key: _EARLIEST for key in describe(topic).partitions} | dict(start.by_partition))
    options = _options(topic)
    if topic.discovery_interval_ms > 0:
        options["subscribe"] = ",".join(topic.names)
    else:
        options["assign"] = _assignment(everything)
    if max_offsets is not None:
        options["maxOffsetsPerTrigger"] = str(max_offsets)
    return spark.readStream.format("kafka").options(**options, startingOffsets=everything.to_json()).load()


def read(spark: SparkSession, topic: Topic, start: Offsets, end: Offsets) -> DataFrame:
    """Return the records from `start` (inclusive) to `end` (exclusive) of the partitions in `end`.

    A partition without a start is read from its earliest offset; one that starts at or after its end has no records.
    The range ends by position: transaction markers, aborted records and compacted offsets in it are neither returned
    nor waited for. Expired offsets fail the job, not this call.
    """
    ranges = {
        (name, partition): (_EARLIEST if at is None else at, stop)
        for name, partition, stop in end
        if (at := start.get(name, partition)) is None or at < stop
    }
    if not ranges:
        return spark.createDataFrame([], RECORDS)
    first = Offsets({key: low for key, (low, _) in ranges.items()})
    last = Offsets({key: high for key, (_, high) in ranges.items()})
    options = _options(topic) | {"assign": _assignment(first)}
    reader = spark.read.format("kafka").options(**options)
    return reader.options(startingOffsets=first.to_json(), endingOffsets=last.to_json()).load()


def _options(topic: Topic) -> dict[str, str]:
    options = {**for_spark(topic.properties), "failOnDataLoss": "true", "includeHeaders": "true"}
    if topic.parallelism is not None:
        # More tasks than partitions cut partitions into ranges; Spark never uses fewer tasks than partitions.
        options["minPartitions"] = str(topic.parallelism)
    return options


def _assignment(offsets: Offsets) -> str:
    """Spark's `assign`: {"topic": [0, 1]}."""
    tree: dict[str, list[int]] = {}
    for name, partition, _ in offsets:
        tree.setdefault(name, []).append(partition)
    return json.dumps(tree)
