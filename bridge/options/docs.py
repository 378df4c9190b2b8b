"""Generates docs/options.md from the declared options: `python -m bridge.options.docs > docs/options.md`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bridge.options.formats import FORMATS
from bridge.options.metadata import METADATA
from bridge.options.model import KAFKA, UPSERT, Option, Side
from bridge.options.properties import PREFIX, SETTINGS, Client, Setting, Treatment
from bridge.options.table_options import declared

_HEAD = """\
# Options

<!-- Written by `python -m bridge.options.docs`; a test keeps it equal. -->

This page lists the keys of `WITH (...)` in the topic's DDL, spelled exactly as in Flink. The column *Support* says how
the bridge treats an option or a Kafka client setting:

- **honoured**: it takes effect, as in Flink unless the description says otherwise;
- **translated**: it takes effect under another name or as another value, which the description gives;
- **without effect**: its value is checked and then ignored; the description says why, and for a client setting
  `bridge validate` prints a warning;
- **refused**: setting it is an error that gives the reason. Setting it to its default, if it has one, is accepted;
- **set by the bridge**: setting it is an error, because the bridge sets it itself (client settings only).

Unknown keys are errors. Durations are written as in Flink: `1s`, `100 ms`, `5 min`, or a number of milliseconds without
a unit. Options marked (source) affect ingests only, options marked (sink) affect publishes only.
"""


def markdown() -> str:
    """Returns the page. The text depends on the declared options only."""
    parts = [_HEAD]
    for connector in (UPSERT, KAFKA):
        parts.append(f"## Connector `{connector}`\n\n{_table(declared(connector).values())}")
    parts.append(_client_settings())
    parts.append(_metadata())
    parts.append(
        "## Formats\n\nThe option that names the format determines the prefix of the format's options: `json.` with "
        "`format`, `value.json.` with `value.format`, `key.json.` with `key.format`.\n"
    )
    for declared_format in FORMATS.values():
        mode = "insert-only" if declared_format.insert_only else "change data capture"
        why = f" {declared_format.reason}." if declared_format.reason else ""
        parts.append(
            f"### `{declared_format.name}`\n\n{declared_format.description} {mode.capitalize()}; "
            f"{declared_format.support.value}.{why}\n"
        )
        if declared_format.options:
            parts.append(_table(declared_format.options))
    return "\n".join(parts)


def _table(options: Iterable[Option[Any]]) -> str:
    rows = ["| Key | Required | Default | Type | Support | Description |", "|---|---|---|---|---|---|"]
    for option in options:
        default = "" if option.default is None else f"`{_cell(option.default)}`"
        support = option.support.value
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

Spark reads the topic with Kafka's Java client. The bridge sends records, creates topics and looks up offsets with
librdkafka. *Used by* says in which direction a setting takes effect: `source` (ingest), `sink` (publish) or both.

A *translated* setting has another name or another value in librdkafka, as the notes say. A *refused* setting may be set
to the value in brackets, which is the behaviour of the clients in any case. A value that one of the clients of a
setting does not accept and a name that is not listed here are errors when the pipeline file is loaded.

| Key | Used by | Legal values | Support | Notes |
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
        "## Metadata columns\n\nA metadata column is declared as `column type METADATA FROM 'key'`. A column whose key "
        "is not writable must be declared `VIRTUAL` in a table that is published.\n\n| Key | Type | Declared as | "
        f"Writable | Description |\n|---|---|---|---|---|\n{rows}\n\n{_format_metadata()}"
    )


def _format_metadata() -> str:
    rows = "\n".join(
        f"| `{name}` | {', '.join(f'`value.{key}` {type.flink()}' for key, type in declared.metadata.items())} |"
        for name, declared in FORMATS.items()
        if declared.metadata
    )
    return f"Formats of the value provide these read-only keys:\n\n| Format | Keys |\n|---|---|\n{rows}\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    print(markdown(), end="")
