"""What must hold before a pipeline touches anything."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from bridge.columns import RESERVED, refuse_reserved
from bridge.decode import decode
from bridge.definition import Definition
from bridge.delta.progress import IngestProgress
from bridge.delta.table import Table, create_table, exists, open_table
from bridge.errors import GapError
from bridge.kafka.admin import TopicState
from bridge.kafka.source import empty

__all__ = ["ingest_table", "refuse_gaps", "table_fields"]


def table_fields(spark: SparkSession, definition: Definition) -> list[T.StructField]:
    """Name and Spark type of every column of the table, in DDL order; computed columns as Spark types them.

    Raises DefinitionError for names the bridge keeps to itself.
    """
    refuse_reserved(definition.topic.schema.names)
    shape = decode(empty(spark), definition.topic, latest_only=False).schema
    return [f for f in shape if f.name not in RESERVED]


def ingest_table(spark: SparkSession, definition: Definition) -> Table:
    """The table to ingest into, created when it is not there; raises TableError when it is another's."""
    fields = table_fields(spark, definition)
    if not exists(spark, definition.delta):
        return create_table(spark, definition.delta, fields, pipeline=definition.name)
    return open_table(spark, definition.delta, fields)


def refuse_gaps(definition: Definition, state: TopicState, progress: IngestProgress) -> None:
    """Raise GapError when the topic no longer holds what comes next, or is not the topic it was."""
    heal = f"To rebuild the table from the topic as it is now, move {definition.delta} away and ingest again"
    for topic, wanted in progress.topic_ids.items():
        there = state.ids.get(topic)
        if there and wanted and there != wanted:
            raise GapError(
                f"topic {topic!r} was deleted and created again since the last run: the table follows topic id "
                f"{wanted}, there is {there}. Its offsets mean other records now. {heal}"
            )
    for topic, partition, offset in progress.offsets:
        first, end = state.earliest.get(topic, partition), state.end.get(topic, partition)
        if first is None or end is None:
            raise GapError(
                f"{topic}-{partition}: the table has records up to offset {offset}, but the partition is gone. {heal}"
            )
        if offset < first:
            raise GapError(
                f"{topic}-{partition}: the table has records up to offset {offset}, the topic starts at {first}: "
                f"{first - offset} offsets were deleted before they were read. {heal}"
            )
        if offset > end:
            raise GapError(
                f"{topic}-{partition}: the table has records up to offset {offset}, the topic ends at {end}. {heal}"
            )


def publish_fields(spark: SparkSession, definition: Definition) -> list[T.StructField]:
    """The columns a published record carries: all but VIRTUAL metadata and computed ones (as Flink's sinks)."""
    schema = definition.topic.schema
    left_out = {c.name for c in schema.metadata if c.virtual} | {c.name for c in schema.computed}
    return [f for f in table_fields(spark, definition) if f.name not in left_out]


def publish_table(spark: SparkSession, definition: Definition) -> Table:
    """The table to read, which must exist with all columns that are published; it may have more."""
    return open_table(spark, definition.delta, publish_fields(spark, definition), extra_columns=True)
