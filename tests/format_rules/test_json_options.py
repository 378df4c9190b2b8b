"""json's options: legal values, and Flink's messages for the others."""

from __future__ import annotations

import re
from typing import Any

import pytest

from bridge.errors import OptionError
from bridge.format_rules.json_options import JsonOptions


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
