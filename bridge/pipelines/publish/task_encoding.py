"""Which ranges the tasks that send them also encode (docs/adr/043); Spark SQL encodes the others."""

from __future__ import annotations

from bridge.arrow_formats.record_encoder import RecordEncoder, record_encoder
from bridge.definition import Definition, DeliveryGuarantee, Encoder, Topic
from bridge.kafka.sink import needs_no_key
from bridge.options import FORMATS
from bridge.pipelines.publish.plan_fingerprint import is_unique_in_range
from bridge.publish_progress import PublishRange
from bridge.ways import NotThisWay


def task_encoder(
    publish_range: PublishRange, definition: Definition, topic: Topic, *, in_order: bool = False
) -> RecordEncoder:
    """Return the encoder of a range. Raises NotThisWay where its tasks do not encode it.

    They do where that gives the same bytes, and where no record is moved or sorted by its key before it is sent.
    `in_order`: a single sender gets the records by their versions, so that none must be.
    """
    if definition.publish.encoder is Encoder.SPARK:
        raise NotThisWay("publish.encoder is spark")
    if not FORMATS[topic.value.name].insert_only:
        raise NotThisWay(f"the format is {topic.value.name}")
    if topic.sink.delivery_guarantee is DeliveryGuarantee.EXACTLY_ONCE:
        if not publish_range.files:
            raise NotThisWay("its records are sharded by key")
    elif not in_order and not needs_no_key(topic, unique_keys=is_unique_in_range(topic, publish_range)):
        raise NotThisWay("its records are sent by key")
    return record_encoder(topic)
