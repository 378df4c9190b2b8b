"""Values to Avro bytes: Spark's `to_avro` with the schema that is written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from bridge.format_rules.avro_schema import Node
from bridge.formats.avro.decode import structure
from bridge.formats.avro.schema_resolution import truncation
from bridge.formats.sql import Names, literal, member, null
from bridge.schema import ArrayType, DataType, MapType, RowType, ScalarType

_NULL = (
    "format '{format}': field '{path}' is null, and its Avro schema has no null, as it is NOT NULL or in the PRIMARY "
    "KEY; give it a value (COALESCE), or leave such rows out"
)


def avro_bytes(value: str, row: RowType, schema: Node, names: Names, format: str) -> str:
    """Return the Avro bytes of `value` (a column or variable of type `row`) under `schema`; null where it is null.

    Fails in Spark, naming the field, for a null where the schema has no null.
    """
    writer = _AvroWriter(names)
    text = json.dumps(writer.spark_schema(row, schema), ensure_ascii=False)
    failing = null_failures(value, row, schema, names, format)
    ready = writer.truncated(value, row, schema)
    nothing = "CAST(NULL AS BINARY)"
    return f"CASE WHEN {value} IS NULL THEN {nothing} {failing} ELSE to_avro({ready}, {literal(text)}) END"


def null_failures(value: str, row: RowType, schema: Node, names: Names, format: str) -> str:
    """Return branches of a CASE that fail, naming the field, for each null where the schema has no null."""
    return " ".join(
        f"WHEN {condition} THEN raise_error({literal(_NULL.format(format=format, path=path))})"
        for condition, path in _AvroWriter(names).null_violations(value, row, schema, "")
    )


class _AvroWriter:
    def __init__(self, names: Names) -> None:
        self.names = names
        self.defined: set[str] = set()

    def spark_schema(self, type: DataType, schema: Node) -> Any:
        """Return `schema` as `to_avro` needs it for `type`: the same bytes, with Spark's timestamp types."""
        if schema.kind == "union":
            return [b.kind if b.kind == "null" else self.spark_schema(type, b) for b in schema.branches]
        if schema.kind in ("record", "enum", "fixed"):
            if schema.full_name in self.defined:
                return schema.full_name
            self.defined.add(schema.full_name)
        if isinstance(type, RowType):
            types = {f.name: f.type for f in type.fields}
            fields = [
                {"name": f.name, "type": self.spark_schema(types[f.name], f.node)} for f in schema.fields
            ]
            space, _, short = schema.full_name.rpartition(".")
            return {"type": "record", "name": short, "namespace": space, "fields": fields}
        if isinstance(type, ArrayType):
            return {"type": "array", "items": self.spark_schema(type.element, schema.items)}
        if isinstance(type, MapType):
            return {"type": "map", "values": self.spark_schema(type.value, schema.values)}
        assert isinstance(type, ScalarType)
        made = structure(schema.raw)
        if schema.logical in ("date", "decimal"):
            logical = {k: schema.raw[k] for k in ("logicalType", "precision", "scale") if k in schema.raw}
            return {**made, **logical}
        if timestamp_unit(schema):
            zone = "" if type.name == "TIMESTAMP_LTZ" else "local-"
            return {"type": "long", "logicalType": f"{zone}timestamp-{timestamp_unit(schema)}"}
        return made

    def truncated(self, value: str, type: DataType, schema: Node) -> str:
        """Return `value` with timestamps truncated to their precision; `value` itself where there are none."""
        schema = non_null_branch(schema)
        if isinstance(type, ScalarType):
            digits = {"millis": 3, "micros": 6}.get(timestamp_unit(schema))
            truncate = truncation(type, digits) if digits else None
            return truncate(value) if truncate else value
        if isinstance(type, RowType):
            nodes = {f.name: f.node for f in schema.fields}
            parts = [(f, self.truncated(member(value, f.name), f.type, nodes[f.name])) for f in type.fields]
            if all(made == member(value, f.name) for f, made in parts):
                return value
            pairs = ", ".join(f"{literal(f.name)}, {made}" for f, made in parts)
            return f"IF({value} IS NULL, {null(type.spark())}, named_struct({pairs}))"
        item = self.names.fresh()
        if isinstance(type, ArrayType):
            made = self.truncated(item, type.element, schema.items)
            return value if made == item else f"transform({value}, {item} -> {made})"
        assert isinstance(type, MapType)
        made = self.truncated(item, type.value, schema.values)
        return (
            value if made == item else f"transform_values({value}, ({self.names.fresh()}, {item}) -> {made})"
        )

    def null_violations(
        self, value: str, type: DataType, schema: Node, path: str
    ) -> Iterator[tuple[str, str]]:
        """Yield (SQL condition, field) for every null where the schema has no null."""
        schema = non_null_branch(schema)
        if isinstance(type, RowType):
            nodes = {f.name: f.node for f in schema.fields}
            for f in type.fields:
                inner, below = member(value, f.name), f"{path}.{f.name}" if path else f.name
                if not nodes[f.name].is_nullable:
                    yield f"({value} IS NOT NULL AND {inner} IS NULL)", below
                yield from self.null_violations(inner, f.type, nodes[f.name], below)
        elif isinstance(type, ArrayType | MapType):
            item = self.names.fresh()
            items = value if isinstance(type, ArrayType) else f"map_values({value})"
            part = type.element if isinstance(type, ArrayType) else type.value
            node = schema.items if isinstance(type, ArrayType) else schema.values
            if not node.is_nullable:
                yield f"exists({items}, {item} -> {item} IS NULL)", path
            for condition, below in self.null_violations(item, part, node, path):
                yield f"exists({items}, {item} -> coalesce({condition}, FALSE))", below


def non_null_branch(schema: Node) -> Node:
    """Return the branch of a union that is not null; any other schema itself."""
    return next((b for b in schema.branches if b.kind != "null"), schema)


def timestamp_unit(schema: Node) -> str:
    """Return the unit of a timestamp, 'millis' or 'micros'; '' for other types."""
    is_timestamp = schema.logical.startswith(("timestamp-", "local-timestamp-"))
    return schema.logical.rpartition("-")[2] if is_timestamp else ""
