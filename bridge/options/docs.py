"""docs/options.md, written from the option values. `python -m bridge.options.docs` prints it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bridge.options.client import OVERRIDDEN, PREFIX
from bridge.options.formats import FORMATS
from bridge.options.metadata import METADATA
from bridge.options.model import KAFKA, UPSERT, Fate, Option, Side
from bridge.options.registry import declared

__all__ = ["markdown"]

_HEAD = """\
# Options

<!-- Written by `python -m bridge.options.docs`; a test keeps it equal. -->

Keys of `WITH (...)` in the topic's DDL, letter for letter as in Flink. An option is

- **honoured**: it does what it does in Flink;
- **translated**: it is read as something else, as the description says;
- **refused**: it is an error that says why;
- **not yet**: it is checked by Flink's rules, then refused until a later version can do it.

Refused and not-yet options may be given their own default. Unknown keys are errors. Durations are written
as in Flink: `1s`, `100 ms`, `5 min`, or a bare number of milliseconds.
"""


def markdown() -> str:
    """The whole page; the same text for the same option values."""
    parts = [_HEAD]
    for connector in (UPSERT, KAFKA):
        parts.append(f"## Connector `{connector}`\n\n{_table(declared(connector).values(), fates=True)}")
    parts.append(_clients())
    parts.append(_metadata())
    parts.append(
        "## Formats\n\nPrefixes: `json.` with `format`, `value.json.` with `value.format`, `key.json.` "
        "with `key.format`.\n"
    )
    for declared_format in FORMATS.values():
        mode = "insert-only" if declared_format.insert_only else "change data capture"
        why = f" {declared_format.reason}." if declared_format.reason else ""
        parts.append(
            f"### `{declared_format.name}`\n\n{declared_format.description} {mode.capitalize()}; "
            f"{declared_format.fate.value}.{why}\n"
        )
        if declared_format.options:
            parts.append(_table(declared_format.options, fates=declared_format.fate is Fate.HONOURED))
    return "\n".join(parts)


def _table(options: Iterable[Option[Any]], *, fates: bool) -> str:
    rows = ["| Key | Required | Default | Type | Fate | Description |", "|---|---|---|---|---|---|"]
    for option in options:
        default = "" if option.default is None else f"`{_cell(option.default)}`"
        fate = option.fate.value if fates else "not yet"
        about = "" if option.side is Side.BOTH else f"({option.side.value}) "
        why = f" {option.fate.value.capitalize()}: {option.reason}." if option.reason else ""
        required = "yes" if option.required else "no"
        kind = _cell(
            f"{option.kind.name}: {option.kind.legal}" if option.kind.name == "Enum" else option.kind.name
        )
        text = _cell(f"{about}{option.description}{why}")
        rows.append(f"| `{option.key}` | {required} | {default} | {kind} | {fate} | {text} |")
    return "\n".join(rows) + "\n"


def _clients() -> str:
    rows = "\n".join(f"| `{PREFIX}{key}` | {_cell(reason)} |" for key, reason in OVERRIDDEN.items())
    return (
        "## Kafka client settings that are refused\n\n`auto.offset.reset` may be given with the connector "
        "`kafka`."
        f"\n\n| Key | Because |\n|---|---|\n{rows}\n"
    )


def _metadata() -> str:
    rows = "\n".join(
        f"| `{m.key}` | {_cell(m.type)} | {m.casts} | {'yes' if m.writable else 'no'} | {m.description} |"
        for m in METADATA.values()
    )
    return (
        "## Metadata columns\n\n`column type METADATA FROM 'key'`. Read-only ones must be `VIRTUAL` in a "
        "table "
        "that is published.\n\n| Key | Type | Declared as | Writable | Description |\n"
        f"|---|---|---|---|---|\n{rows}\n\n{_format_metadata()}"
    )


def _format_metadata() -> str:
    rows = "\n".join(
        f"| `{name}` | {', '.join(f'`value.{key}` {type.flink()}' for key, type in declared.metadata.items())} |"
        for name, declared in FORMATS.items()
        if declared.metadata
    )
    return f"From the value's format, read-only:\n\n| Format | Keys |\n|---|---|\n{rows}\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    print(markdown(), end="")
