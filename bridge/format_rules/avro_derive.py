"""Derives the Avro schema of a row as Flink does (flink-avro, AvroSchemaConverter)."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Any

from bridge.errors import DefinitionError, OptionError
from bridge.schema import ArrayType, DataType, MapType, RowType, ScalarType, refuse_fields

_ROOT = "org.apache.flink.avro.generated.record"
_SCALARS = {
    "BOOLEAN": "boolean",
    "TINYINT": "int",
    "SMALLINT": "int",
    "INT": "int",
    "BIGINT": "long",
    "FLOAT": "float",
    "DOUBLE": "double",
}

Timestamps = dict[tuple[str, bool], str]
"""(type name, whether milliseconds are enough) to Avro's logical type."""

LEGACY_TIMESTAMPS: Timestamps = {
    ("TIMESTAMP", True): "timestamp-millis",
    ("TIMESTAMP", False): "timestamp-micros",
    ("TIMESTAMP_LTZ", True): "timestamp-millis",
    ("TIMESTAMP_LTZ", False): "timestamp-micros",
}
# Flink derives microseconds for more than three digits, and yet reads and writes milliseconds.
_TIMESTAMPS: Timestamps = {
    (name, few): f"{zone}timestamp-millis"
    for name, zone in (("TIMESTAMP", "local-"), ("TIMESTAMP_LTZ", ""))
    for few in (True, False)
}


def derive(row: RowType, *, legacy_timestamps: bool, nullable: bool = False) -> Any:
    """Return the schema as JSON. Nullable types are unions with null first and default to null.

    `legacy_timestamps` maps TIMESTAMP to Avro's instants, as Flink did before 1.19, and so are timestamps mapped that
    Flink's legacy mapping has no type for; `check` refuses these where Flink has an option for the new mapping.
    """
    deriving = _Deriving(LEGACY_TIMESTAMPS if legacy_timestamps else _TIMESTAMPS)
    record = deriving.record(row, _ROOT, "")
    return ["null", record] if nullable else record


def check(name: str, row: RowType, *, strict_legacy: bool = False) -> None:
    """Raise DefinitionError for types and names that format `name` cannot write or read, and for duplicate names.

    `strict_legacy`: refuse what Flink's legacy timestamp mapping refuses.
    """
    refuse_fields(name, row)
    for path, part in _parts(row, ""):
        if isinstance(part, MapType) and not (isinstance(part.key, ScalarType) and part.key.is_string):
            raise DefinitionError(
                "Avro format doesn't support non-string as key type of map. "
                f"The key type is: {part.key.flink()} (field '{path}')"
            )
        if isinstance(part, RowType):
            _check_names(name, part, path)
        if strict_legacy and isinstance(part, ScalarType):
            _check_legacy(name, part, path)
    derive(row, legacy_timestamps=True)


def _check_names(format: str, row: RowType, path: str) -> None:
    for name in row.names:
        if not _is_legal(name):
            raise DefinitionError(
                f"format '{format}': {(f'{path}.{name}' if path else name)!r} is no Avro name, which is made of "
                "letters, digits and underscores and does not begin with a digit; rename the field"
            )


def _check_legacy(format: str, type: ScalarType, path: str) -> None:
    way_out = f"(field '{path}'; set '{format}.timestamp_mapping.legacy' = 'false', which has types for it)"
    if type.name == "TIMESTAMP_LTZ":
        raise OptionError(f"Unsupported to derive Schema for type: {type.flink()} {way_out}")
    if type.name == "TIMESTAMP" and type.parameters[0] > 3:
        raise OptionError(
            f"Avro does not support TIMESTAMP type with precision: {type.parameters[0]}, it only supports "
            f"precision less than 3. {way_out}"
        )


def _is_legal(name: str) -> bool:
    """Return whether Avro's Java library accepts a name: letters of any script, one UTF-16 unit each."""
    categories = [unicodedata.category(c) for c in name]
    letters = ("Lu", "Ll", "Lt", "Lm", "Lo")
    return (
        bool(name)
        and all(ord(c) <= 0xFFFF for c in name)
        and (categories[0] in letters or name[0] == "_")
        and all(k in (*letters, "Nd") or c == "_" for c, k in zip(name, categories, strict=True))
    )


def _parts(type: DataType, path: str) -> Iterator[tuple[str, DataType]]:
    """Yield `type` and its parts, each with the path of its field."""
    yield path, type
    if isinstance(type, ArrayType):
        yield from _parts(type.element, path)
    elif isinstance(type, MapType):
        yield from _parts(type.key, path)
        yield from _parts(type.value, path)
    elif isinstance(type, RowType):
        for field in type.fields:
            yield from _parts(field.type, f"{path}.{field.name}" if path else field.name)


class _Deriving:
    def __init__(self, timestamps: Timestamps) -> None:
        self.timestamps = timestamps
        self.records: dict[str, str] = {}

    def record(self, row: RowType, name: str, path: str) -> Any:
        if name in self.records:
            raise DefinitionError(
                f"field '{path}': its record and that of field '{self.records[name]}' would both be called "
                f"'{name}' in Avro; rename one of the fields"
            )
        self.records[name] = path
        fields = []
        for field in row.fields:
            below = f"{path}.{field.name}" if path else field.name
            made = {"name": field.name, "type": self.schema(field.type, f"{name}_{field.name}", below)}
            fields.append(made | ({"default": None} if field.type.nullable else {}))
        space, _, short = name.rpartition(".")
        return {"type": "record", "name": short, "namespace": space, "fields": fields}

    def schema(self, type: DataType, name: str, path: str) -> Any:
        made = self._required(type, name, path)
        return ["null", made] if type.nullable else made

    def _required(self, type: DataType, name: str, path: str) -> Any:
        if isinstance(type, RowType):
            return self.record(type, name, path)
        if isinstance(type, ArrayType):
            return {"type": "array", "items": self.schema(type.element, name, path)}
        if isinstance(type, MapType):
            return {"type": "map", "values": self.schema(type.value, name, path)}
        assert isinstance(type, ScalarType)
        if type.name in ("TIMESTAMP", "TIMESTAMP_LTZ"):
            return {"type": "long", "logicalType": self.timestamps[type.name, type.parameters[0] <= 3]}
        if type.name == "DATE":
            return {"type": "int", "logicalType": "date"}
        if type.name == "DECIMAL":
            precision, scale = type.parameters
            return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
        if type.is_string:
            return "string"
        return "bytes" if type.is_binary else _SCALARS[type.name]
