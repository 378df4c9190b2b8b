"""Renders a definition as JSON with masked secrets (`validate --json`), and the file's JSON Schema for editors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from bridge.config.model import PipelineFile
from bridge.config.topic import table_options
from bridge.definition import Definition, FormatSpec, Quality, Run, Topic
from bridge.offsets import Offsets
from bridge.options import FORMATS, EffectiveOption
from bridge.options.properties import PREFIX, SETTINGS
from bridge.schema import Column, ComputedColumn, MetadataColumn, PhysicalColumn
from bridge.secret import Secret


def resolved(definition: Definition) -> dict[str, Any]:
    """Returns the definition with all defaults.

    `topic.options` are the options in WITH; `topic.effective` lists every declared option with its effective value,
    its origin (given or default) and its `fate`, the support that docs/options.md lists.
    """
    return {
        "name": definition.name,
        "base": definition.base,
        "topic": _topic(definition.topic),
        "delta": _json_value(asdict(definition.delta)),
        "run": _run(definition.run),
        "ingest": {
            "bad-records": definition.bad_records.value,
            "base": "existing" if definition.base_is_existing else "empty",
            "reader": definition.reader.value,
        },
        "merge": _json_value(asdict(definition.merge)),
        "publish": _json_value(asdict(definition.publish)),
        "quality": _quality(definition.quality) if definition.quality else None,
        "maintenance": asdict(definition.maintenance) if definition.maintenance else None,
        "peek": {"hide": "all" if "*" in definition.peek_hides else list(definition.peek_hides)},
        "warnings": list(definition.warnings),
    }


def _run(run: Run) -> dict[str, Any]:
    """The keys of `monitoring` are those of `run` in the file."""
    found = asdict(run)
    monitoring = found.pop("monitoring")
    places = {"checkpoint": run.checkpoint or None, "state": None if run.state is None else str(run.state)}
    shown: dict[str, Any] = _json_value({**found, **places, **monitoring})
    return shown


def _quality(quality: Quality) -> dict[str, Any]:
    gate = quality.gate and {
        "action": quality.gate.action.value,
        "suite": quality.gate.suite,
        "own": quality.gate.is_dedicated,
    }
    return {**_json_value(asdict(replace(quality, gate=None))), "gate": gate}


def _topic(topic: Topic) -> dict[str, Any]:
    given = table_options(topic.options)
    return {
        "connector": topic.connector,
        "names": list(topic.names),
        "pattern": topic.pattern,
        "create": asdict(topic.create) if topic.create else None,
        "group": topic.group,
        "columns": [_column(column, topic) for column in topic.schema],
        "primary_key": list(topic.schema.primary_key),
        "key": _document(topic.key) if topic.key else None,
        "value": _document(topic.value),
        "startup": _position(topic.startup),
        "bounded": _position(topic.bounded),
        "options": {key: str(value) for key, value in topic.options.items()},
        "effective": [_effective(e, topic.options) for e in given.effective()],
    }


def _column(column: Column, topic: Topic) -> dict[str, Any]:
    shown: dict[str, Any] = {"name": column.name}
    if isinstance(column, PhysicalColumn):
        keys = topic.key.columns if topic.key else ()
        places = [p for p, names in (("key", keys), ("value", topic.value.columns)) if column.name in names]
        return shown | {"kind": "physical", "type": column.type.flink(), "in": places}
    if isinstance(column, MetadataColumn):
        return shown | {
            "kind": "metadata",
            "type": column.type.flink(),
            "from": column.key,
            "virtual": column.virtual,
        }
    assert isinstance(column, ComputedColumn)
    return shown | {"kind": "computed", "expression": column.expression, "spark": column.spark}


def _document(spec: FormatSpec) -> dict[str, Any]:
    fields = [
        {"field": field.name, "column": column, "type": field.type.flink()}
        for field, column in zip(spec.row.fields, spec.columns, strict=True)
    ]
    return {"format": spec.name, "insert_only": FORMATS[spec.name].insert_only, "fields": fields}


def _position(position: Any) -> dict[str, Any]:
    offsets: Offsets | None = position.offsets
    named = {f"{topic}-{partition}": offset for topic, partition, offset in offsets} if offsets else None
    return {"mode": position.mode, "offsets": named, "timestamp_ms": position.timestamp_ms}


def _effective(effective: EffectiveOption, options: Mapping[str, str]) -> dict[str, Any]:
    option = effective.option
    masked = isinstance(options.get(option.key), Secret)
    client = SETTINGS.get(option.key.removeprefix(PREFIX)) if option.key.startswith(PREFIX) else None
    return {
        "key": option.key,
        "value": str(options[option.key]) if masked else effective.text,
        "origin": "given" if effective.is_set else "default",
        "fate": (client.treatment if client else option.support).value,
    }


def _json_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _json_value(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_json_value(item) for item in value]
    return str(value) if isinstance(value, Path) else value


_REFERENCE = {"type": "string", "pattern": r"\$\{(env|file):"}


def json_schema() -> dict[str, Any]:
    """Returns the schema. It accepts a `${...}` reference wherever it checks a text or a number."""
    schema = _with_references(PipelineFile.model_json_schema(by_alias=True))
    topic = schema["$defs"]["TopicSection"]
    topic["properties"]["ddl-file"] = topic["properties"]["ddl_file"]
    topic["oneOf"] = [{"required": [key]} for key in ("ddl", "ddl_file", "ddl-file")]
    schema["$defs"]["RunSection"]["anyOf"] = [{"required": ["checkpoint"]}, {"required": ["state"]}]
    schema["$defs"]["DeltaSection"]["oneOf"] = [{"required": ["path"]}, {"required": ["table"]}]
    for section, key in (("DeltaSection", "properties"), ("CreateSection", "config")):
        properties = schema["$defs"][section]["properties"][key]
        properties["additionalProperties"] = {"type": ["string", "boolean", "number"]}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _with_references(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_references(item) for item in value]
    if not isinstance(value, dict):
        return value
    schema = {key: _with_references(item) for key, item in value.items()}
    checked = {k: schema.pop(k) for k in ("enum", "pattern", "exclusiveMinimum") if k in schema}
    if not checked:
        return schema
    kind = schema.pop("type")
    return {**schema, "anyOf": [{"type": kind, **checked}, _REFERENCE]}
