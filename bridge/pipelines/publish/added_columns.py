"""Columns that were added to a table after its DDL was written, and what a publish does with them."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import types as T

from bridge.columns import data_type
from bridge.definition import Definition, Topic
from bridge.delta.table import Table
from bridge.delta.table_checks import refuse_schema_mismatch
from bridge.errors import TableError
from bridge.schema import PhysicalColumn, RowField, RowType


def with_added_columns(
    definition: Definition, topic: Topic, table: Table, present: T.StructType
) -> tuple[Topic, Table]:
    """Adapt `topic` and `table`, which are as the DDL declares them, to a table of schema `present`.

    Columns that the DDL lacks are left out; under `publish.added-columns: carry` they are the last ones of the value
    document, in the table's order. Raises TableError when a column of the DDL is missing or has another type, naming
    it, and for an added column of a type that Flink does not have.
    """
    refuse_schema_mismatch(table.target, present, table.fields, "unused")
    if not definition.publish.carry:
        return topic, table
    added = [f for f in present.fields if f.name not in topic.schema.names]
    if not added:
        return topic, table
    fields = [_field(table, f) for f in added]
    row = RowType((*topic.value.row.fields, *fields))
    value = replace(topic.value, row=row, columns=(*topic.value.columns, *(f.name for f in fields)))
    columns = (*topic.schema.columns, *(PhysicalColumn(f.name, f.type) for f in fields))
    topic = replace(topic, value=value, schema=replace(topic.schema, columns=columns))
    return topic, replace(table, fields=(*table.fields, *added))


def _field(table: Table, field: T.StructField) -> RowField:
    type = data_type(field.dataType)
    if type is None:
        raise TableError(
            f"table {table}: column {field.name!r} was added with type {field.dataType.simpleString()}, which Flink's "
            "formats cannot write; drop it, or set publish.added-columns: ignore"
        )
    return RowField(field.name, type)
