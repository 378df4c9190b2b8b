"""Flink's json format: its options, read once and checked, and the rows that a document can represent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from bridge.errors import DefinitionError, OptionError, UnsupportedError
from bridge.schema import ArrayType, DataType, MapType, RowType, ScalarType, unsupported

_STANDARDS = ("SQL", "ISO-8601")
_NULL_KEY_MODES = ("LITERAL", "FAIL", "DROP")
_BOOLEANS = {"true": True, "false": False}


class Numbers(Enum):
    """What Flink makes of numbers that are not in quotes."""

    TEXTS = "texts"
    """Their texts are parsed: json."""
    VALUES = "values"
    """The JSON parser has numbers of its own, of which -0 is 0: avro."""
    TREES = "trees"
    """Those with a point or an exponent are BigDecimals without zeros at their end first: CDC formats."""


@dataclass(frozen=True)
class JsonOptions:
    """Flink's keys with `_` for `-` and `.`; defaults are Flink's."""

    fail_on_missing_field: bool = False
    ignore_parse_errors: bool = False
    iso_8601: bool = False
    plain_decimals: bool = False
    ignore_null_fields: bool = False
    numbers: Numbers = Numbers.TEXTS

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> JsonOptions:
        """Read `options` (keys without the `json.` prefix; texts or typed values).

        Raises OptionError for an unknown key, an illegal value, or a pair that excludes each other.
        """
        unknown = sorted(set(options) - set(_READERS))
        if unknown:
            raise OptionError(
                f"unknown option 'json.{unknown[0]}'; json knows: {', '.join(sorted(_READERS))}"
            )
        read: dict[str, Any] = {}
        for key, value in options.items():
            name, reader = _READERS[key]
            read[name] = reader(key, _plain(value))
        # Checked and without effect: a Spark map has no null key (making one fails with NULL_MAP_KEY), so all
        # map-null-key modes write the same; and json-parser.enabled chooses between parsers of Flink's.
        read.pop("", None)
        parsed = cls(**read)
        if parsed.fail_on_missing_field and parsed.ignore_parse_errors:
            raise OptionError("fail-on-missing-field and ignore-parse-errors shouldn't both be true.")
        return parsed


def check_document(format: str, row: RowType, options: Mapping[str, Any]) -> None:
    """Raise what a decoder or an encoder would for `row` and `options` (see DeclaredFormat.rules)."""
    check(row)
    JsonOptions.of(options)


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


def _boolean(key: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if str(value).lower() not in _BOOLEANS:
        raise OptionError(
            f"option 'json.{key}': Unrecognized option for boolean: {value}. "
            "Expected either true or false(case insensitive)"
        )
    return _BOOLEANS[str(value).lower()]


def _standard(key: str, value: Any) -> bool:
    if value not in _STANDARDS:
        raise OptionError(
            f"Unsupported value '{value}' for {key}. Supported values are [{', '.join(_STANDARDS)}]."
        )
    return bool(value == "ISO-8601")


def _null_key_mode(key: str, value: Any) -> str:
    if str(value).upper() not in _NULL_KEY_MODES:
        raise OptionError(
            f"Unsupported value '{value}' for option {key}. "
            f"Supported values are [{', '.join(_NULL_KEY_MODES)}]."
        )
    return str(value).upper()


def _text(key: str, value: Any) -> str:
    return str(value)


_READERS: dict[str, tuple[str, Callable[[str, Any], Any]]] = {
    "fail-on-missing-field": ("fail_on_missing_field", _boolean),
    "ignore-parse-errors": ("ignore_parse_errors", _boolean),
    "timestamp-format.standard": ("iso_8601", _standard),
    "map-null-key.mode": ("", _null_key_mode),
    "map-null-key.literal": ("", _text),
    "encode.decimal-as-plain-number": ("plain_decimals", _boolean),
    "encode.ignore-null-fields": ("ignore_null_fields", _boolean),
    "decode.json-parser.enabled": ("", _boolean),
}


CONNECT_ENVELOPE = r'^\s*\{\s*"schema"\s*:'
"""A document of Kafka Connect's JsonConverter with `schemas.enable=true`, which writes the schema first."""


def types(type: DataType) -> Iterator[DataType]:
    """Yield `type` and all its parts."""
    yield type
    if isinstance(type, ArrayType):
        yield from types(type.element)
    elif isinstance(type, MapType):
        yield from types(type.key)
        yield from types(type.value)
    elif isinstance(type, RowType):
        for field in type.fields:
            yield from types(field.type)


def check(row: RowType) -> None:
    """Raise DefinitionError where a JSON document, or Spark, cannot represent `row`."""
    reason = unsupported(row)
    if reason:
        raise UnsupportedError(f"format 'json': {reason}", what="column type")
    for part in types(row):
        if isinstance(part, MapType) and not (isinstance(part.key, ScalarType) and part.key.is_string):
            raise DefinitionError(
                f"JSON format doesn't support non-string as key type of map. The type is: {part.flink()}"
            )
        if isinstance(part, RowType):
            _check_names(part)


def _check_names(row: RowType) -> None:
    seen: dict[str, str] = {}
    for name in row.names:
        other = seen.setdefault(name.lower(), name)
        if other is not name:
            raise DefinitionError(
                f"fields {other!r} and {name!r} differ by case at most, which Delta cannot store side by side; "
                "rename one of them"
            )
