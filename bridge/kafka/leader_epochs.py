"""Reads the leader epoch of records, which Spark's source omits.

A partition's epochs never decrease along its offsets (KIP-101), so the offsets at which epochs begin are enough. A
binary search reads single records to find them: two in a batch without an election.
"""

from __future__ import annotations

import logging
import time
from contextlib import closing

import confluent_kafka
from confluent_kafka import Consumer
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bridge.columns import LEADER_EPOCH
from bridge.definition import Topic
from bridge.errors import KafkaError
from bridge.kafka.client import error_text
from bridge.kafka.client_settings import for_consumer
from bridge.offsets import Offsets

_TIMEOUT = 20.0

_log = logging.getLogger("bridge.kafka")

Beginning = tuple[str, int, int, "int | None"]
"""Topic, partition, the first offset of an epoch, the epoch."""


def with_leader_epochs(records: DataFrame, topic: Topic, start: Offsets, end: Offsets) -> DataFrame:
    """Add the column `leaderEpoch` (int) to the records from `start` to `end`, if a metadata column reads it.

    It is null for records without an epoch. Raises KafkaError when the broker does not answer in time.
    """
    if not any(column.key == "leader-epoch" for column in topic.schema.metadata):
        return records
    with closing(LeaderEpochs(topic)) as epochs:
        beginnings = [
            beginning
            for name, number, stop in end
            for beginning in epochs.of(name, number, start.get(name, number) or 0, stop)
        ]
    partition = F.struct("topic", "partition")
    newest_first = sorted(beginnings, key=lambda b: b[2], reverse=True)
    cases = [
        F.when(
            (partition == F.struct(F.lit(name).alias("topic"), F.lit(number).alias("partition")))
            & (F.col("offset") >= offset),
            F.lit(epoch).cast("int"),
        )
        for name, number, offset, epoch in newest_first
    ]
    return records.withColumn(LEADER_EPOCH, F.coalesce(*cases, F.lit(None).cast("int")))


class LeaderEpochs:
    """A consumer that reads single records; the caller closes it."""

    def __init__(self, topic: Topic) -> None:
        settings = {**for_consumer(topic), "enable.partition.eof": True, "fetch.wait.max.ms": 50}
        self._consumer = Consumer(settings, logger=_log)

    def of(self, topic: str, partition: int, start: int, end: int) -> list[Beginning]:
        """Return where epochs begin from `start` to `end` (exclusive), in order; [] without records."""
        beginnings: list[Beginning] = []
        record = self._first(topic, partition, start, end)
        while record is not None:
            offset, epoch = record
            beginnings.append((topic, partition, offset, epoch))
            record = self._next(topic, partition, offset, epoch, end)
        return beginnings

    def _next(
        self, topic: str, partition: int, offset: int, epoch: int | None, end: int
    ) -> tuple[int, int | None] | None:
        """Return offset and epoch of the first record after `offset` with another epoch; None when there is none."""
        step, low = 1, offset
        last = None
        while last is None and end - step > low:  # the last offsets may be transaction markers
            last = self._first(topic, partition, end - step, end)
            step *= 2
        if last is None or last[1] == epoch:
            return None
        high, first = last[0], last
        while low + 1 < high:
            middle = (low + high) // 2
            record = self._first(topic, partition, middle, end) or last
            if record[1] == epoch:
                low = max(middle, record[0])
            else:
                high, first = middle, record
        return first

    def _first(self, topic: str, partition: int, offset: int, end: int) -> tuple[int, int | None] | None:
        """Return offset and epoch of the first record at or after `offset`; None when there is none before `end`."""
        if offset >= end:
            return None
        self._consumer.assign([confluent_kafka.TopicPartition(topic, partition, offset)])
        deadline = time.monotonic() + _TIMEOUT
        while time.monotonic() < deadline:
            message = self._consumer.poll(0.2)
            if message is None:
                continue
            error = message.error()
            if error is not None:
                if error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                    return None
                raise KafkaError(
                    f"{topic}-{partition}: its leader epochs cannot be read: {error_text(error)}"
                )
            position = message.offset()
            assert position is not None
            return (position, message.leader_epoch()) if position < end else None
        raise KafkaError(
            f"{topic}-{partition}: its leader epochs cannot be read: no record at offset {offset} within "
            f"{_TIMEOUT:.0f} s"
        )

    def close(self) -> None:
        """Close the connection to the broker."""
        self._consumer.close()
