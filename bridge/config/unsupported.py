"""Refuses what Flink accepts and this version of the bridge does not support."""

from __future__ import annotations

from bridge.definition import Definition, OnFailure, Topic
from bridge.errors import UnsupportedError
from bridge.schema import RowType, TableSchema


def refuse_topic(topic: Topic) -> None:
    """Raises UnsupportedError for the first feature of a resolved topic that is not supported."""
    refuse_key(topic.schema)


def refuse_key(schema: TableSchema) -> None:
    """Raises UnsupportedError for a PRIMARY KEY that is not supported."""
    for column in schema.physical:
        if column.name in schema.primary_key and isinstance(column.type, RowType):
            _refuse(
                "a ROW in the PRIMARY KEY",
                f"declare the fields of column '{column.name}' as separate columns",
            )


def refuse_definition(definition: Definition) -> None:
    """Raises UnsupportedError for the first feature of the pipeline that is not supported."""
    if definition.quality and definition.quality.on_failure is OnFailure.QUARANTINE:
        _refuse(
            "quality.on-failure: quarantine",
            "a check of the table cannot quarantine rows; set it to fail or warn. `quality: {gate: quarantine}` "
            "quarantines rows before an ingest writes them",
        )
    refuse_topic(definition.topic)


def _refuse(what: str, way_out: str) -> None:
    raise UnsupportedError(f"{what} is not supported in this version: {way_out}", what)
