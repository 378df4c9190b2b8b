"""The options of the CDC formats in JSON: those of json that they share, and those that a format adds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from bridge.errors import OptionError
from bridge.format_rules import json_rows
from bridge.format_rules.json_options import JsonOptions, Numbers
from bridge.options.format_options import CDC_JSON
from bridge.options.formats import FORMATS
from bridge.schema import RowType

_JSON_ONLY = ("decode.json-parser.enabled", "fail-on-missing-field")


@dataclass(frozen=True)
class CdcOptions:
    """Flink's keys with `_` for `-` and `.`; `json` are the options by which fields are read and written."""

    json: JsonOptions
    schema_include: bool = False
    database_include: str | None = None
    table_include: str | None = None

    @classmethod
    def of(cls, format: str, options: Mapping[str, Any]) -> CdcOptions:
        """Read `options`: keys without the format's prefix, typed as format_options.py declares them.

        Raises OptionError for a key that `format` does not have, and what `JsonOptions.of` raises.
        """
        shared = {option.key for option in CDC_JSON}
        own = [option.key for option in FORMATS[format].options if option.key not in shared]
        foreign = next((key for key in _JSON_ONLY if key in options), None)
        if foreign is not None:
            raise OptionError(f"unknown option '{format}.{foreign}': it is one of format 'json'")
        own_values = {_field_name(key): options[key] for key in own if key in options}
        json = JsonOptions.of({k: v for k, v in options.items() if k not in own})
        return cls(replace(json, numbers=Numbers.TREES), **own_values)


def check_document(format: str, row: RowType, options: Mapping[str, Any]) -> None:
    """Raise what a decoder or an encoder would for `row` and `options` (see DeclaredFormat.rules)."""
    json_rows.check(row)
    CdcOptions.of(format, options)


def _field_name(key: str) -> str:
    return key.replace("-", "_").replace(".", "_")
