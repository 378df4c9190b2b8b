"""Formats by name and their options. What a format does is in `bridge/formats`.

Option keys have no prefix here; `given` puts 'value.json.', 'key.json.' or 'json.' before them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

from bridge.errors import OptionError
from bridge.options import format_options as options
from bridge.options.model import Option, Support
from bridge.schema import ArrayType, DataType, MapType, ScalarType

__all__ = ["FORMATS", "DeclaredFormat", "declared_format"]

_NO_METADATA: Mapping[str, DataType] = MappingProxyType({})


@dataclass(frozen=True)
class DeclaredFormat:
    """A format's name, whether all its documents are inserts, its options and its metadata."""

    name: str
    description: str
    options: tuple[Option[Any], ...] = ()
    insert_only: bool = True
    support: Support = Support.NOT_YET
    reason: str = ""
    metadata: Mapping[str, DataType] = field(default_factory=lambda: _NO_METADATA, hash=False)
    """Readable as METADATA FROM 'value.<key>'."""

    @property
    def changelog_mode(self) -> str:
        """As Flink prints it in messages."""
        return "[INSERT]" if self.insert_only else "[INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE]"


_TEXT, _TIME = ScalarType("STRING"), ScalarType("TIMESTAMP_LTZ", (3,))
_TEXTS, _PAIRS, _TYPES = ArrayType(_TEXT), MapType(_TEXT, _TEXT), MapType(_TEXT, ScalarType("INT"))
_DEBEZIUM = {
    "schema": _TEXT,
    "ingestion-timestamp": _TIME,
    "source.timestamp": _TIME,
    "source.database": _TEXT,
    "source.schema": _TEXT,
    "source.table": _TEXT,
    "source.properties": _PAIRS,
}
_CANAL = {
    "database": _TEXT,
    "table": _TEXT,
    "sql-type": _TYPES,
    "pk-names": _TEXTS,
    "ingestion-timestamp": _TIME,
    "event-timestamp": _TIME,
}
_MAXWELL = {
    "database": _TEXT,
    "table": _TEXT,
    "primary-key-columns": _TEXTS,
    "ingestion-timestamp": _TIME,
}
_OGG = {
    "table": _TEXT,
    "primary-keys": _TEXTS,
    "ingestion-timestamp": _TIME,
    "event-timestamp": _TIME,
}


def _cdc(
    name: str,
    text: str,
    keys: tuple[Option[Any], ...],
    metadata: Mapping[str, DataType],
    support: Support = Support.HONOURED,
) -> DeclaredFormat:
    return DeclaredFormat(name, text, keys, insert_only=False, support=support, metadata=metadata)


FORMATS: Mapping[str, DeclaredFormat] = MappingProxyType(
    {
        declared.name: declared
        for declared in (
            DeclaredFormat("json", "One JSON object per document.", options.JSON, support=Support.HONOURED),
            DeclaredFormat("csv", "One line of separated values.", options.CSV, support=Support.HONOURED),
            DeclaredFormat("raw", "The bytes of a single column.", options.RAW, support=Support.HONOURED),
            DeclaredFormat(
                "avro", "Avro with the schema derived from the table.", options.AVRO, support=Support.HONOURED
            ),
            DeclaredFormat(
                "avro-confluent",
                "Avro whose schemas are in a registry.",
                options.REGISTRY,
                support=Support.HONOURED,
            ),
            _cdc("debezium-json", "Debezium change events in JSON.", options.DEBEZIUM_JSON, _DEBEZIUM),
            _cdc(
                "debezium-avro-confluent",
                "Debezium change events in Avro.",
                options.REGISTRY,
                _NO_METADATA,
            ),
            _cdc("canal-json", "Canal change events.", options.CANAL_JSON, _CANAL),
            _cdc("maxwell-json", "Maxwell change events.", options.CDC_JSON, _MAXWELL),
            _cdc("ogg-json", "Oracle GoldenGate change events.", options.CDC_JSON, _OGG),
            DeclaredFormat(
                "protobuf",
                "Protocol Buffers.",
                support=Support.REFUSED,
                reason="Flink reads it with Java classes made from the .proto file, which are not here",
            ),
        )
    }
)


def declared_format(option: str, name: str) -> DeclaredFormat:
    """The format called `name` in `option`. Raises OptionError for an unknown or a refused one."""
    declared = FORMATS.get(name)
    if declared is None:
        near = get_close_matches(name.lower(), FORMATS, 1, 0.7)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        raise OptionError(f"'{option}': format '{name}' is not known. Known are {', '.join(FORMATS)}{hint}")
    if declared.support is Support.REFUSED:
        raise OptionError(f"'{option}' = '{name}' is refused: {declared.reason}")
    return declared
