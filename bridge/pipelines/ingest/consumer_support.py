"""Which pipelines consumers in Spark's tasks can read for (see `consumer_reader`)."""

from __future__ import annotations

from bridge.arrow_formats.arrow_types import arrow_type
from bridge.arrow_formats.catalog import arrow_decoder, change_arrow_decoder
from bridge.backend import Feature, backend_of
from bridge.definition import Definition, Engine, Reader, Topic
from bridge.delta.append_files import FileAppends
from bridge.delta.table import Table
from bridge.kafka.client_settings import java_reader_settings
from bridge.kafka.record_metadata import METADATA_TYPES
from bridge.schema import Column, MetadataColumn, PhysicalColumn, RowType, ScalarType
from bridge.ways import NotThisWay, told

CONFIGURED = "set by ingest.reader"

_MILLISECONDS = 3
"""Digits of the precision of Kafka's timestamps; with fewer they are truncated."""


def refuse_unsupported(definition: Definition, topic: Topic) -> None:
    """Raise NotThisWay where consumers cannot read for this pipeline.

    They read upsert topics, CDC topics into tables with a key, and topics of rows into tables without one, if the
    table accepts the files of their tasks (see `append_files`).
    """
    schema = topic.schema
    if definition.delta.apply_as_delete is not None:
        raise NotThisWay("only Spark judges a change by delta.apply-as-delete")
    if definition.delta.apply_as_truncate is not None:
        raise NotThisWay("only Spark judges a change by delta.apply-as-truncate")
    if definition.delta.first_row or definition.delta.ignore_delete:
        key = "first-row" if definition.delta.first_row else "ignore-delete"
        raise NotThisWay(f"consumers keep the last change of each key, a deletion, too (delta.{key})")
    if definition.kept_columns and definition.gate is not None:
        raise NotThisWay(f"only Spark gives the gate the values that rows keep (delta.{definition.keeps_by})")
    if definition.delta.soft_delete is not None:
        raise NotThisWay("only Spark keeps the values of deleted rows (delta.soft-delete)")
    if definition.delta.append_history is not None:
        raise NotThisWay("only Spark gives each change its kind and place (delta.history)")
    if definition.merge.engine is Engine.SPARK and not topic.appends:
        raise NotThisWay("merge.engine is spark")
    special = [c.name for c in schema.columns if not (isinstance(c, PhysicalColumn) or _is_given(c, topic))]
    if special:
        raise NotThisWay(f"column {special[0]!r} is a metadata or computed column")
    rows = [c.name for c in schema.physical if c.name in schema.primary_key and isinstance(c.type, RowType)]
    if rows:
        raise NotThisWay(f"column {rows[0]!r} of the PRIMARY KEY is a ROW")
    if schema.watermark is not None and not _is_timestamp(topic, schema.watermark.column):
        raise NotThisWay(f"the watermark column {schema.watermark.column!r} is no timestamp")
    if java := java_reader_settings(topic):
        raise NotThisWay(f"'properties.{java[0]}' is for Spark's reader")
    if topic.parallelism is not None:
        raise NotThisWay("scan.parallelism is for Spark's reader")
    _refuse_undecoded(topic, definition.delta.sequence_by)


def refuse_unsupported_table(definition: Definition, topic: Topic, table: Table) -> FileAppends | None:
    """Raise NotThisWay where the table accepts no batches of consumers, or its compute runs none. Return what appends
    to one without a key."""
    if (reason := backend_of(table.spark).can(Feature.KAFKA_IN_TASKS)) is not None:
        raise NotThisWay(reason)
    checks = [c.broken for c in definition.constraints if c.not_null is None and c.partition is None]
    if checks:
        raise NotThisWay(f"only Spark judges a row by what the table asks of it ({checks[0]})")
    return FileAppends(table) if topic.appends else None


def preview(definition: Definition, topic: Topic, table: Table | None) -> str:
    """What reads the next batch, with the reason: `consumer`, or `spark`. What a batch itself needs is not known."""
    if definition.reader is Reader.SPARK:
        return told("spark", CONFIGURED)
    try:
        refuse_unsupported(definition, topic)
        if table is not None:
            refuse_unsupported_table(definition, topic, table)
    except NotThisWay as reason:
        return told("spark", reason)
    return told("consumer")


def _is_given(column: Column, topic: Topic) -> bool:
    """Whether tasks give a column from the record itself, in the type of its key."""
    from_record = topic.appends or topic.is_upsert
    if not isinstance(column, MetadataColumn) or not from_record or column.key not in METADATA_TYPES:
        return False
    type = column.type
    return (
        isinstance(type, ScalarType)
        and arrow_type(type) == METADATA_TYPES[column.key]
        and (column.key != "timestamp" or type.parameters >= (_MILLISECONDS,))
    )


def _refuse_undecoded(topic: Topic, sequence: tuple[str, ...]) -> None:
    if topic.key is not None:
        arrow_decoder(topic.key)
    if topic.appends:
        arrow_decoder(topic.value)
    elif topic.is_upsert:
        if topic.key is None:
            raise NotThisWay("the topic has no key format")
        arrow_decoder(topic.value)
    else:
        missing = [c.name for c in topic.schema.physical if c.name not in topic.value.columns]
        if missing:
            raise NotThisWay(f"column {missing[0]!r} is in the record's key only")
        change_arrow_decoder(topic.value, (*topic.schema.primary_key, *sequence))


def _is_timestamp(topic: Topic, name: str) -> bool:
    columns: tuple[PhysicalColumn | MetadataColumn, ...] = (*topic.schema.physical, *topic.schema.metadata)
    column = next((c for c in columns if c.name == name), None)
    return (
        column is not None
        and isinstance(column.type, ScalarType)
        and column.type.name in ("TIMESTAMP", "TIMESTAMP_LTZ")
    )
