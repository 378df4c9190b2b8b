"""Decodes rows that are no records: those of files and tables, whose columns have the names of the DDL's."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.columns import BAD, KIND, POSITION, col, row_fingerprint
from bridge.decode.computed_columns import with_computed_columns
from bridge.definition import Topic
from bridge.rows import RowKind
from bridge.schema import MetadataColumn, PhysicalColumn, quote

CORRUPT = "__corrupt"
"""Column of rows, where there is one: not null for a row that could not be read."""


def decode_rows(rows: DataFrame, topic: Topic, place: str) -> DataFrame:
    """Return changes: all table columns in DDL order, `__kind`, `__bad` and `__position`, as `decode_values` does.

    Each row is '+U'. It is bad if it could not be read, has no column of the key, has a text that is no value of its
    column, or lacks a value of a column declared NOT NULL. `rows` has the physical columns of the DDL, and may have
    those with METADATA, which are null otherwise: texts, or values that the column's type can hold. Computed columns
    are computed.

    `__position` is struct<topic, partition, offset, timestamp>: `place`, 0, a hash of the row and null. So it orders
    equal sequences alike, whenever the rows are read.
    """
    columns = [c for c in topic.schema.columns if isinstance(c, PhysicalColumn | MetadataColumn)]
    there = {f.name: f.dataType for f in rows.schema.fields}
    values = {c.name: _value(c, there.get(c.name)) for c in columns}
    none = F.lit(None).cast("string")
    unread = [
        F.when(
            col(c.name).isNotNull() & values[c.name].isNull(),
            F.lit(f"column {c.name!r} has a text that is no {c.type.flink()}"),
        )
        for c in columns
        if isinstance(there.get(c.name), T.StringType) and c.type.spark() != "STRING"
    ]
    corrupt = F.when(col(CORRUPT).isNotNull(), "it cannot be read") if CORRUPT in there else none
    typed = rows.select(
        *(value.alias(name) for name, value in values.items()),
        F.coalesce(corrupt, *unread, none).alias(BAD),
    )
    nameless = F.forall(F.array(*(col(name).isNull() for name in topic.identity)), lambda missing: missing)
    fields = [f for f in typed.schema.fields if f.name != BAD]
    at = F.struct(
        F.lit(place).alias("topic"),
        F.lit(0).alias("partition"),
        row_fingerprint(fields).alias("offset"),
        F.lit(None).cast("timestamp").alias("timestamp"),
    )
    bad = F.coalesce(col(BAD), F.when(nameless, "it has no value of the PRIMARY KEY"))
    changes = typed.withColumns({BAD: bad, POSITION: at}).withColumn(
        KIND, F.when(col(BAD).isNull(), RowKind.UPDATE_AFTER.value)
    )
    return with_computed_columns(
        changes,
        topic,
        adds=col(KIND).isNotNull(),
        retraction_columns=topic.identity,
        added=(),
    )


def _value(column: PhysicalColumn | MetadataColumn, type: T.DataType | None) -> Column:
    target = column.type.spark()
    if type is None:
        return F.lit(None).cast(target)
    if isinstance(type, T.StringType) and target != "STRING":
        return F.expr(f"try_cast({quote(column.name)} AS {target})")
    return col(column.name).cast(target)
