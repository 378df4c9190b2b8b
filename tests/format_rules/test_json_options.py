"""Options of json that exclude each other, and rows that a JSON document cannot represent."""

from __future__ import annotations

import re

import pytest

from bridge.errors import DefinitionError, OptionError, UnsupportedError
from bridge.format_rules.json_options import JsonOptions
from bridge.formats import catalog
from bridge.schema import ArrayType, DataType, MapType
from tests.formats.support import row_type, scalar


def test_options_that_exclude_each_other_are_refused_with_flinks_message() -> None:
    with pytest.raises(OptionError, match="fail-on-missing-field and ignore-parse-errors shouldn't both be"):
        JsonOptions.of({"fail-on-missing-field": True, "ignore-parse-errors": True})


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
