"""changes -encode-> records: each change becomes the key and value bytes of one record."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from bridge.columns import KIND, POSITION, col
from bridge.definition import FormatSpec, Topic
from bridge.formats import registry
from bridge.rows import RowKind
from bridge.schema import MetadataColumn

__all__ = ["encode"]


def encode(changes: DataFrame, topic: Topic) -> DataFrame:
    """One record per change: +I and +U give key and value, -D (and a -U that is left) a tombstone.

    Columns: key binary, value binary, then `timestamp`, `headers` or `topic` where the schema has a column
    of that writable metadata (METADATA without VIRTUAL; Flink: Available Metadata; `header-list` gives `headers`),
    then `__position`. Headers of the sink's own (`topic.sink.headers`) follow the row's. Rows keep their order and
    their place. A row the format cannot write fails the job when it is evaluated, naming the field and the option
    that decides.
    """
    gone = col(KIND).isin([kind.value for kind in RowKind if kind.retracts])
    key = F.lit(None).cast("binary") if topic.key is None else _document(topic.key)
    value = F.when(~gone, _document(topic.value))
    written = [c for c in topic.schema.metadata if not c.virtual and c.key in _WRITERS]
    metadata = {_WRITERS[c.key]: _metadata(c) for c in written}
    if topic.sink.headers:
        metadata["headers"] = _more_headers(metadata.get("headers"), topic.sink.headers)
    parts = {"key": key, "value": value, **metadata}
    return changes.select(*(column.alias(name) for name, column in parts.items()), col(POSITION))


def _document(spec: FormatSpec) -> Column:
    fields = [
        col(column).alias(field.name) for column, field in zip(spec.columns, spec.row.fields, strict=True)
    ]
    return registry.get(spec.name).encoder(spec.row, spec.options).encode(F.struct(*fields))


_HEADERS = "array<struct<key:string,value:binary>>"
_WRITERS = {"timestamp": "timestamp", "headers": "headers", "header-list": "headers", "topic": "topic"}


def _metadata(column: MetadataColumn) -> Column:
    value = col(column.name)
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
