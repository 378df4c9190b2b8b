"""Decodes records of an upsert topic: each sets or deletes the row of its key.

Keys are decoded before values, so that a key's records can be compacted first and superseded values are not parsed:

    changes = decode_values(latest_by_offset(decode_keys(records, topic), [*key, BAD_KEY_ID]), topic)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from bridge.columns import BAD, KIND, LEADER_EPOCH, POSITION, col
from bridge.decode.column_names import BAD_KEY_ID, DROPPED, SKIP
from bridge.decode.computed_columns import with_computed_columns
from bridge.decode.documents import with_decoded
from bridge.decode.metadata import PARTS, parts_of, record_metadata
from bridge.definition import FormatSpec, Topic
from bridge.errors import DefinitionError
from bridge.formats.base import NEEDS_FULL_DECODE, DecodedColumn
from bridge.options import ROW_KIND, ROW_NUMBER
from bridge.rows import RowKind
from bridge.schema import MetadataColumn, PhysicalColumn

_VALUE = "__value"
_NOT_IN_POSITION = (*PARTS[4:], LEADER_EPOCH)
_CARRIED = {POSITION, _VALUE, *(f"__{part}" for part in _NOT_IN_POSITION)}
_DECODED = "__decoded"
_PARTS = DecodedColumn()


def decode_keys(records: DataFrame, topic: Topic, *, fast: bool = False) -> DataFrame:
    """Return one row per record, with its key decoded and its value as it is.

    Columns: the key's table columns, `__kind` (null, or 'dropped' for a key that ignore-parse-errors drops), `__bad`
    (the error of a key that is null, undecodable, without any field of the key, or not exactly one row),
    `__bad_key_id`, `__position` struct<topic, partition, offset, timestamp>, and the columns that `decode_values`
    needs. With `fast`, `__bad` may be NEEDS_FULL_DECODE (see formats.base.FastPathDecoder).
    """
    spec = _key_spec(topic)
    parts = PARTS[:4]
    keyed = records.select(
        F.struct(*[F.col(part) for part in parts]).alias(POSITION),
        F.col("key").alias("__key"),
        F.col("value").alias(_VALUE),
        *[F.col(part).alias(f"__{part}") for part in parts_of(records)[len(parts) :]],
    )
    keyed, decoder = with_decoded(keyed, spec, col("__key"), _DECODED, key=spec.row.names, fast=fast)
    error, rows = col(_DECODED).getField(_PARTS.error), col(_DECODED).getField(_PARTS.rows)
    dropped = error.isNotNull() & (error != NEEDS_FULL_DECODE) if decoder.skips_errors else F.lit(False)
    bad = (
        F.when(error == NEEDS_FULL_DECODE, error)
        .when(
            col("__key").isNull(),
            F.lit("null key: in an upsert topic the key identifies the row, and must not be null"),
        )
        .when(dropped, F.lit(None))
        .when(error.isNotNull(), F.concat(F.lit("key: "), error))
        .when(F.coalesce(F.size(rows), F.lit(0)) != 1, F.lit("key: the document must hold exactly one row"))
    )
    row = F.try_element_at(rows, F.lit(1)).getField(_PARTS.row)
    place = [F.col(f"{POSITION}.{part}").cast("string") for part in parts[:3]]
    columns = [
        row.getField(field.name).alias(name)
        for name, field in zip(spec.columns, spec.row.fields, strict=True)
    ]
    carried = [col(name) for name in keyed.columns if name in _CARRIED]
    return keyed.select(
        *columns,
        F.when(dropped, DROPPED).alias(KIND),
        bad.alias(BAD),
        F.when(bad.isNotNull() | dropped, F.concat_ws("/", *place)).alias(BAD_KEY_ID),
        *carried,
    )


def decode_values(
    keyed: DataFrame,
    topic: Topic,
    *,
    sequence: Sequence[str] = (),
    several: str | None = None,
    removes: Column | None = None,
    fast: bool = False,
) -> DataFrame:
    """Return changes: all table columns in DDL order, then `__kind`, `__bad`, `__position` and the columns that were
    added to the frame since `decode_keys`.

    A null value is '-D' with only the columns of the key and `sequence` set, and in a table without a PRIMARY KEY those
    of the record's metadata; any other is '+U' with the key columns from the key document (docs/adr/002), the other
    physical columns from the last row of the value document, metadata columns from the record, and computed columns
    over all of these. A value that cannot be decoded, or that lacks a column declared NOT NULL, sets `__bad` and no
    column; a document without a row is 'skip'. Every record has a change.
    With `fast`, `__bad` may be NEEDS_FULL_DECODE. With `several` a document of several rows is bad for this reason.
    One for whose columns `removes` is true needs no value in columns outside the key that are declared NOT NULL.
    """
    spec, key = topic.value, set(_key_spec(topic).columns)
    readable = F.when(col(BAD).isNull() & col(KIND).isNull(), col(_VALUE))
    valued, decoder = with_decoded(keyed, spec, readable, _DECODED, fast=fast)
    error, rows = col(_DECODED).getField(_PARTS.error), col(_DECODED).getField(_PARTS.rows)
    has_several = F.lit(several is not None) & (F.coalesce(F.size(rows), F.lit(0)) > 1)
    kind = (
        F.when(col(BAD).isNotNull() | has_several, F.lit(None))
        .when(col(KIND).isNotNull(), col(KIND))
        .when(col(_VALUE).isNull(), RowKind.DELETE.value)
        .when(error == NEEDS_FULL_DECODE, F.lit(None))
        .when(error.isNotNull(), F.lit(DROPPED) if decoder.skips_errors else F.lit(None))
        .when(F.coalesce(F.size(rows), F.lit(0)) == 0, SKIP)
        .otherwise(RowKind.UPDATE_AFTER.value)
    )
    undecodable = F.when(error == NEEDS_FULL_DECODE, error)
    if not decoder.skips_errors:
        undecodable = undecodable.otherwise(F.concat(F.lit("value: "), error))
    row = F.try_element_at(rows, F.lit(-1)).getField(_PARTS.row)
    fields = {name: row.getField(f.name) for name, f in zip(spec.columns, spec.row.fields, strict=True)}
    added = [name for name in keyed.columns if name not in key | {KIND, BAD, BAD_KEY_ID} | _CARRIED]
    changes = valued.select(
        *_columns(topic, key, fields, keyed.columns, kind),
        kind.alias(KIND),
        F.coalesce(col(BAD), undecodable, F.when(has_several, F.lit(several))).alias(BAD),
        col(POSITION),
        *(col(name) for name in added),
    )
    upsert = col(KIND) == RowKind.UPDATE_AFTER.value
    of_record = (column.name for column in topic.schema.metadata) if topic.appends else ()
    return with_computed_columns(
        changes,
        topic,
        adds=upsert,
        retraction_columns={*key, *sequence, *of_record},
        added=added,
        removes=removes,
    )


def _key_spec(topic: Topic) -> FormatSpec:
    if topic.key is None:
        raise DefinitionError(
            f"'{topic.connector}' without a key format has no keys to decode: set 'key.format'"
        )
    return topic.key


def _columns(
    topic: Topic, key: set[str], fields: Mapping[str, Column], carried: Collection[str], kind: Column
) -> list[Column]:
    made = []
    parts = {name: F.col(f"{POSITION}.{name}") for name in PARTS[:4]} | {ROW_KIND: kind, ROW_NUMBER: F.lit(0)}
    parts |= {name: col(f"__{name}") for name in _NOT_IN_POSITION if f"__{name}" in carried}
    for column in topic.schema.columns:
        if column.name in key:
            made.append(col(column.name))
        elif isinstance(column, PhysicalColumn):
            made.append(fields[column.name].alias(column.name))
        elif isinstance(column, MetadataColumn):
            made.append(record_metadata(column, parts).alias(column.name))
    return made
