"""Flink's Available Metadata: columns read from the record around the documents."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from bridge.columns import LEADER_EPOCH
from bridge.schema import DataType, MetadataColumn, ScalarType

__all__ = ["PARTS", "parts_of", "record_metadata"]

PARTS = ("topic", "partition", "offset", "timestamp", "timestampType", "headers")
"""Columns of records that `record_metadata` reads."""

_ENTRIES = "array<struct<key:string,value:binary>>"


def parts_of(records: DataFrame) -> list[str]:
    """The columns of `records` to carry along for `record_metadata`."""
    return [*PARTS, *([LEADER_EPOCH] if LEADER_EPOCH in records.columns else [])]


def record_metadata(column: MetadataColumn, parts: Mapping[str, Column]) -> Column:
    """The value of a metadata column, cast to the type its DDL declares. `parts`: the record's columns by name.

    No headers are an empty map or list, never null. Of equal header names `headers` has the last, `header-list` all,
    in their order. Timestamps are milliseconds; a type with fewer digits keeps fewer.
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
    """A header may repeat; a map cannot."""
    return F.aggregate(
        entries,
        F.create_map().cast("map<string,binary>"),
        lambda found, h: F.map_concat(
            F.map_filter(found, lambda k, v: k != h.getField("key")),
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
