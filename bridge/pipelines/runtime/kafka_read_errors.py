"""Explains why Spark could not read a topic. Spark's message names neither topic nor reason: the broker is asked."""

from __future__ import annotations

import re

from pyspark.sql import SparkSession

from bridge.definition import Definition
from bridge.errors import REBUILD, BridgeError, GapError, KafkaError
from bridge.ingest_progress import IngestProgress
from bridge.kafka import admin
from bridge.kafka.offset_availability import check_offsets_available
from bridge.pipelines.runtime import spark_errors
from bridge.pipelines.runtime.executors import executors_error

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
    """Return the error to raise for the `failure` of an ingest at `progress`: itself, unless Spark raised it.

    Where Kafka caused it, the error is what the broker answers now: GapError for records that are gone and for a
    recreated topic, TopicMissingError, or KafkaError for a revoked login or authorization; else what an executor
    lacks now; else KafkaError with Kafka's message. Any other failure becomes a BridgeError that names `doing`.
    """
    if not spark_errors.is_engine_error(failure):
        return failure
    text, name, title = str(failure), definition.name, definition.topic.title
    if any(sign in text for sign in _LOSS):
        return gap_error(definition, progress)
    if _KAFKA in text and not spark_errors.is_out_of_memory_or_space(text):
        if (answer := _answer_of_broker(definition, progress)) is not None:
            return answer
        if (lacking := executors_error(spark, definition)) is not None:
            return lacking
        kafka_error = _KAFKA_ERROR.search(text)
        return KafkaError(
            f"{name!r}: reading {title} failed: {kafka_error[0][:500] if kafka_error else _KAFKA}"
        )
    explained = spark_errors.explained_error(spark, failure, definition, doing)
    explained.__cause__ = failure
    return explained


def gap_error(definition: Definition, progress: IngestProgress) -> BridgeError:
    """Return the error of an ingest at `progress` that did not find its records: what the broker answers now, or a
    GapError without offsets."""
    return _answer_of_broker(definition, progress) or GapError(
        f"{definition.name!r}: records were deleted from {definition.topic.title} before they were read. The table is "
        f"as the last batch left it; {REBUILD}"
    )


def _answer_of_broker(definition: Definition, progress: IngestProgress) -> BridgeError | None:
    """Return the error that asking for the records after `progress` gives; None where they seem to be there."""
    try:
        state = admin.describe(admin.resolve(definition.topic))
        check_offsets_available(progress.offsets, state, progress.topic_ids)
    except BridgeError as answer:
        return answer
    return None
