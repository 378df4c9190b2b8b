"""Which pipelines consumers in Spark's tasks can read for (see `consumer_reader`)."""

from __future__ import annotations

from bridge.arrow_formats.catalog import arrow_decoder, change_arrow_decoder
from bridge.definition import BadRecords, Definition, Engine, Topic
from bridge.kafka.client_settings import java_reader_settings
from bridge.schema import PhysicalColumn, RowType, ScalarType

__all__ = ["unsupported"]


def unsupported(definition: Definition, topic: Topic) -> str | None:
    """Return why consumers cannot read for this pipeline, as the end of a sentence; None if they can.

    They read upsert topics, and CDC topics into tables with a key.
    """
    schema = topic.schema
    if topic.appends:
        return "the table has no PRIMARY KEY"
    if definition.bad_records is not BadRecords.FAIL:
        return "bad records are not to stop the ingest"
    if definition.gate is not None:
        return "the pipeline has a gate"
    if definition.merge.engine is Engine.SPARK:
        return "merge.engine is spark"
    special = [c.name for c in schema.columns if not isinstance(c, PhysicalColumn)]
    if special:
        return f"column {special[0]!r} is a metadata or computed column"
    rows = [c.name for c in schema.physical if c.name in schema.primary_key and isinstance(c.type, RowType)]
    if rows:
        return f"column {rows[0]!r} of the PRIMARY KEY is a ROW"
    if schema.watermark is not None and not _is_timestamp(topic, schema.watermark.column):
        return f"the watermark column {schema.watermark.column!r} is no timestamp"
    if java := java_reader_settings(topic):
        return f"'properties.{java[0]}' is for Spark's reader"
    if topic.parallelism is not None:
        return "scan.parallelism is for Spark's reader"
    return _undecoded(topic)


def _undecoded(topic: Topic) -> str | None:
    key = None if topic.key is None else arrow_decoder(topic.key)
    if isinstance(key, str):
        return key
    if topic.is_upsert:
        value = arrow_decoder(topic.value)
        return "the topic has no key format" if key is None else value if isinstance(value, str) else None
    missing = [c.name for c in topic.schema.physical if c.name not in topic.value.columns]
    if missing:
        return f"column {missing[0]!r} is in the record's key only"
    changes = change_arrow_decoder(topic.value, topic.schema.primary_key)
    return changes if isinstance(changes, str) else None


def _is_timestamp(topic: Topic, name: str) -> bool:
    column = next((c for c in topic.schema.physical if c.name == name), None)
    return (
        column is not None
        and isinstance(column.type, ScalarType)
        and column.type.name in ("TIMESTAMP", "TIMESTAMP_LTZ")
    )
