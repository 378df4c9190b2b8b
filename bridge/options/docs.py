"""docs/options.md, written from the option values. `python -m bridge.options.docs` prints it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bridge.options.catalog import declared
from bridge.options.formats import FORMATS
from bridge.options.metadata import METADATA
from bridge.options.model import KAFKA, UPSERT, Option, Side, Support
from bridge.options.properties import PREFIX, SETTINGS, Client, Setting, Treatment

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
        parts.append(
            f"## Connector `{connector}`\n\n{_table(declared(connector).values(), show_support=True)}"
        )
    parts.append(_client_settings())
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
            f"{declared_format.support.value}.{why}\n"
        )
        if declared_format.options:
            parts.append(
                _table(declared_format.options, show_support=declared_format.support is Support.HONOURED)
            )
    return "\n".join(parts)


def _table(options: Iterable[Option[Any]], *, show_support: bool) -> str:
    rows = ["| Key | Required | Default | Type | Support | Description |", "|---|---|---|---|---|---|"]
    for option in options:
        default = "" if option.default is None else f"`{_cell(option.default)}`"
        support = option.support.value if show_support else "not yet"
        about = "" if option.side is Side.BOTH else f"({option.side.value}) "
        why = f" {option.support.value.capitalize()}: {option.reason}." if option.reason else ""
        required = "yes" if option.required else "no"
        kind = _cell(
            f"{option.kind.name}: {option.kind.legal}" if option.kind.name == "Enum" else option.kind.name
        )
        text = _cell(f"{about}{option.description}{why}")
        rows.append(f"| `{option.key}` | {required} | {default} | {kind} | {support} | {text} |")
    return "\n".join(rows) + "\n"


_CLIENTS = """\
## Kafka client settings

Spark's reader is Kafka's Java client; everything else (sending, offsets, topics, groups) is done with librdkafka. A
setting is

- **honoured**: the clients named under *Used by* are told of it;
- **translated**: librdkafka is told of it under another name or as another value;
- **set by the bridge**: giving it is an error;
- **refused**: an error that says why, unless it is given the value in brackets, which is what the clients do anyway;
- **without effect**: legal and ignored, and `bridge validate` says so.

A value that one of its clients does not take, and a name that is none of these, are errors when the file is loaded.

| Key | Used by | Legal | Support | Notes |
|---|---|---|---|---|
"""


def _client_settings() -> str:
    return _CLIENTS + "".join(map(_client_row, sorted(SETTINGS.values(), key=lambda setting: setting.key)))


def _client_row(setting: Setting) -> str:
    legal, support = setting.kind.legal, setting.treatment.value
    if setting.treatment in (Treatment.REFUSED, Treatment.SET_BY_BRIDGE):
        legal = ""
    if setting.default:
        support += f" (`{setting.default}`)"
    if setting.connectors != (UPSERT, KAFKA):
        support += f" (connector `{', '.join(setting.connectors)}`)"
    renamed = setting.librdkafka not in (None, setting.key)
    notes = "; ".join(
        filter(None, [f"librdkafka: `{setting.librdkafka}`" if renamed else "", setting.reason])
    )
    cells = (f"`{PREFIX}{setting.key}`", _used_by(setting), legal, support, notes)
    return f"| {' | '.join(map(_cell, cells))} |\n"


def _used_by(setting: Setting) -> str:
    if setting.clients >= {Client.READER, Client.ADMIN}:
        return "both" if Client.PRODUCER in setting.clients else "source"
    return "source" if Client.READER in setting.clients else "sink" if setting.clients else ""


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
