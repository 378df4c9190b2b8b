"""Creates the pipeline file of a case: its columns, keys and options as Flink DDL."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bridge import config
from bridge.definition import Definition
from bridge.schema import quote
from tests.cases.case import Part
from tests.cases.outcome import Unsupported
from tests.cases.values import split

REGISTRY = "http://127.0.0.1:9"
"""A placeholder, which a bench replaces by the URL of its registry where the case needs one."""
LONG_MAX = "9223372036854775807"
_KEYS_IN_PROSE = {"text": ("csv", None), "raw big-endian BIGINT": ("raw", "BIGINT")}
"""RisingWave's names of key formats, with the format here and the type of its key column."""
_WRITABLE = frozenset({"timestamp", "headers", "header-list"})
_SQL_WORDS = frozenset(
    {"and", "as", "between", "case", "cast", "else", "end", "false", "from", "in", "interval", "is", "like"}
    | {"not", "null", "or", "then", "true", "when", "bigint", "boolean", "bytes", "char", "date", "decimal"}
    | {"double", "float", "int", "smallint", "string", "timestamp", "tinyint", "varchar"}
)


def columns_of(part: Part) -> list[tuple[str, str]]:
    """Returns (name, type) of the case's columns, which are objects or one text of DDL."""
    given = part.take("columns") or part.take("column") or []
    declared = part.take("declared_types") or {}
    if isinstance(given, str):
        made = split(given)
        if not all(type for _, type in made):
            raise Unsupported(f"columns in prose: {given!r}")
    else:
        made = [(c["name"], c["type"]) for c in given]
    return [(name, declared.get(name, type)) for name, type in made]


def create_table(part: Part, options: Mapping[str, str], *, writes: bool = False) -> str:
    """Returns the CREATE TABLE of a case. `writes`: metadata that a record can contain is writable."""
    columns = columns_of(part)
    primary_key: Sequence[str] | None = part.take("primary_key")
    if not columns:
        # A case about options only: any table that the connector accepts.
        columns = [("id", "INT")]
        primary_key = (
            ["id"] if primary_key is None and options["connector"] == "upsert-kafka" else primary_key
        )
    _, key_type = _KEYS_IN_PROSE.get(part.take("key.format") or "", ("", None))
    if key_type:
        columns = [(name, key_type if name in (primary_key or []) else type) for name, type in columns]
    computed: dict[str, str] = part.take("computed_columns") or {}
    metadata = part.take("metadata_columns") or {}
    if isinstance(metadata, list):
        extra = [tuple(text.split(" ", 1)) for text in metadata]
        columns += [(name, type) for name, type in extra if name not in dict(columns)]
        metadata = {name: f"value.{name}" for name, _ in extra}
    # Metadata that only a query selects is not among the case's columns; all of it is text.
    columns += [(name, "STRING") for name in metadata if name not in dict(columns)]
    reads = (
        {"header-list"} if "headers" in metadata.values() else set()
    )  # the headers of a record are written once
    lines = [
        _column(name, type, metadata.get(name), computed.get(name), writes, reads) for name, type in columns
    ]
    declared = {name for name, _ in columns}
    for expression in computed.values():
        for name in _references(expression) - declared:
            # The case lists the columns of the query; a column that is only used in expressions belongs to the topic.
            lines.append(f"{quote(name)} STRING")
            declared.add(name)
    if primary_key:
        lines.append(f"PRIMARY KEY ({', '.join(map(quote, primary_key))}) NOT ENFORCED")
    shown = ",\n  ".join(f"{_text(key)} = {_text(value)}" for key, value in options.items())
    return "CREATE TABLE t (\n  " + ",\n  ".join(lines) + f"\n) WITH (\n  {shown}\n)\n"


def _column(
    name: str, type: str, metadata: str | None, computed: str | None, writes: bool, reads: set[str]
) -> str:
    if computed is not None:
        return f"{quote(name)} AS {computed}"
    if metadata is None:
        return f"{quote(name)} {type}"
    written = metadata in _WRITABLE - reads or (writes and metadata == "topic")
    return f"{quote(name)} {type} METADATA FROM {_text(metadata)}" + ("" if written else " VIRTUAL")


def _references(expression: str) -> set[str]:
    bare = re.sub(r"'(?:[^']|'')*'", " ", expression)
    words = re.findall(r"`([^`]+)`|\b([A-Za-z_]\w*)\b(?!\s*\()", bare)
    return {quoted or word for quoted, word in words if quoted or word.casefold() not in _SQL_WORDS}


def options_of(part: Part, topic: str, bootstrap: str) -> dict[str, str]:
    """Returns the WITH options: those of the case, and those derived from `connector`, `format` and `key_format`."""
    described = part.take("connector") or ""
    given = {key: _value(key, str(value)) for key, value in part.merged("options").items() if key != "note"}
    given |= {key: _value(key, str(part.own(key))) for key in list(part.data) if _is_option(key)}
    value_format = given.get("value.format") or given.get("format") or part.take("format") or "json"
    part.take("format")
    upsert_by_default = not described and not _is_cdc(value_format)
    connector = described.split(" ")[0] or ("upsert-kafka" if upsert_by_default else "kafka")
    made = {"connector": connector, "topic": topic, "properties.bootstrap.servers": bootstrap}
    key_format = part.take("key_format") or value_format
    if connector == "upsert-kafka":
        made |= {"key.format": key_format, "value.format": value_format}
        # Flink reads 'json.x' beside 'format' only; beside 'value.format' the key is 'value.json.x'.
        given = {f"value.{k}" if k.startswith(f"{value_format}.") else k: v for k, v in given.items()}
    elif "key.fields" in given and not {"format", "value.format"} & given.keys():
        made |= {"key.format": key_format, "value.format": value_format}
    elif not {"format", "value.format"} & given.keys():
        made["format"] = value_format
    for key in [key for key, name in made.items() if key.endswith("format") and "confluent" in name]:
        prefix = key.removesuffix("format")
        made[f"{prefix}{made[key]}.url"] = REGISTRY
    if "sink.buffer-flush.max-rows" in given:
        # The rows per buffer depend on the number of buffers; upstream's tests have one.
        made["sink.parallelism"] = "1"
    if connector == "kafka" and "scan.startup.mode" not in given:
        # Flink's default needs committed group offsets; upstream's tests always set it, and cases omit it.
        made["scan.startup.mode"] = "earliest-offset"
    if part.take("bounded"):
        made["scan.bounded.mode"] = part.take("bounded")
    if part.take("isolation_level"):
        made["properties.isolation.level"] = part.take("isolation_level")
    made |= given
    # A case with both options tests this; otherwise the runner's own topic is removed.
    if not made["topic"] or ("topic-pattern" in given and "topic" not in given):
        del made["topic"]
    return made


def _is_option(key: str) -> bool:
    return bool(re.match(r"(scan|sink|properties|key|value)\.[\w.-]+$", key))


def _is_cdc(format: str) -> bool:
    return format.partition("-")[0] in ("debezium", "canal", "maxwell", "ogg")


def _value(key: str, value: str) -> str:
    if value == "<fresh>":
        return f"fresh-{uuid.uuid4()}"
    if value == "<now>":
        time.sleep(0.05)  # earlier records are at least a millisecond older
        return str(int(time.time() * 1000))
    if key == "key.format" and value in _KEYS_IN_PROSE:
        return _KEYS_IN_PROSE[value][0]
    return f"{LONG_MAX} ms" if value.startswith("never (Long.MAX") else value


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def write(
    folder: Path,
    name: str,
    statement: str,
    *,
    cut: int | None = None,
    sections: str = "",
    follows: bool = False,
    delta: Mapping[str, Any] | None = None,
) -> Definition:
    """Writes the pipeline file and its DDL into `folder`, and loads it like the command line.

    The table is `folder/table` whatever the name, so that pipelines of one folder share it. `cut` bounds a
    batch; `follows` lets the table follow changes of the DDL; `delta` has more keys of this section. Raises what
    config.load raises.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.sql").write_text(statement, encoding="utf-8")
    run = f"checkpoint: checkpoints/{name}, trigger: available-now"
    run += f", max-offsets-per-batch: {cut}" if cut else ""
    file = folder / f"{name}.yaml"
    file.write_text(
        f"version: 1\nname: {name}\ntopic: {{ddl_file: {name}.sql}}\n"
        f"delta: {json.dumps({'path': 'table', 'merge-schema': follows, **(delta or {})})}\n"
        f"run: {{{run}}}\n{sections}",
        encoding="utf-8",
    )
    return config.load(file)
