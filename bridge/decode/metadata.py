"""Flink's Available Metadata: columns that are read from the record, not from its documents."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from bridge.columns import LEADER_EPOCH
from bridge.schema import DataType, MetadataColumn, ScalarType

PARTS = ("topic", "partition", "offset", "timestamp", "timestampType", "headers")
"""Columns of records that `record_metadata` reads."""

_ENTRIES = "array<struct<key:string,value:binary>>"


def parts_of(records: DataFrame) -> list[str]:
    """Return the columns of `records` that `record_metadata` needs."""
    return [*PARTS, *([LEADER_EPOCH] if LEADER_EPOCH in records.columns else [])]


def record_metadata(column: MetadataColumn, parts: Mapping[str, Column]) -> Column:
    """Return the value of a metadata column, cast to its declared type. `parts`: the record's columns by name.

    A record without headers gives an empty map or list, never null. Of equal header names `headers` has the last,
    `header-list` all, in their order. Timestamps are truncated to milliseconds, or to the declared precision below.
    """
    type = column.type.spark()
    if column.key == "headers":
        return _last_of_each(F.coalesce(parts["headers"], F.array().cast(_ENTRIES))).cast(type)
    if column.key == "header-list":
        return F.coalesce(parts["headers"], F.array().cast(_ENTRIES)).cast(type)
    if column.key == "timestamp-type":
        names = {-1: "NoTimestampType", 0: "CreateTime", 1: "LogAppendTime"}
        pairs = [F.lit(part) for number, name in names.items() for part in (number, name)]
        return F.create_map(*pairs)[parts["timestampType"]]
    if column.key == "timestamp":
        return _truncated(parts["timestamp"], column.type).cast(type)
    return parts[LEADER_EPOCH if column.key == "leader-epoch" else column.key].cast(type)


def _last_of_each(entries: Column) -> Column:
    """Return the map of headers: of equal names the last."""
    return F.aggregate(
        entries,
        F.create_map().cast("map<string,binary>"),
        lambda headers, h: F.map_concat(
            F.map_filter(headers, lambda k, v: k != h.getField("key")),
            F.create_map(h.getField("key"), h.getField("value")),
        ),
    )


def _truncated(timestamp: Column, type: DataType) -> Column:
    digits = type.parameters[0] if isinstance(type, ScalarType) and type.parameters else 3
    if digits >= 3:
        return timestamp
    unit = 10 ** (6 - digits)
    micros = F.unix_micros(timestamp)
    return F.timestamp_micros(micros - F.pmod(micros, F.lit(unit)))
