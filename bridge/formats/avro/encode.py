"""Values to Avro bytes: Spark's `to_avro` with the schema that is written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from bridge.format_rules.avro_schema import Node
from bridge.formats.avro.decode import bare
from bridge.formats.avro.schema_resolution import cut
from bridge.formats.sql import Names, literal, member, null
from bridge.schema import ArrayType, DataType, MapType, RowType, ScalarType

__all__ = ["filled", "lacking", "unit", "written"]

_NULL = "format '{format}': field '{path}' is null, and its Avro schema has no null; declare it nullable"


def written(value: str, row: RowType, schema: Node, names: Names, format: str) -> str:
    """Return the Avro bytes of `value` (a column or variable of type `row`) under `schema`; null where it is null.

    Fails in Spark, naming the field, for a null where the schema has no null.
    """
    writing = _Writing(names)
    text = json.dumps(writing.twin(row, schema), ensure_ascii=False)
    failing = lacking(value, row, schema, names, format)
    ready = writing.ready(value, row, schema)
    nothing = "CAST(NULL AS BINARY)"
    return f"CASE WHEN {value} IS NULL THEN {nothing} {failing} ELSE to_avro({ready}, {literal(text)}) END"


def lacking(value: str, row: RowType, schema: Node, names: Names, format: str) -> str:
    """Return branches of a CASE that fail, naming the field, for each null where the schema has no null."""
    return " ".join(
        f"WHEN {condition} THEN raise_error({literal(_NULL.format(format=format, path=path))})"
        for condition, path in _Writing(names).lacks(value, row, schema, "")
    )


class _Writing:
    def __init__(self, names: Names) -> None:
        self.names = names
        self.defined: set[str] = set()

    def twin(self, type: DataType, schema: Node) -> Any:
        """Return `schema` as `to_avro` needs it for `type`: the same bytes, with Spark's timestamp types."""
        if schema.kind == "union":
            return [b.kind if b.kind == "null" else self.twin(type, b) for b in schema.branches]
        if schema.kind in ("record", "enum", "fixed"):
            if schema.full_name in self.defined:
                return schema.full_name
            self.defined.add(schema.full_name)
        if isinstance(type, RowType):
            types = {f.name: f.type for f in type.fields}
            fields = [{"name": f.name, "type": self.twin(types[f.name], f.node)} for f in schema.fields]
            space, _, short = schema.full_name.rpartition(".")
            return {"type": "record", "name": short, "namespace": space, "fields": fields}
        if isinstance(type, ArrayType):
            return {"type": "array", "items": self.twin(type.element, schema.items)}
        if isinstance(type, MapType):
            return {"type": "map", "values": self.twin(type.value, schema.values)}
        assert isinstance(type, ScalarType)
        made = bare(schema.raw)
        if schema.logical in ("date", "decimal"):
            logical = {k: schema.raw[k] for k in ("logicalType", "precision", "scale") if k in schema.raw}
            return {**made, **logical}
        if unit(schema):
            zone = "" if type.name == "TIMESTAMP_LTZ" else "local-"
            return {"type": "long", "logicalType": f"{zone}timestamp-{unit(schema)}"}
        return made

    def ready(self, value: str, type: DataType, schema: Node) -> str:
        """Return `value` with timestamps truncated to their precision; `value` itself where there are none."""
        schema = filled(schema)
        if isinstance(type, ScalarType):
            digits = {"millis": 3, "micros": 6}.get(unit(schema))
            truncate = cut(type, digits) if digits else None
            return truncate(value) if truncate else value
        if isinstance(type, RowType):
            nodes = {f.name: f.node for f in schema.fields}
            parts = [(f, self.ready(member(value, f.name), f.type, nodes[f.name])) for f in type.fields]
            if all(made == member(value, f.name) for f, made in parts):
                return value
            pairs = ", ".join(f"{literal(f.name)}, {made}" for f, made in parts)
            return f"IF({value} IS NULL, {null(type.spark())}, named_struct({pairs}))"
        item = self.names.fresh()
        if isinstance(type, ArrayType):
            made = self.ready(item, type.element, schema.items)
            return value if made == item else f"transform({value}, {item} -> {made})"
        assert isinstance(type, MapType)
        made = self.ready(item, type.value, schema.values)
        return (
            value if made == item else f"transform_values({value}, ({self.names.fresh()}, {item}) -> {made})"
        )

    def lacks(self, value: str, type: DataType, schema: Node, path: str) -> Iterator[tuple[str, str]]:
        """Yield (SQL condition, field) for every null where the schema has no null."""
        schema = filled(schema)
        if isinstance(type, RowType):
            nodes = {f.name: f.node for f in schema.fields}
            for f in type.fields:
                inner, below = member(value, f.name), f"{path}.{f.name}" if path else f.name
                if not nodes[f.name].is_nullable:
                    yield f"({value} IS NOT NULL AND {inner} IS NULL)", below
                yield from self.lacks(inner, f.type, nodes[f.name], below)
        elif isinstance(type, ArrayType | MapType):
            item = self.names.fresh()
            items = value if isinstance(type, ArrayType) else f"map_values({value})"
            part = type.element if isinstance(type, ArrayType) else type.value
            node = schema.items if isinstance(type, ArrayType) else schema.values
            if not node.is_nullable:
                yield f"exists({items}, {item} -> {item} IS NULL)", path
            for condition, below in self.lacks(item, part, node, path):
                yield f"exists({items}, {item} -> coalesce({condition}, FALSE))", below


def filled(schema: Node) -> Node:
    """Return the branch of a union that is not null; any other schema itself."""
    return next((b for b in schema.branches if b.kind != "null"), schema)


def unit(schema: Node) -> str:
    """Return the unit of a timestamp, 'millis' or 'micros'; '' for other types."""
    is_timestamp = schema.logical.startswith(("timestamp-", "local-timestamp-"))
    return schema.logical.rpartition("-")[2] if is_timestamp else ""
