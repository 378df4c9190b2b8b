"""Generates the JSON Schema of the pipeline file, for editors."""

from __future__ import annotations

from typing import Any

from bridge.config.model import PipelineFile

_REFERENCE = {"type": "string", "pattern": r"\$\{(env|file):"}


def json_schema() -> dict[str, Any]:
    """Returns the schema. It accepts a `${...}` reference wherever it checks a text or a number."""
    schema = _with_references(PipelineFile.model_json_schema(by_alias=True))
    topic = schema["$defs"]["TopicSection"]
    topic["properties"]["ddl-file"] = topic["properties"]["ddl_file"]
    topic["oneOf"] = [{"required": [key]} for key in ("ddl", "ddl_file", "ddl-file")]
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
