"""Records of any other topic: every row that every document tells of, in order."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from bridge.columns import BAD, KIND, POSITION, col
from bridge.decode.column_names import DROPPED, SKIP, UNAVAILABLE
from bridge.decode.computed_columns import finished
from bridge.decode.documents import decoded
from bridge.decode.metadata import PARTS, parts_of, record_metadata
from bridge.definition import Topic
from bridge.formats.base import NEEDS_FULL_DECODE, DecodedColumn, Decoder
from bridge.options import METADATA, ROW_KIND
from bridge.rows import RowKind
from bridge.schema import MetadataColumn, PhysicalColumn

__all__ = ["decode_events"]

_KEY, _VALUE, _ENTRY = "__key_document", "__value_document", "__entry"
_PARTS = DecodedColumn()


def decode_events(records: DataFrame, topic: Topic, *, fast: bool = False) -> DataFrame:
    """Changes: the table's columns in DDL order, `__kind`, `__bad`, `__position` and `__unavailable`.

    Each row of each document is one change; `__position` is struct<topic, partition, offset, timestamp, row>, `row`
    counting the rows of a document from 0. A record without a row (null value, a document the format skips) is one
    'skip' or 'dropped', so no record goes unseen; a bad one is one row with `__bad` and no columns. With `fast`,
    `__bad` may be DOUBTFUL (see formats.base.Decoder).

    The key document fills the key columns first, then the value document its own: where both have a column
    ('value.fields-include' = 'ALL') the value wins, as in Flink. A null key leaves them null, where Flink drops the
    record. `__unavailable` names columns whose present value is to be kept, null for none.

    A table without a PRIMARY KEY cannot take a row away: there a change other than +I is bad, unless a column
    METADATA FROM 'row-kind' says what each row is.
    """
    value, key = topic.value, topic.key
    identity = topic.schema.primary_key
    frame, by_value = decoded(records, value, col("value"), _VALUE, key=identity, fast=fast)
    by_key = None
    if key is not None:
        frame, by_key = decoded(frame, key, col("key"), _KEY, fast=fast)
    rows = col(_VALUE).getField(_PARTS.rows)
    entries = frame.select("*", F.posexplode_outer(rows).alias("__row", _ENTRY))
    kind, bad = _judgement(topic, by_value, by_key)
    entry = col(_ENTRY)
    kept = (
        entry.getField(_PARTS.unavailable) if by_value.has_unavailable else F.lit(None).cast("array<string>")
    )
    changes = entries.select(
        *_columns(topic, {name: col(name) for name in parts_of(records)}),
        kind.alias(KIND),
        bad.alias(BAD),
        F.struct(*PARTS[:4], F.coalesce(col("__row"), F.lit(0)).alias("row")).alias(POSITION),
        # Names of the value's fields are those of its columns: 'key.fields-prefix' is for keys alone.
        F.when(F.size(kept) > 0, kept).alias(UNAVAILABLE),
    )
    retracts = col(KIND).isin([k.value for k in RowKind if k.retracts])
    adds = col(KIND).isNotNull() & ~col(KIND).isin(SKIP, DROPPED)
    if identity:
        adds = adds & ~retracts
        nameless = F.forall(F.array(*[col(name).isNull() for name in identity]), lambda missing: missing)
        before = col(KIND) == RowKind.UPDATE_BEFORE.value
        unknown_row = F.when(col(KIND).isin([k.value for k in RowKind]) & ~before & nameless, F.lit(_NO_ROW))
        changes = changes.withColumn(BAD, F.coalesce(col(BAD), unknown_row))
        # A former state that leaves the key out is as good as none: the new state beside it says which row it is.
        changes = changes.withColumn(KIND, F.when(before & nameless, F.lit(SKIP)).otherwise(col(KIND)))
    return finished(changes, topic, adds=adds, told=identity, added=[UNAVAILABLE], unknown=col(UNAVAILABLE))


def _judgement(topic: Topic, by_value: Decoder, by_key: Decoder | None) -> tuple[Column, Column]:
    """(kind, why it is bad) of an entry; at most one of the two is set."""
    entry, error = col(_ENTRY), col(_VALUE).getField(_PARTS.error)
    doubtful, dropped = (
        error == NEEDS_FULL_DECODE,
        error.isNotNull() if by_value.skips_errors else F.lit(False),
    )
    bad = F.when(doubtful, error).when(error.isNotNull() & ~dropped, F.concat(F.lit("value: "), error))
    if by_key is not None:
        wrong = col(_KEY).getField(_PARTS.error)
        several = F.size(col(_KEY).getField(_PARTS.rows)) > 1
        dropped = dropped | (F.lit(by_key.skips_errors) & wrong.isNotNull() & (wrong != NEEDS_FULL_DECODE))
        bad = F.coalesce(
            F.when(wrong == NEEDS_FULL_DECODE, wrong),
            bad,
            F.when(~dropped & wrong.isNotNull(), F.concat(F.lit("key: "), wrong)),
            F.when(several, F.lit("key: the document must hold exactly one row")),
        )
    said = entry.getField(_PARTS.kind)
    if not topic.schema.primary_key and not _has_row_kind(topic):
        bad = F.coalesce(
            bad, F.when(~dropped & (said != RowKind.INSERT.value), F.concat(said, F.lit(_NO_KEY)))
        )
    kind = (
        F.when(bad.isNotNull(), F.lit(None)).when(dropped, DROPPED).when(said.isNull(), SKIP).otherwise(said)
    )
    return kind, bad


_NO_ROW = (
    "value: no column of the PRIMARY KEY is in the document, so it does not say which row it means (fields are matched "
    "by their exact names, as in Flink)"
)
_NO_KEY = (
    " in a table without a PRIMARY KEY: no row can be found to change; declare a PRIMARY KEY, or a column "
    f"STRING METADATA FROM '{ROW_KIND}' VIRTUAL to keep every change as a row"
)


def _has_row_kind(topic: Topic) -> bool:
    return any(column.key == ROW_KIND for column in topic.schema.metadata)


def _columns(topic: Topic, parts: Mapping[str, Column]) -> list[Column]:
    row = col(_ENTRY).getField(_PARTS.row)
    fields: dict[str, Column] = {}
    if topic.key is not None:
        document = F.try_element_at(col(_KEY).getField(_PARTS.rows), F.lit(1)).getField(_PARTS.row)
        fields |= _fields(document, topic.key.columns, topic.key.row.names)
    fields |= _fields(row, topic.value.columns, topic.value.row.names)
    made = []
    for column in topic.schema.columns:
        if isinstance(column, PhysicalColumn):
            made.append(fields[column.name].alias(column.name))
        elif isinstance(column, MetadataColumn):
            made.append(_metadata(column, parts).alias(column.name))
    return made


def _fields(row: Column, columns: tuple[str, ...], names: tuple[str, ...]) -> dict[str, Column]:
    return {column: row.getField(name) for column, name in zip(columns, names, strict=True)}


def _metadata(column: MetadataColumn, parts: Mapping[str, Column]) -> Column:
    entry = col(_ENTRY)
    if column.key == ROW_KIND:
        return entry.getField(_PARTS.kind)
    if column.key in METADATA:
        return record_metadata(column, parts)
    told = entry.getField(_PARTS.metadata).getField(column.key.removeprefix("value."))
    return told.cast(column.type.spark())
