"""json's options: legal values, and Flink's messages for the others.

Rows that a JSON document cannot represent.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from bridge.errors import DefinitionError, OptionError, UnsupportedError
from bridge.format_rules.json_options import JsonOptions
from bridge.formats import catalog
from bridge.schema import ArrayType, DataType, MapType
from tests.formats.support import row_type, scalar


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"ignore-parse-errors": "abc"},
            "Unrecognized option for boolean: abc. Expected either true or false",
        ),
        (
            {"timestamp-format.standard": "iso-8601"},
            "Unsupported value 'iso-8601' for timestamp-format.standard. Supported values are [SQL, ISO-8601].",
        ),
        (
            {"map-null-key.mode": "invalid"},
            "Unsupported value 'invalid' for option map-null-key.mode. "
            "Supported values are [LITERAL, FAIL, DROP].",
        ),
        (
            {"fail-on-missing-field": True, "ignore-parse-errors": "TRUE"},
            "fail-on-missing-field and ignore-parse-errors shouldn't both be true.",
        ),
        ({"charset": "UTF-8"}, "unknown option 'json.charset'; json knows: decode.json-parser.enabled"),
    ],
)
def test_an_illegal_option_is_refused_with_flinks_message(options: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=re.escape(words)):
        JsonOptions.of(options)


def test_texts_and_typed_values_are_read_alike() -> None:
    texts = {"encode.ignore-null-fields": "True", "timestamp-format.standard": "ISO-8601"}
    typed = {"encode.ignore-null-fields": True, "timestamp-format.standard": "ISO-8601"}
    assert (
        JsonOptions.of(texts) == JsonOptions.of(typed) == JsonOptions(iso_8601=True, ignore_null_fields=True)
    )


def test_modes_of_null_keys_may_be_lower_case() -> None:
    assert JsonOptions.of({"map-null-key.mode": "fail", "map-null-key.literal": "none"}) == JsonOptions()


@pytest.mark.parametrize("side", ["decoder", "encoder"])
def test_a_map_with_other_keys_than_strings_is_refused_with_flinks_message(side: str) -> None:
    row = row_type(a=ArrayType(MapType(scalar("INT"), scalar("STRING"))))
    words = "JSON format doesn't support non-string as key type of map. The type is: MAP<INT, STRING>"
    with pytest.raises(DefinitionError, match=re.escape(words)):
        getattr(catalog.get("json"), side)(row, {})


@pytest.mark.parametrize("side", ["decoder", "encoder"])
def test_fields_that_differ_by_case_are_refused(side: str) -> None:
    row = row_type(r=row_type(id=scalar("INT"), ID=scalar("INT")))
    with pytest.raises(DefinitionError, match="fields 'id' and 'ID' differ by case at most"):
        getattr(catalog.get("json"), side)(row, {})


@pytest.mark.parametrize(
    ("type", "reason"),
    [(scalar("TIME", 0), "Delta has no TIME type"), (scalar("TIMESTAMP", 9), "Spark keeps microseconds")],
)
def test_types_without_a_counterpart_are_refused(type: DataType, reason: str) -> None:
    with pytest.raises(UnsupportedError, match=f"format 'json': {reason}"):
        catalog.get("json").decoder(row_type(t=type), {})
