"""Flink's json format: its options, read once and checked, and the rows that a document can represent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from bridge.errors import DefinitionError, OptionError
from bridge.schema import MapType, RowType, ScalarType, refuse_fields, types


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
        """Read `options`: keys without a prefix, typed as format_options.py declares them; others are passed over.

        The map-null-key options have no effect: a Spark map has no null key (making one fails with NULL_MAP_KEY).
        Raises OptionError for a pair that excludes each other.
        """
        parsed = cls(
            fail_on_missing_field=options.get("fail-on-missing-field", False),
            ignore_parse_errors=options.get("ignore-parse-errors", False),
            iso_8601=options.get("timestamp-format.standard") == "ISO-8601",
            plain_decimals=options.get("encode.decimal-as-plain-number", False),
            ignore_null_fields=options.get("encode.ignore-null-fields", False),
        )
        if parsed.fail_on_missing_field and parsed.ignore_parse_errors:
            raise OptionError("fail-on-missing-field and ignore-parse-errors shouldn't both be true.")
        return parsed


def check_document(format: str, row: RowType, options: Mapping[str, Any]) -> None:
    """Raise what a decoder or an encoder would for `row` and `options` (see DeclaredFormat.rules)."""
    check(format, row)
    JsonOptions.of(options)


CONNECT_ENVELOPE = r'^\s*\{\s*"schema"\s*:'
"""A document of Kafka Connect's JsonConverter with `schemas.enable=true`, which writes the schema first."""


def check(format: str, row: RowType) -> None:
    """Raise DefinitionError where a JSON document of `format`, or Spark, cannot represent `row`."""
    refuse_fields(format, row)
    for part in types(row):
        if isinstance(part, MapType) and not (isinstance(part.key, ScalarType) and part.key.is_string):
            raise DefinitionError(
                f"JSON format doesn't support non-string as key type of map. The type is: {part.flink()}"
            )
