"""Sends the records of a publish range; a range whose task was stopped for a while is sent again."""

from __future__ import annotations

from bridge.definition import DeliveryGuarantee, Topic
from bridge.delta.table import Table
from bridge.errors import ConcurrentRunError, KafkaError
from bridge.kafka.sink import ProduceResult
from bridge.pipelines.publish.delivery import Delivery
from bridge.pipelines.publish.range_records import RangeRecords
from bridge.pipelines.runtime.lease import Lease
from bridge.publish_progress import PublishRange

__all__ = ["produce_range"]


def produce_range(
    records: RangeRecords,
    publish_range: PublishRange,
    delivery: Delivery,
    lease: Lease,
    topic: Topic,
    table: Table,
) -> ProduceResult:
    """Send the records of an open range and return when the broker has acknowledged them.

    A task that was stopped for seconds fails the range with ConcurrentRunError, as another run may have taken over.
    Unless one has, an at-least-once publish sends the range once more, in the same order. Raises ConcurrentRunError,
    and KafkaError that names the versions.
    """
    try:
        try:
            return delivery.send(records.rows, publish_range, records.encoder)
        except ConcurrentRunError:
            if topic.sink.delivery_guarantee is DeliveryGuarantee.EXACTLY_ONCE:
                raise
            lease.refresh()
            return delivery.send(records.rows, publish_range, records.encoder)
    except KafkaError as failed:
        versions = f"(versions {publish_range.first} to {publish_range.last} of table {table})"
        raise type(failed)(f"{failed} {versions}") from failed
