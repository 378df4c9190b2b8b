"""Why Spark could not read a topic: its own words name neither topic nor reason, so the broker is asked."""

from __future__ import annotations

import re

from pyspark.sql import SparkSession

from bridge.definition import Definition
from bridge.delta.ingest_progress import IngestProgress
from bridge.errors import REBUILD, BridgeError, GapError, KafkaError
from bridge.kafka import admin
from bridge.kafka.offset_availability import check_offsets_available
from bridge.pipelines.runtime import spark_errors

__all__ = ["explained_read_error"]

_KAFKA = "org.apache.kafka"
_KAFKA_ERROR = re.compile(r"org\.apache\.kafka\.[\w.$]+(: [^\n]*)?")
_LOSS = ("KAFKA_DATA_LOSS", "Some data may have been lost", "OffsetOutOfRangeException")


def explained_read_error(
    spark: SparkSession,
    failure: BaseException,
    definition: Definition,
    progress: IngestProgress,
    doing: str,
) -> BaseException:
    """What to raise for the `failure` that ended an ingest at `progress` while `doing`: itself, unless it is Spark's.

    Where Kafka is behind it, what has become of the topic and of our rights: GapError for records that are gone and a
    topic made anew, TopicMissingError, KafkaError for a login or a right that was taken away, else with Kafka's words.
    """
    if not spark_errors.is_engine_error(failure):
        return failure
    text, name, title = str(failure), definition.name, definition.topic.title
    lost = any(sign in text for sign in _LOSS)
    if lost or (_KAFKA in text and not spark_errors.is_out_of_memory_or_space(text)):
        try:
            state = admin.describe(admin.resolve(definition.topic))
            check_offsets_available(progress.offsets, state, progress.topic_ids)
        except BridgeError as told:
            return told
        if lost:
            return GapError(
                f"{name!r}: records were deleted from {title} before they were read. The table is as the last batch "
                f"left it; {REBUILD}"
            )
        kafka_error = _KAFKA_ERROR.search(text)
        return KafkaError(
            f"{name!r}: reading {title} failed: {kafka_error[0][:500] if kafka_error else _KAFKA}"
        )
    explained = spark_errors.explained_error(spark, failure, definition, doing)
    explained.__cause__ = failure
    return explained
