"""The table's Avro schema: what the option `schema` gives, which must match the table, or what Flink derives.

Functions that take the format's name raise what `avro_derive.check` and `given_schema` raise.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bridge.errors import OptionError
from bridge.format_rules.avro_derive import check, derive
from bridge.format_rules.avro_schema import Node, parse
from bridge.schema import ArrayType, DataType, MapType, RowField, RowType, ScalarType

_KINDS = {
    "BOOLEAN": "boolean",
    "TINYINT": "int",
    "SMALLINT": "int",
    "INT": "int",
    "BIGINT": "long",
    "FLOAT": "float",
    "DOUBLE": "double",
}


def given_schema(text: str, type: DataType, option: str, message: str) -> Node:
    """Return the schema in `text`. Raises OptionError, beginning with `message`, for one that is not of `type`.

    Nullability may differ (in Flink it may not): rows with a null where the schema has none fail when they are written.
    """
    node = parse(text, f"'{option}'")
    mismatch = difference(type, node, "")
    if mismatch is None and _has_alias(type, node):
        mismatch = "aliases are not followed: give the fields their present names"
    if mismatch is not None:
        raise OptionError(f"{message}: {text}\n('{option}': {mismatch})")
    return node


def difference(type: DataType, node: Node, path: str) -> str | None:
    """Return the first mismatch of `node` and `type`, or None; fields match by name, and both must have the same."""
    branches = [branch for branch in node.branches if branch.kind != "null"]
    if len(branches) != 1:
        return f"{_at(path)}a union of {len(branches)} types is not {type.flink()}"
    (node,) = branches
    if isinstance(type, RowType):
        if node.kind != "record":
            return f"{_at(path)}{node.kind} is not {type.flink()}"
        nodes = {f.name: f.node for f in node.fields}
        if set(nodes) != set(type.names):
            odd = sorted(set(nodes) ^ set(type.names))
            return f"{_at(path)}only one of schema and table has {', '.join(odd)}"
        below = ((f"{path}.{f.name}" if path else f.name, f.type, nodes[f.name]) for f in type.fields)
        return next((d for at, part, its in below if (d := difference(part, its, at))), None)
    if isinstance(type, ArrayType):
        return (
            difference(type.element, node.items, path) if node.kind == "array" else _unlike(type, node, path)
        )
    if isinstance(type, MapType):
        return difference(type.value, node.values, path) if node.kind == "map" else _unlike(type, node, path)
    assert isinstance(type, ScalarType)
    return None if _is(type, node) else _unlike(type, node, path)


def _is(type: ScalarType, node: Node) -> bool:
    if type.name in _KINDS:
        return node.kind == _KINDS[type.name] and node.logical not in ("date", "time-millis", "time-micros")
    if type.is_string:
        return node.kind in ("string", "enum")
    if type.is_binary:
        return node.kind in ("bytes", "fixed") and node.logical != "decimal"
    if type.name == "DECIMAL":
        parts = (node.number("precision"), node.number("scale"))
        return node.kind in ("bytes", "fixed") and node.logical == "decimal" and parts == type.parameters
    if type.name == "DATE":
        return node.kind == "int" and node.logical == "date"
    unit = node.logical.removeprefix("local-")
    return node.kind == "long" and unit in (
        ("timestamp-millis", "timestamp-micros") if type.parameters[0] <= 3 else ("timestamp-micros",)
    )


def _unlike(type: DataType, node: Node, path: str) -> str:
    return f"{_at(path)}{f'{node.kind} {node.logical}'.strip()} is not {type.flink()}"


def _at(path: str) -> str:
    return f"field '{path}': " if path else ""


def _has_alias(type: DataType, node: Node) -> bool:
    node = next((branch for branch in node.branches if branch.kind != "null"), node)
    if isinstance(type, RowType):
        types = {f.name: f.type for f in type.fields}
        return any(f.aliases or _has_alias(types[f.name], f.node) for f in node.fields)
    if isinstance(type, ArrayType):
        return _has_alias(type.element, node.items)
    return isinstance(type, MapType) and _has_alias(type.value, node.values)


def derived_schema(format: str, row: RowType, options: Mapping[str, Any]) -> Node:
    """Return the schema of documents without framing, which Flink always derives."""
    legacy = bool(options.get("timestamp_mapping.legacy", True))
    check(format, row, strict_legacy=legacy)
    return parse(json.dumps(derive(row, legacy_timestamps=legacy)), "the table")


def framed_schema(format: str, row: RowType, options: Mapping[str, Any]) -> tuple[Node, str]:
    """Return the schema of documents in Confluent's framing, and its text."""
    check(format, row)
    text = options.get("schema")
    if text is not None:
        mismatch = f"Schema provided for '{format}' format does not match the table schema"
        return given_schema(str(text), row, f"{format}.schema", mismatch), str(text)
    return _with_text(derive(row, legacy_timestamps=True))


def event_schema(format: str, row: RowType, options: Mapping[str, Any]) -> tuple[Node, str]:
    """Return the schema of Debezium's event in Confluent's framing, and its text. A derived one is nullable."""
    check(format, row)
    whole, text = envelope(row, row), options.get("schema")
    if text is not None:
        mismatch = (
            f"Schema provided for '{format}' format must be a nullable record type with fields 'before', 'after', 'op' "
            "and schema of fields 'before' and 'after' must match the table schema"
        )
        return given_schema(str(text), whole, f"{format}.schema", mismatch), str(text)
    return _with_text(derive(whole, legacy_timestamps=True, nullable=True))


def envelope(row: RowType, before: RowType) -> RowType:
    """Return the fields of Debezium's event that are read and written."""
    return RowType((RowField("before", before), RowField("after", row), RowField("op", ScalarType("STRING"))))


def _with_text(derived: Any) -> tuple[Node, str]:
    text = json.dumps(derived, ensure_ascii=False, separators=(",", ":"))
    return parse(text, "the table"), text
