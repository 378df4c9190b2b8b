"""Resolves a writer's schema to a row of the table, with conversions that Avro's schema resolution does not make.

Each writer's schema gets a reader's schema of its own. Avro compares no logical types (a writer's microseconds would be
read as the table's milliseconds, a DECIMAL would get the reader's scale), so the reader's schema has the writer's
logical types, and values are converted afterwards. Whatever Avro's Java library reads, and enums and fixed as STRING
and BYTES, is read; anything else is refused with the name of its field.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from bridge.format_rules.avro_schema import Node, SchemaField
from bridge.formats.sql import null
from bridge.schema import ArrayType, DataType, MapType, RowType, ScalarType

Sql = Callable[[str], str]

_SOURCES = {
    "BOOLEAN": ("boolean", ("boolean",)),
    "TINYINT": ("int", ("int",)),
    "SMALLINT": ("int", ("int",)),
    "INT": ("int", ("int",)),
    "BIGINT": ("long", ("long", "int")),
    "FLOAT": ("float", ("float", "long", "int")),
    "DOUBLE": ("double", ("double", "float", "long", "int")),
}
"""The reader's Avro type, and the writer's types that Avro promotes to it."""
_RANGES = {"TINYINT": (-(2**7), 2**7 - 1), "SMALLINT": (-(2**15), 2**15 - 1)}
_WIDEST = 38


class Incompatible(Exception):
    """The writer's schema cannot be read as the table; the message has the field and both types."""


@dataclass(frozen=True)
class Reader:
    """How one value is read: its part of the reader's schema, and SQL of what `from_avro` gives for it."""

    type: DataType
    schema: Any
    convert: Sql | None = None
    """From Spark's value to the table's; null for a value that does not fit."""
    misfit: Callable[[str, str], str] | None = None
    """Condition of the value and its conversion: true when the value does not fit; else null or false."""
    reason: str = ""
    """The error of a misfit."""
    may_lack: bool = False
    """The type is NOT NULL, and the writer may have written null."""
    is_text: bool = False
    """Text, which `from_avro` does not check for valid UTF-8."""
    parts: tuple[Reader, ...] = ()
    """Of a ROW its fields, of an ARRAY its element, of a MAP its value."""

    @property
    def converts(self) -> bool:
        """Return whether the table's value differs from Spark's, at this level or below."""
        return self.convert is not None or any(part.converts for part in self.parts)


def resolve(type: DataType, own: Node, writer: Node) -> Reader:
    """Return the reader of `type` for documents of `writer`. `own` is the table's own schema, which has the defaults.

    Raises Incompatible.
    """
    return _Resolving().value(type, own, writer, "")


@dataclass
class _Resolving:
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    defined: set[str] = field(default_factory=set)

    def value(self, type: DataType, own: Node, writer: Node, path: str) -> Reader:
        """Return the reader of the first of the writer's branches that can be read; null can be read as any type."""
        own = next((b for b in own.branches if b.kind != "null"), own)
        refused: Incompatible | None = None
        for branch in writer.branches:
            if branch.kind == "null":
                continue
            before = set(self.defined)
            try:
                made = self._required(type, own, branch, path)
            except Incompatible as error:
                refused, self.defined = refused or error, before
                continue
            if not writer.is_nullable and not type.nullable:
                return made
            return replace(made, schema=["null", made.schema], may_lack=not type.nullable)
        raise refused or Incompatible(f"{_at(path)}the writer has nothing but null, the table {type.flink()}")

    def _required(self, type: DataType, own: Node, writer: Node, path: str) -> Reader:
        if isinstance(type, RowType):
            self._expect(writer, type, path, "record")
            return self._record(type, own, writer, path)
        if isinstance(type, ArrayType):
            self._expect(writer, type, path, "array")
            element = self.value(type.element, own.items, writer.items, path)
            return Reader(type, {"type": "array", "items": element.schema}, parts=(element,))
        if isinstance(type, MapType):
            self._expect(writer, type, path, "map")
            value = self.value(type.value, own.values, writer.values, path)
            return Reader(type, {"type": "map", "values": value.schema}, parts=(value,))
        assert isinstance(type, ScalarType)
        return self._scalar(type, own, writer, path)

    def _expect(self, writer: Node, type: DataType, path: str, *kinds: str) -> None:
        if writer.kind not in kinds:
            has = f"{writer.kind} {writer.logical}".strip()
            raise Incompatible(f"{_at(path)}the writer has {has}, the table {type.flink()}")

    def _record(self, row: RowType, own: Node, writer: Node, path: str) -> Reader:
        writer_fields = {f.name: f for f in writer.fields}
        own_fields = {f.name: f for f in own.fields}
        name = f"r{next(self.numbers)}"
        parts, fields = [], []
        for f in row.fields:
            below = f"{path}.{f.name}" if path else f.name
            part, more = self._field(f.type, own_fields[f.name], writer_fields.get(f.name), below)
            parts.append(part)
            fields.append({"name": f.name, "type": part.schema, **more})
        return Reader(row, {"type": "record", "name": name, "fields": fields}, parts=tuple(parts))

    def _field(
        self, type: DataType, own: SchemaField, writer: SchemaField | None, path: str
    ) -> tuple[Reader, dict[str, Any]]:
        if writer is not None:
            return self.value(type, own.node, writer.node, path), {}
        if not own.has_default:
            raise Incompatible(
                f"{_at(path)}the writer's schema has no such field, and the table's {type.flink()} no default"
            )
        made = self.value(type, own.node, own.node, path)
        if own.default is not None and isinstance(made.schema, list):
            # A default must be of a union's first branch.
            made = replace(made, schema=[made.schema[1], "null"])
        return made, {"default": own.default}

    def _scalar(self, type: ScalarType, own: Node, writer: Node, path: str) -> Reader:
        if type.name in _SOURCES:
            schema, sources = _SOURCES[type.name]
            self._expect(writer, type, path, *sources)
            return _narrow(type, schema) if type.name in _RANGES else Reader(type, schema)
        if type.is_string:
            self._expect(writer, type, path, "string", "enum", "bytes")
            if writer.kind == "enum":
                return Reader(type, self._named(writer, "symbols"))
            return Reader(type, "string", is_text=True)
        if type.is_binary:
            self._expect(writer, type, path, "bytes", "fixed", "string")
            return Reader(type, self._named(writer, "size") if writer.kind == "fixed" else "bytes")
        if type.name == "DATE":
            self._expect(writer, type, path, "int")
            return Reader(type, {"type": "int", "logicalType": "date"})
        if type.name == "DECIMAL":
            self._expect(writer, type, path, "bytes", "fixed")
            return self._decimal(type, own, writer, path)
        self._expect(writer, type, path, "long")
        return _moment(type, own, writer, path)

    def _decimal(self, type: ScalarType, own: Node, writer: Node, path: str) -> Reader:
        source = writer if writer.logical == "decimal" else own
        scale = source.number("scale")
        # The writer's values may exceed its precision, and Spark would let the unscaled number overflow.
        digits = _WIDEST
        if writer.kind == "fixed":
            digits = min(_WIDEST, max(1, len(str(2 ** (8 * writer.number("size") - 1) - 1)) - 1))
        if scale > digits:
            raise Incompatible(f"{_at(path)}the writer's scale is {scale}, of {digits} at most")
        logical = {"logicalType": "decimal", "precision": digits, "scale": scale}
        schema: Any
        if writer.kind == "fixed":
            named = self._named(writer, "size")
            schema = {**named, **logical} if isinstance(named, dict) else named
        else:
            schema = {"type": "bytes", **logical}
        if type.parameters == (digits, scale):
            return Reader(type, schema)
        cast = f"AS {type.spark()})"
        return Reader(
            type,
            schema,
            convert=lambda v: f"TRY_CAST({v} {cast}",
            misfit=lambda v, made: f"({v} IS NOT NULL AND {made} IS NULL)",
            reason=f"out of range of {type.flink()}",
        )

    def _named(self, writer: Node, key: str) -> Any:
        """Return the writer's definition of an enum or fixed, or its name where it is defined already."""
        if writer.full_name in self.defined:
            return writer.full_name
        self.defined.add(writer.full_name)
        return self._definition(writer, key)

    def _definition(self, writer: Node, key: str) -> dict[str, Any]:
        space, _, short = writer.full_name.rpartition(".")
        return {"type": writer.kind, "name": short, "namespace": space, key: writer.raw[key]}


def _at(path: str) -> str:
    return f"field '{path}': " if path else "the document: "


def _narrow(type: ScalarType, schema: str) -> Reader:
    low, high = _RANGES[type.name]
    return Reader(
        type,
        schema,
        convert=lambda v: f"TRY_CAST({v} AS {type.spark()})",
        misfit=lambda v, _: f"{v} NOT BETWEEN {low} AND {high}",
        reason=f"out of range of {type.flink()}",
    )


def _moment(type: ScalarType, own: Node, writer: Node, path: str) -> Reader:
    """Return the reader of a timestamp in the writer's unit, or in the table's where the writer has none."""
    logical = writer.logical if writer.logical.startswith(("timestamp-", "local-timestamp-")) else own.logical
    unit = logical.rpartition("-")[2]
    if unit not in ("millis", "micros"):
        raise Incompatible(
            f"{_at(path)}the writer has {logical}, the table {type.flink()}, which Spark keeps in microseconds"
        )
    zone = "" if type.name == "TIMESTAMP_LTZ" else "local-"
    schema = {"type": "long", "logicalType": f"{zone}timestamp-{unit}"}
    convert = truncation(type, 3 if unit == "millis" else 6, minus="try_subtract({}, {})")
    if convert is None:
        return Reader(type, schema)
    return Reader(
        type,
        schema,
        convert=convert,
        misfit=lambda v, made: f"({v} IS NOT NULL AND {made} IS NULL)",
        reason=f"out of range of {type.flink()}",
    )


def truncation(type: ScalarType, digits: int, *, minus: str = "{} - {}") -> Sql | None:
    """Return SQL that truncates timestamps of `digits` fractional digits to the precision of `type`.

    None where there is nothing to truncate. `minus` decides the result of an underflow, at the least timestamp."""
    step = 10 ** (6 - type.parameters[0])
    if type.parameters[0] >= digits:
        return None

    def truncated(value: str) -> str:
        micros = f"unix_micros(CAST({value} AS TIMESTAMP))"
        made = f"timestamp_micros({minus.format(micros, f'pmod({micros}, {step})')})"
        return f"IF({value} IS NULL, {null(type.spark())}, CAST({made} AS {type.spark()}))"

    return truncated
