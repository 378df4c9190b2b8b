"""Sends the records of a publish range; a range whose task was stopped for a while is sent again."""

from __future__ import annotations

from collections.abc import Callable

from bridge.definition import DeliveryGuarantee, Topic
from bridge.delta.table import Table
from bridge.errors import ConcurrentRunError, KafkaError
from bridge.kafka.sink import ProduceResult
from bridge.pipelines.runtime.lease import Lease
from bridge.publish_progress import PublishRange

__all__ = ["produce_range"]


def produce_range(
    send: Callable[[], ProduceResult],
    publish_range: PublishRange,
    lease: Lease,
    topic: Topic,
    table: Table,
) -> ProduceResult:
    """Send the records of an open range by `send`, a Delivery's, and return when the broker has acknowledged them.

    A task that was stopped for seconds fails the range with ConcurrentRunError, as another run may have taken over.
    Unless one has, an at-least-once publish sends the range once more, in the same order. Raises ConcurrentRunError,
    and KafkaError that names the versions.
    """
    try:
        try:
            return send()
        except ConcurrentRunError:
            if topic.sink.delivery_guarantee is DeliveryGuarantee.EXACTLY_ONCE:
                raise
            lease.refresh()
            return send()
    except KafkaError as failed:
        versions = f"(versions {publish_range.first} to {publish_range.last} of table {table})"
        raise type(failed)(f"{failed} {versions}") from failed
