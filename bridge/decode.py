"""records -decode-> changes: what each record says about the row of its key.

In two steps, so that the records of a key can be compacted in between and superseded values are never parsed:

    changes = decode_values(latest_by_offset(decode_keys(records, topic), [*key, APART]), topic)
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from bridge.columns import BAD, KIND, POSITION, col
from bridge.definition import FormatSpec, Topic
from bridge.errors import DefinitionError
from bridge.formats import registry
from bridge.formats.base import DOUBTFUL, Decoded
from bridge.rows import RowKind
from bridge.schema import DataType, MetadataColumn, PhysicalColumn, ScalarType

__all__ = ["APART", "SKIP", "decode_keys", "decode_values"]

SKIP = "skip"
"""Kind of a record that says nothing: a format's ignore-parse-errors drops it, or its document holds no row."""

APART = "__apart"
"""Null for a record whose key is known, else unlike any other record's: group by it, and nothing bad is lost."""

_VALUE, _TIMESTAMP, _TIMESTAMP_TYPE, _HEADERS = "__value", "__timestamp", "__timestamp_type", "__headers"
_DECODED = "__decoded"
_PARTS = Decoded()


def decode_keys(records: DataFrame, topic: Topic, *, glance: bool = False) -> DataFrame:
    """Each record with its key taken apart; values are carried along as they are.

    Columns: the key's table columns, `__kind` (null, or 'skip' for a key that ignore-parse-errors drops), `__bad`
    (why the key cannot be used: null, undecodable, or not exactly one row), `__apart`, `__position`
    struct<topic, partition, offset, timestamp>, and what `decode_values` needs. Every record gives one row. With
    `glance`, `__bad` may be DOUBTFUL (see formats.base.Decoder); so it is with `decode_values`.
    """
    spec = _key_spec(topic)
    decoder = registry.get(spec.name).decoder(spec.row, spec.options)
    parts = ("topic", "partition", "offset", "timestamp")
    keyed = records.select(
        F.struct(*[F.col(part) for part in parts]).alias(POSITION),
        F.col("key").alias("__key"),
        F.col("value").alias(_VALUE),
        F.col("timestamp").alias(_TIMESTAMP),
        F.col("timestampType").alias(_TIMESTAMP_TYPE),
        F.col("headers").alias(_HEADERS),
        decoder.decode(F.col("key"), glance=glance).alias(_DECODED),
    )
    error, rows = col(_DECODED).getField(_PARTS.error), col(_DECODED).getField(_PARTS.rows)
    dropped = error.isNotNull() & (error != DOUBTFUL) if decoder.skips_errors else F.lit(False)
    bad = (
        F.when(error == DOUBTFUL, error)
        .when(
            col("__key").isNull(), F.lit("null key: a record of an upsert topic must say which row it means")
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
    carried = [col(name) for name in (POSITION, _VALUE, _TIMESTAMP, _TIMESTAMP_TYPE, _HEADERS)]
    return keyed.select(
        *columns,
        F.when(dropped, SKIP).alias(KIND),
        bad.alias(BAD),
        F.when(bad.isNotNull() | dropped, F.concat_ws("/", *place)).alias(APART),
        *carried,
    )


def decode_values(keyed: DataFrame, topic: Topic, *, glance: bool = False) -> DataFrame:
    """Changes: all table columns in DDL order, then `__kind`, `__bad`, `__position` and columns that a step in
    between has added to what `decode_keys` gave.

    A null value is '-D' with only the key columns set; any other is '+U' with the key columns from the key
    document (docs/adr/002), the other physical columns from the last row of the value document, metadata columns
    from the record, and computed columns over all of these. A value that cannot be decoded, or that lacks a
    column declared NOT NULL, sets `__bad` and no column; a document without a row is 'skip'. Nothing is dropped.
    """
    spec, key = topic.value, set(_key_spec(topic).columns)
    decoder = registry.get(spec.name).decoder(spec.row, spec.options)
    readable = F.when(col(BAD).isNull() & col(KIND).isNull(), col(_VALUE))
    decoded = keyed.withColumn(_DECODED, decoder.decode(readable, glance=glance))
    error, rows = col(_DECODED).getField(_PARTS.error), col(_DECODED).getField(_PARTS.rows)
    kind = (
        F.when(col(BAD).isNotNull(), F.lit(None))
        .when(col(KIND).isNotNull(), col(KIND))
        .when(col(_VALUE).isNull(), RowKind.DELETE.value)
        .when(error == DOUBTFUL, F.lit(None))
        .when(error.isNotNull(), F.lit(SKIP) if decoder.skips_errors else F.lit(None))
        .when(F.coalesce(F.size(rows), F.lit(0)) == 0, SKIP)
        .otherwise(RowKind.UPDATE_AFTER.value)
    )
    undecodable = F.when(error == DOUBTFUL, error)
    if not decoder.skips_errors:
        undecodable = undecodable.otherwise(F.concat(F.lit("value: "), error))
    row = F.try_element_at(rows, F.lit(-1)).getField(_PARTS.row)
    fields = {name: row.getField(f.name) for name, f in zip(spec.columns, spec.row.fields, strict=True)}
    added = [name for name in keyed.columns if name not in _carried(key)]
    judged = decoded.select(
        *_columns(topic, key, fields),
        kind.alias(KIND),
        F.coalesce(col(BAD), undecodable).alias(BAD),
        col(POSITION),
        *(col(name) for name in added),
    )
    return _finished(judged, topic, key, added)


def _finished(judged: DataFrame, topic: Topic, key: set[str], added: list[str]) -> DataFrame:
    """Computed columns, NOT NULL, and nothing but nulls where nothing is known."""
    upsert = col(KIND) == RowKind.UPDATE_AFTER.value
    for column in topic.schema.computed:
        judged = judged.withColumn(column.name, F.when(upsert, F.expr(column.spark)))
    bad = col(BAD)
    for name, type in _typed(topic):
        if not type.nullable:
            missing = F.lit(f"column {name!r} is NOT NULL, and the record has no value for it")
            bad = F.coalesce(bad, F.when(upsert & col(name).isNull(), missing))
    good = col(BAD).isNull()
    blanked = [
        F.when(good & (upsert | F.lit(name in key)), col(name)).alias(name) for name in topic.schema.names
    ]
    return judged.withColumn(BAD, bad).select(
        *blanked, F.when(good, col(KIND)).alias(KIND), col(BAD), col(POSITION), *(col(n) for n in added)
    )


def _key_spec(topic: Topic) -> FormatSpec:
    if topic.key is None:
        raise DefinitionError(
            f"'{topic.connector}' without a key format has no keys to decode: set 'key.format'"
        )
    return topic.key


def _carried(key: set[str]) -> set[str]:
    return key | {KIND, BAD, APART, POSITION, _VALUE, _TIMESTAMP, _TIMESTAMP_TYPE, _HEADERS}


def _typed(topic: Topic) -> list[tuple[str, DataType]]:
    return [(c.name, c.type) for c in topic.schema.columns if isinstance(c, PhysicalColumn | MetadataColumn)]


def _columns(topic: Topic, key: set[str], fields: Mapping[str, Column]) -> list[Column]:
    made = []
    for column in topic.schema.columns:
        if column.name in key:
            made.append(col(column.name))
        elif isinstance(column, PhysicalColumn):
            made.append(fields[column.name].alias(column.name))
        elif isinstance(column, MetadataColumn):
            made.append(_metadata(column).alias(column.name))
    return made


def _metadata(column: MetadataColumn) -> Column:
    """Flink's Available Metadata, cast to the type the DDL declares."""
    if column.key == "headers":
        entries = F.coalesce(col(_HEADERS), F.array().cast("array<struct<key:string,value:binary>>"))
        # A header may repeat; a map cannot: the last one counts.
        last = F.aggregate(
            entries,
            F.create_map().cast("map<string,binary>"),
            lambda found, h: F.map_concat(
                F.map_filter(found, lambda k, v: k != h.getField("key")),
                F.create_map(h.getField("key"), h.getField("value")),
            ),
        )
        return last.cast(column.type.spark())
    if column.key == "timestamp-type":
        names = {-1: "NoTimestampType", 0: "CreateTime", 1: "LogAppendTime"}
        pairs = [F.lit(part) for number, name in names.items() for part in (number, name)]
        return F.create_map(*pairs)[col(_TIMESTAMP_TYPE)]
    if column.key == "timestamp":
        return _truncated(col(_TIMESTAMP), column.type).cast(column.type.spark())
    return F.col(f"{POSITION}.{column.key}").cast(column.type.spark())


def _truncated(timestamp: Column, type: DataType) -> Column:
    """Kafka's timestamps are milliseconds; a type with fewer digits keeps fewer."""
    digits = type.parameters[0] if isinstance(type, ScalarType) and type.parameters else 3
    if digits >= 3:
        return timestamp
    unit = 10 ** (6 - digits)
    micros = F.unix_micros(timestamp)
    return F.timestamp_micros(micros - F.pmod(micros, F.lit(unit)))
