"""Metadata that formats read from their documents, by Flink's keys and types."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from bridge.schema import ArrayType, DataType, MapType, ScalarType

__all__ = ["CANAL", "DEBEZIUM", "MAXWELL", "NONE", "OGG"]

NONE: Mapping[str, DataType] = MappingProxyType({})

_TEXT, _TIME = ScalarType("STRING"), ScalarType("TIMESTAMP_LTZ", (3,))
_TEXTS, _PAIRS, _TYPES = ArrayType(_TEXT), MapType(_TEXT, _TEXT), MapType(_TEXT, ScalarType("INT"))
DEBEZIUM: Mapping[str, DataType] = {
    "schema": _TEXT,
    "ingestion-timestamp": _TIME,
    "source.timestamp": _TIME,
    "source.database": _TEXT,
    "source.schema": _TEXT,
    "source.table": _TEXT,
    "source.properties": _PAIRS,
}
CANAL: Mapping[str, DataType] = {
    "database": _TEXT,
    "table": _TEXT,
    "sql-type": _TYPES,
    "pk-names": _TEXTS,
    "ingestion-timestamp": _TIME,
    "event-timestamp": _TIME,
}
MAXWELL: Mapping[str, DataType] = {
    "database": _TEXT,
    "table": _TEXT,
    "primary-key-columns": _TEXTS,
    "ingestion-timestamp": _TIME,
}
OGG: Mapping[str, DataType] = {
    "table": _TEXT,
    "primary-keys": _TEXTS,
    "ingestion-timestamp": _TIME,
    "event-timestamp": _TIME,
}
