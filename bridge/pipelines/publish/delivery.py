"""Delivery: how a publish sends ranges and records progress, at-least-once or exactly-once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from pyspark.sql import SparkSession

from bridge.definition import Definition
from bridge.delta.publish_log import PublishLog
from bridge.kafka.control import Control
from bridge.kafka.sink import ProduceResult
from bridge.pipelines.publish.at_least_once import AtLeastOnce
from bridge.pipelines.publish.destination import Destination
from bridge.pipelines.publish.exactly_once import ExactlyOnce
from bridge.pipelines.publish.range_records import DriverRecords, Records
from bridge.pipelines.publish.sharding import sharding_for
from bridge.publish_progress import PublishProgress, PublishRange

__all__ = ["Delivery", "delivery_for"]


class Delivery(Protocol):
    """Sends publish ranges and records progress.

    A run takes over once; then it records, sends and records again for each range:

        progress = delivery.take_over()
        progress = delivery.record(progress.opened(publish_range))
        result = delivery.send(records, progress.open)
        progress = delivery.record(progress.closed(lost=result.lost))
    """

    def take_over(self) -> PublishProgress | None:
        """Read the progress of earlier runs; None before the first. An open range must be sent again.

        Raises GapError when progress belongs to another topic or another key, or may be incomplete.
        """
        ...

    def take_over_for_resync(self) -> PublishProgress | None:
        """Read the progress of earlier runs for a resync, which does not need what is unreadable or lost and finishes
        no open range; end the transactions of earlier runs."""
        ...

    def record(self, progress: PublishProgress) -> PublishProgress:
        """Record progress with its key and topics, and return it as recorded; an open range without shards gets them.

        Raises ConcurrentRunError when another run has recorded, GapError when a topic was recreated since this run
        began to send to it.
        """
        ...

    def send(self, records: Records, publish_range: PublishRange) -> ProduceResult:
        """Send the records of a range whose opening is recorded; return when the broker has acknowledged all of them.

        Raises ConcurrentRunError when another run took over, KafkaError.
        """
        ...

    @property
    def send_in_driver(self) -> Callable[[DriverRecords], ProduceResult] | None:
        """What sends the records of a range from the driver, and raises as `send` does; None with transactions, whose
        shards are tasks."""
        ...


@contextmanager
def delivery_for(spark: SparkSession, definition: Definition, destination: Destination) -> Iterator[Delivery]:
    """The delivery that `sink.delivery-guarantee` names, inside the block."""
    topic = destination.topic
    log = PublishLog(spark, definition.run.checkpoint, definition.name)
    sharding = sharding_for(topic, spark.sparkContext.defaultParallelism)
    if sharding is None:
        yield AtLeastOnce(destination, log)
        return
    prefix = topic.sink.transactional_id_prefix
    assert prefix is not None
    with Control(topic, prefix, definition.name) as control:
        yield ExactlyOnce(spark, definition, destination, log, control, sharding)
