"""Decodes records of topics that are no upsert topics: every row of every document, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from bridge.columns import BAD, KIND, POSITION, col
from bridge.decode.column_names import DROPPED, NO_ROW, SKIP, TRUNCATE, UNAVAILABLE
from bridge.decode.computed_columns import with_computed_columns
from bridge.decode.documents import with_decoded
from bridge.decode.metadata import PARTS, parts_of, record_metadata
from bridge.definition import Topic
from bridge.formats.base import NEEDS_FULL_DECODE, TRUNCATES, DecodedColumn, Decoder
from bridge.options import METADATA, ROW_KIND, ROW_NUMBER
from bridge.rows import RowKind
from bridge.schema import MetadataColumn, PhysicalColumn

_KEY, _VALUE, _ENTRY, _PAIRED = "__key_document", "__value_document", "__entry", "__paired"
_PARTS = DecodedColumn()


def decode_events(
    records: DataFrame,
    topic: Topic,
    *,
    sequence: Sequence[str] = (),
    unpaired: bool = False,
    removes: Column | None = None,
    truncates: Column | None = None,
    fast: bool = False,
) -> DataFrame:
    """Return changes: the table's columns in DDL order, `__kind`, `__bad`, `__position` and `__unavailable`.

    Each row of each document is one change; `__position` is struct<topic, partition, offset, timestamp, row>, with the
    rows of a document numbered from 0. A record without a row (null value, a document that the format skips) is one
    change of kind 'skip', 'dropped' or 'truncate', so every record has a change; a bad one has `__bad` and no columns.
    With `fast`, `__bad` may be NEEDS_FULL_DECODE (see formats.base.FastPathDecoder).

    The key document fills the key columns first, then the value document its own: where both have a column
    ('value.fields-include' = 'ALL') the value's counts, as in Flink. A null key leaves them null, where Flink drops the
    record. `__unavailable` has the names of columns that keep their values in the table, null for none.

    Retractions have the columns of the key and `sequence`. With `unpaired` a before image is skipped whose after image
    has the same key, so that each retraction is a deletion: otherwise one that is as new as the row before.

    An add for whose columns `removes` is true needs no value in columns outside the key that are declared NOT
    NULL, and one for which `truncates` is true needs no key.

    A table without a PRIMARY KEY cannot delete a row: there a change other than +I is bad, unless a column
    METADATA FROM 'row-kind' records the kind of each row. Retractions have all columns then; with a `record_key` those
    that their document has, NOT NULL or not.
    """
    value, key = topic.value, topic.key
    identity, named = topic.schema.primary_key, topic.identity
    of_deletion = (*identity, *(name for name in sequence if name in value.columns))
    # With a key, even of all columns, an update needs no before image.
    retracted = value.columns if topic.record_key else of_deletion
    frame, by_value = with_decoded(records, value, col("value"), _VALUE, key=retracted, fast=fast)
    by_key = None
    if key is not None:
        # Where the value has a column, too, what the key document says of it does not count.
        needed = [
            f for f, column in zip(key.row.names, key.columns, strict=True) if column not in value.columns
        ]
        frame, by_key = with_decoded(frame, key, col("key"), _KEY, key=needed, fast=fast)
    rows = col(_VALUE).getField(_PARTS.rows)
    entries = frame.select("*", F.posexplode_outer(rows).alias("__row", _ENTRY))
    kind, bad = _kind_or_error(topic, by_value, by_key)
    entry = col(_ENTRY)
    unavailable = (
        entry.getField(_PARTS.unavailable) if by_value.has_unavailable else F.lit(None).cast("array<string>")
    )
    changes = entries.select(
        *_columns(topic, {name: col(name) for name in parts_of(records)}),
        kind.alias(KIND),
        bad.alias(BAD),
        F.struct(*PARTS[:4], F.coalesce(col("__row"), F.lit(0)).alias("row")).alias(POSITION),
        # The value's fields have the names of their columns: 'key.fields-prefix' is for keys alone.
        F.when(F.size(unavailable) > 0, unavailable).alias(UNAVAILABLE),
        *([_is_paired(topic, rows).alias(_PAIRED)] if unpaired else []),
    )
    retracts = col(KIND).isin([k.value for k in RowKind if k.retracts])
    adds = col(KIND).isNotNull() & ~col(KIND).isin(*NO_ROW)
    if identity:
        adds = adds & ~retracts
    if named:
        nameless = F.forall(F.array(*[col(name).isNull() for name in named]), lambda missing: missing)
        before = col(KIND) == RowKind.UPDATE_BEFORE.value
        needs_key = col(KIND).isin([k.value for k in RowKind]) & ~before
        if truncates is not None:
            needs_key = needs_key & ~(adds & truncates)
        unknown_row = F.when(needs_key & nameless, F.lit(_NO_ROW))
        changes = changes.withColumn(BAD, F.coalesce(col(BAD), unknown_row))
        # A before image without the key is skipped: the after image has the key of the row.
        skipped = nameless | col(_PAIRED) if unpaired else nameless
        changes = changes.withColumn(KIND, F.when(before & skipped, F.lit(SKIP)).otherwise(col(KIND)))
    return with_computed_columns(
        changes,
        topic,
        adds=adds,
        required=adds & ~retracts if topic.record_key else adds,
        retraction_columns={*identity, *sequence},
        added=[UNAVAILABLE],
        unavailable=col(UNAVAILABLE),
        removes=removes,
        truncates=truncates,
    )


def _is_paired(topic: Topic, rows: Column) -> Column:
    """Whether the next row of the document has the same key, as an after image has."""
    after, fields = (
        F.try_element_at(rows, col("__row") + 2),
        zip(topic.value.columns, topic.value.row.names, strict=True),
    )
    named = [name for column, name in fields if column in topic.schema.primary_key]
    row, next_row = col(_ENTRY).getField(_PARTS.row), after.getField(_PARTS.row)
    same = [row.getField(name).eqNullSafe(next_row.getField(name)) for name in named]
    is_after = F.coalesce(after.getField(_PARTS.kind) == RowKind.UPDATE_AFTER.value, F.lit(False))
    return reduce(and_, same, is_after)


def _kind_or_error(topic: Topic, by_value: Decoder, by_key: Decoder | None) -> tuple[Column, Column]:
    """Return (kind, error) of an entry; exactly one of the two is not null."""
    entry, error = col(_ENTRY), col(_VALUE).getField(_PARTS.error)
    needs_full_decode, truncates = error == NEEDS_FULL_DECODE, F.coalesce(error == TRUNCATES, F.lit(False))
    dropped = error.isNotNull() & ~truncates if by_value.skips_errors else F.lit(False)
    bad = F.when(needs_full_decode, error).when(
        error.isNotNull() & ~dropped & ~truncates, F.concat(F.lit("value: "), error)
    )
    if by_key is not None:
        key_error = col(_KEY).getField(_PARTS.error)
        several = F.size(col(_KEY).getField(_PARTS.rows)) > 1
        key_is_bad = key_error.isNotNull() & (key_error != NEEDS_FULL_DECODE)
        dropped = dropped | (F.lit(by_key.skips_errors) & key_is_bad)
        bad = F.coalesce(
            F.when(key_error == NEEDS_FULL_DECODE, key_error),
            bad,
            F.when(~dropped & key_error.isNotNull(), F.concat(F.lit("key: "), key_error)),
            F.when(several, F.lit("key: the document must hold exactly one row")),
        )
    row_kind = entry.getField(_PARTS.kind)
    if not topic.schema.primary_key and not any(column.key == ROW_KIND for column in topic.schema.metadata):
        bad = F.coalesce(
            bad, F.when(~dropped & (row_kind != RowKind.INSERT.value), F.concat(row_kind, F.lit(_NO_KEY)))
        )
    kind = (
        F.when(bad.isNotNull(), F.lit(None))
        .when(dropped, DROPPED)
        .when(truncates, TRUNCATE)
        .when(row_kind.isNull(), SKIP)
        .otherwise(row_kind)
    )
    return kind, bad


_NO_ROW = (
    "value: no column of the PRIMARY KEY is in the document, so its row is unknown (fields are matched by their exact "
    "names, as in Flink)"
)
_NO_KEY = (
    " in a table without a PRIMARY KEY: the row to change cannot be identified; declare a PRIMARY KEY, or a column "
    f"STRING METADATA FROM '{ROW_KIND}' VIRTUAL to write every change as a row"
)


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
    if column.key == ROW_NUMBER:
        return F.coalesce(col("__row"), F.lit(0))
    if column.key in METADATA:
        return record_metadata(column, parts)
    value = entry.getField(_PARTS.metadata).getField(column.key.removeprefix("value."))
    return value.cast(column.type.spark())
