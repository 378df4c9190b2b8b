"""The options of the CDC formats: those of json, and a few of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bridge.errors import OptionError
from bridge.format_rules.json_options import JsonOptions

__all__ = ["CdcOptions"]

_OWN = {
    "debezium-json": ("schema-include",),
    "canal-json": ("database.include", "table.include"),
}
"""The keys that a format has besides those of json."""


@dataclass(frozen=True)
class CdcOptions:
    """Flink's keys with `_` for `-` and `.`; `json` says how fields are read and written."""

    json: JsonOptions
    schema_include: bool = False
    database_include: str | None = None
    table_include: str | None = None

    @classmethod
    def of(cls, format: str, options: Mapping[str, Any]) -> CdcOptions:
        """Read `options`: keys without the format's prefix, typed as format_options.py declares them.

        Raises OptionError for a key that `format` does not have and for what JsonOptions refuses.
        """
        own = _OWN.get(format, ())
        foreign = sorted({"fail-on-missing-field", "decode.json-parser.enabled"} & set(options))
        if foreign:
            raise OptionError(f"unknown option '{format}.{foreign[0]}': it is one of format 'json'")
        mine = {_name(key): options[key] for key in own if key in options}
        return cls(JsonOptions.of({k: v for k, v in options.items() if k not in own}), **mine)


def _name(key: str) -> str:
    return key.replace("-", "_").replace(".", "_")
