"""changes -encode-> records: each change becomes the key and value bytes of one record."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import reduce
from typing import cast

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from bridge.arrow_formats.record_encoder import RETRACTS, RecordEncoder
from bridge.columns import AFTER, BEFORE, POSITION, ROUTE, col, members, retracts
from bridge.definition import FormatSpec, Topic
from bridge.format_rules.invalid_texts import carries_invalid_texts, invalid_text
from bridge.formats import catalog
from bridge.formats.base import ChangeEncoder, Encoder
from bridge.schema import ArrayType, DataType, MapType, MetadataColumn, RowType, ScalarType

_KEY, _VALUE = "__key", "__value"


def encode(changes: DataFrame, topic: Topic) -> DataFrame:
    """Return one record per change: +I and +U give key and value, -D (and a -U without its +U) a tombstone.

    Columns: key binary, value binary, then `timestamp`, `headers` or `topic` where the schema has a column
    of that writable metadata (METADATA without VIRTUAL; Flink: Available Metadata; `header-list` gives `headers`),
    then `__position`. The sink's own headers (`topic.sink.headers`) follow the row's. The order and the partitions of
    the frame stay as they are. A row that the format cannot write fails the job when it is evaluated, naming the field
    and the option that decides.
    """
    value = F.when(~retracts(), _document(topic.value, col))
    encoded = _encoded(_with_key(changes, topic, col), topic.value, value, _VALUE)
    return encoded.select(*_record(topic, col), col(POSITION))


def leave_to_tasks(changes: DataFrame, topic: Topic, encoder: RecordEncoder) -> DataFrame:
    """Return what `encode` returns, but in place of key and value that of which `encoder` makes them in tasks: the
    columns of the table that it takes, under the names of `RecordEncoder.sources`, and RETRACTS."""
    rows = [
        (col(column).cast("string") if column in encoder.as_texts else col(column)).alias(name)
        for column, name in encoder.sources.items()
    ]
    return changes.select(*rows, retracts().alias(RETRACTS), *_metadata_of(topic, col), col(POSITION))


def encode_changes(sides: DataFrame, topic: Topic, *, pair: bool = False) -> DataFrame:
    """Return records of a CDC format for frames of `compact.net` or `compact.each`: key and metadata as in `encode`.

    An update is one message, with the row before and after; with `pair` the delete and create messages that Flink
    writes for it. `__position` is struct<version, step>, the order of a key's records. Where the topic has no key but
    the table has one, `__route` bigint is the same for all records of a row.
    """
    before, after, step = col(BEFORE), col(AFTER), F.lit(0)
    if "step" in members(sides, POSITION):
        step = col(POSITION).getField("step")
    elif pair:
        sides = _pairs(sides)
        before, after, step = (col("__side").getField(n) for n in ("before", "after", "step"))
    version = col(POSITION).getField("version").alias("version")
    rows = sides.select(
        before.alias(BEFORE),
        after.alias(AFTER),
        F.coalesce(after, before).alias("__row"),
        F.struct(version, step.alias("step")).alias(POSITION),
    )

    def row(name: str) -> Column:
        return col("__row").getField(name)

    def side(which: str) -> Column:
        document = _document(topic.value, lambda name: col(which).getField(name))
        return F.when(col(which).isNotNull(), document)

    frame = _with_key(rows, topic, row)
    encoder = cast("ChangeEncoder", _encoder(topic.value))
    frame = encoder.encode_change(frame, side(BEFORE), side(AFTER), _VALUE)
    frame = _with_constants(frame, topic.value)
    record = _record(topic, row)
    key = topic.schema.primary_key
    if topic.key is None and key:
        record.append(F.xxhash64(*(row(name) for name in key)).alias(ROUTE))
    return frame.select(*record, col(POSITION))


def _with_constants(frame: DataFrame, spec: FormatSpec) -> DataFrame:
    """Return the frame with the constants of the format before the brace that ends each message."""
    if not spec.constants:
        return frame
    text = json.dumps(spec.constants, ensure_ascii=False, separators=(",", ":"))
    end = F.lit(bytearray(f",{text[1:]}".encode()))
    return frame.withColumn(
        _VALUE, F.concat(F.substring(col(_VALUE), F.lit(1), F.length(col(_VALUE)) - 1), end)
    )


def _pairs(sides: DataFrame) -> DataFrame:
    """Return updates as two rows, a deletion and an insertion, and the other changes as they are."""
    type = sides.schema[BEFORE].dataType.simpleString()
    none = F.lit(None).cast(type)

    def one(before: Column, after: Column, step: int) -> Column:
        return F.struct(before.alias("before"), after.alias("after"), F.lit(step).alias("step"))

    both = col(BEFORE).isNotNull() & col(AFTER).isNotNull()
    two = F.when(both, F.array(one(col(BEFORE), none, 0), one(none, col(AFTER), 1)))
    return sides.select(
        F.explode(two.otherwise(F.array(one(col(BEFORE), col(AFTER), 0)))).alias("__side"), col(POSITION)
    )


def _with_key(frame: DataFrame, topic: Topic, of: Callable[[str], Column]) -> DataFrame:
    if topic.key is None:
        return frame.withColumn(_KEY, F.lit(None).cast("binary"))
    return _encoded(frame, topic.key, _document(topic.key, of), _KEY)


def _encoded(frame: DataFrame, spec: FormatSpec, row: Column, name: str) -> DataFrame:
    return cast("Encoder", _encoder(spec)).encode(frame, row, name)


def _record(topic: Topic, of: Callable[[str], Column]) -> list[Column]:
    """Return the columns of a record; `of` returns a column of the table by name."""
    return [col(_KEY).alias("key"), col(_VALUE).alias("value"), *_metadata_of(topic, of)]


def _metadata_of(topic: Topic, of: Callable[[str], Column]) -> list[Column]:
    writable = [c for c in topic.schema.metadata if not c.virtual and c.key in _WRITERS]
    metadata = {_WRITERS[c.key]: _metadata(c, of(c.name)) for c in writable}
    if topic.sink.headers:
        metadata["headers"] = _more_headers(metadata.get("headers"), topic.sink.headers)
    return [column.alias(name) for name, column in metadata.items()]


def _encoder(spec: FormatSpec) -> Encoder | ChangeEncoder:
    return catalog.get(spec.name).encoder(spec.row, spec.options)


def _document(spec: FormatSpec, of: Callable[[str], Column]) -> Column:
    fields = zip(spec.columns, spec.row.fields, strict=True)
    return F.struct(
        *(_checked(of(column), column, field.type, spec).alias(field.name) for column, field in fields)
    )


def _checked(value: Column, column: str, type: DataType, spec: FormatSpec) -> Column:
    """Return the value, which fails when it is evaluated where the format cannot carry a text of it."""
    invalid = None if carries_invalid_texts(spec) else _has_invalid_text(value, type)
    if invalid is None:
        return value
    failure = F.raise_error(F.lit(invalid_text(spec.name, column)))
    return F.when(F.coalesce(invalid, F.lit(False)), failure).otherwise(value)


def _has_invalid_text(value: Column, type: DataType) -> Column | None:
    """Return whether a text in `value` is no valid UTF-8, null or false where none is; None for types without texts."""
    if isinstance(type, RowType):
        found = [_has_invalid_text(value.getField(f.name), f.type) for f in type.fields]
        parts = [F.coalesce(condition, F.lit(False)) for condition in found if condition is not None]
        return reduce(Column.__or__, parts) if parts else None
    if isinstance(type, ArrayType):
        return _any_invalid(value, type.element)
    if isinstance(type, MapType):
        keys, values = (
            _any_invalid(F.map_keys(value), type.key),
            _any_invalid(F.map_values(value), type.value),
        )
        return keys if values is None else values if keys is None else keys | values
    assert isinstance(type, ScalarType)
    return ~F.is_valid_utf8(value) if type.is_string else None


def _any_invalid(items: Column, type: DataType) -> Column | None:
    if _has_invalid_text(F.lit(None), type) is None:
        return None

    def invalid(item: Column) -> Column:
        condition = _has_invalid_text(item, type)
        assert condition is not None
        return F.coalesce(condition, F.lit(False))

    return F.exists(items, invalid)


_HEADERS = "array<struct<key:string,value:binary>>"
_WRITERS = {"timestamp": "timestamp", "headers": "headers", "header-list": "headers", "topic": "topic"}


def _metadata(column: MetadataColumn, value: Column) -> Column:
    if column.key == "timestamp":
        value = value.cast("timestamp")
    elif column.key == "headers":
        value = F.map_entries(value.cast("map<string,binary>"))
    elif column.key == "header-list":
        value = value.cast(_HEADERS)
    return value


def _more_headers(own: Column | None, headers: tuple[tuple[str, str], ...]) -> Column:
    made = F.array(
        *(F.struct(F.lit(k).alias("key"), F.lit(v).cast("binary").alias("value")) for k, v in headers)
    )
    if own is None:
        return made
    none = F.array().cast(_HEADERS)
    return F.concat(F.coalesce(own.cast(_HEADERS), none), made)
