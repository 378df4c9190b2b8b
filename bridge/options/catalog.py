"""The catalog of options: all options by connector, and messages for unknown keys."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

from bridge.options.formats import FORMATS, DeclaredFormat
from bridge.options.general import GENERAL
from bridge.options.model import KAFKA, UPSERT, Option
from bridge.options.scan import SCAN
from bridge.options.sink import SINK

OPTIONS: tuple[Option[Any], ...] = (*GENERAL, *SCAN, *SINK)
"""Every option of the connectors, in the order of docs/options.md. A key may appear once per connector."""

_BY_CONNECTOR = {
    name: MappingProxyType({o.key: o for o in OPTIONS if name in o.connectors}) for name in (UPSERT, KAFKA)
}


def declared(connector: str) -> Mapping[str, Option[Any]]:
    """Returns the options of a connector by key, including declared prefixes (`properties.*`)."""
    return _BY_CONNECTOR[connector]


def format_options(prefix: str, declared_format: DeclaredFormat) -> dict[str, Option[Any]]:
    """Returns the options of a format by their keys in WITH, which start with `prefix` ('value.json.')."""
    return {prefix + option.key: option.named(prefix + option.key) for option in declared_format.options}


def unknown_key(
    connector: str, key: str, legal: Mapping[str, Option[Any]], prefixes: Mapping[str, str]
) -> str:
    """Explains why `key` is not legal and suggests a key. `prefixes` maps each format in use to its prefix."""
    other = KAFKA if connector == UPSERT else UPSERT
    if key in declared(other):
        hint = f"; with '{connector}' the PRIMARY KEY is the key" if key == "key.fields" else "; remove it"
        return f"'{key}' is an option of connector '{other}', not of '{connector}'{hint}"
    owner = _format_of(key)
    if owner:
        format_name, rest = owner
        if format_name in prefixes:
            return f"'{key}' has the wrong prefix for this table: write '{prefixes[format_name]}{rest}'"
        return f"'{key}' is an option of format '{format_name}', which this table does not use; remove it"
    near = get_close_matches(key.lower(), [k for k in legal if not k.endswith(".*")], 1, 0.6)
    hint = f"did you mean '{near[0]}'?" if near else f"the options are {', '.join(sorted(legal))}"
    return f"'{key}' is not an option of connector '{connector}'; {hint}"


def _format_of(key: str) -> tuple[str, str] | None:
    """Returns (format, option) if `key` is an option of a known format under any prefix."""
    bare = key.removeprefix("key.").removeprefix("value.")
    for name in sorted(FORMATS, key=len, reverse=True):
        rest = bare.removeprefix(f"{name}.")
        if rest != bare and any(rest == option.key for option in FORMATS[name].options):
            return name, rest
    return None
