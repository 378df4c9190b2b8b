"""How documents of a writer's schema are read as rows of the table: plain values, in the order of the documents.

The rules are those of `formats.avro.schema_resolution`. What they allow and this module does not, has no plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from bridge.format_rules.avro_schema import Node, SchemaField
from bridge.schema import DataType, RowType, ScalarType
from bridge.ways import NotThisWay

_SOURCES = {
    "BOOLEAN": ("boolean",),
    "TINYINT": ("int",),
    "SMALLINT": ("int",),
    "INT": ("int",),
    "BIGINT": ("long", "int"),
    "FLOAT": ("float", "long", "int"),
    "DOUBLE": ("double", "float", "long", "int"),
    "DATE": ("int",),
    "TIMESTAMP": ("long",),
    "TIMESTAMP_LTZ": ("long",),
    "DECIMAL": ("bytes", "fixed"),
}
_TEXT_SOURCES, _BINARY_SOURCES = ("string", "enum", "bytes"), ("bytes", "fixed", "string")
_READ = ("null", "boolean", "int", "long", "float", "double", "bytes", "string", "fixed", "enum")
_MOST_BYTES = 2**31
# Avro's Java library takes more names, and refuses a schema with others.
_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Plan:
    """How one value is read, or skipped."""

    kind: str
    """Avro's type of what the document has, or 'union'."""
    path: str
    """The field, for messages; '' for the document."""
    type: DataType | None = None
    """The table's type; None where the value is skipped."""
    size: int = 0
    """Of a fixed."""
    symbols: tuple[str, ...] = ()
    """Of an enum."""
    digits: int = 0
    """Of a decimal: how many digits Spark's path reads at most."""
    millis: bool = False
    """Whether a timestamp is in milliseconds; else it is in microseconds."""
    branches: tuple[Plan | None, ...] = ()
    """Of a union; None for branches that are not read."""
    fields: tuple[tuple[str, Plan], ...] = ()
    """Of a record, in the writer's order."""


def document_plan(row: RowType, own: Node, writer: Node) -> Plan:
    """Return how documents of `writer` are read as `row`. Raises NotThisWay where there is no plan.

    `own` is the table's own schema: the unit and the scale where the writer has no logical type, and the defaults. A
    plan reads exactly what Spark's path reads; that path also knows lists, rescaled decimals, defaults other than null.
    """
    return _value(row.required(), own, writer, "")


def _value(type: DataType, own: Node, writer: Node, path: str) -> Plan:
    own = next((b for b in own.branches if b.kind != "null"), own)
    if writer.kind != "union":
        return _required(type, own, writer, path)
    _check_union(writer, path)
    # Spark's path takes the first branch that it can read. Documents with other branches are left to it.
    at = next((at for at, branch in enumerate(writer.branches) if branch.kind != "null"), None)
    if at is None:
        raise NotThisWay(f"the writer of {field_title(path)} has nothing but null")
    branches = [Plan("null", path) if b.kind == "null" else None for b in writer.branches]
    branches[at] = _required(type, own, writer.branches[at], path)
    return Plan("union", path, type, branches=tuple(branches))


def _required(type: DataType, own: Node, writer: Node, path: str) -> Plan:
    if isinstance(type, RowType):
        _expect(writer, type, path, ("record",))
        if path and not type.fields:
            raise NotThisWay(f"field {path!r} has no fields")
        return _record(type, own, writer, path)
    if not isinstance(type, ScalarType):
        raise NotThisWay(f"field {path!r} is {type.flink()}")
    if type.is_string:
        _expect(writer, type, path, _TEXT_SOURCES)
    elif type.is_binary:
        _expect(writer, type, path, _BINARY_SOURCES)
    else:
        _expect(writer, type, path, _SOURCES[type.name])
    plan = replace(_scalar(writer, path), type=type)
    if type.name == "DECIMAL":
        return replace(plan, digits=_digits(type, own, writer, path))
    if type.name in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return replace(plan, millis=_unit(own, writer, path) == "millis")
    return plan


def _expect(writer: Node, type: DataType, path: str, kinds: Iterable[str]) -> None:
    if writer.kind not in kinds:
        raise NotThisWay(f"the writer of {field_title(path)} has {writer.kind}, the table {type.flink()}")


def _record(row: RowType, own: Node, writer: Node, path: str) -> Plan:
    written, own_fields = writer.fields, {f.name: f for f in own.fields}
    _check_names([f.name for f in written], path)
    wanted = {f.name: f.type for f in row.fields}
    fields = []
    for field in written:
        below = f"{path}.{field.name}" if path else field.name
        type = wanted.pop(field.name, None)
        if type is None:
            fields.append((field.name, _skipped(field.node, below, (writer.full_name,))))
        else:
            fields.append((field.name, _value(type, own_fields[field.name].node, field.node, below)))
    for name, type in wanted.items():
        _check_absent(type, own_fields[name], f"{path}.{name}" if path else name)
    return Plan("record", path, row, fields=tuple(fields))


def _check_absent(type: DataType, own: SchemaField, path: str) -> None:
    if not (type.nullable and own.has_default and own.default is None):
        raise NotThisWay(f"the writer has no field {path!r}, whose default is not null")


def _skipped(writer: Node, path: str, above: tuple[str, ...]) -> Plan:
    if writer.kind == "union":
        _check_union(writer, path)
        return Plan("union", path, branches=tuple(_skipped(b, path, above) for b in writer.branches))
    if writer.kind != "record":
        return _scalar(writer, path)
    if writer.full_name in above:
        raise NotThisWay(f"field {path!r} of the writer is a record within itself")
    _check_names([f.name for f in writer.fields], path)
    above = (*above, writer.full_name)
    return Plan("record", path, fields=tuple((f.name, _skipped(f.node, path, above)) for f in writer.fields))


def _scalar(writer: Node, path: str) -> Plan:
    if writer.kind not in _READ:
        raise NotThisWay(f"field {path!r} of the writer is a list: its type is {writer.kind}")
    symbols = tuple(map(str, writer.raw["symbols"])) if writer.kind == "enum" else ()
    _check_names(symbols, path)
    size = writer.number("size", -1) if writer.kind == "fixed" else 0
    if not 0 <= size < _MOST_BYTES:
        raise NotThisWay(f"field {path!r} of the writer has an unusual size")
    return Plan(writer.kind, path, size=size, symbols=symbols)


def _digits(type: ScalarType, own: Node, writer: Node, path: str) -> int:
    precision, scale = type.parameters
    written = (writer if writer.logical == "decimal" else own).number("scale")
    if written != scale:
        raise NotThisWay(f"the writer of field {path!r} has the scale {written}, the table {type.flink()}")
    if writer.kind == "bytes":
        return precision
    size = writer.number("size")
    digits = min(precision, len(str(2 ** (8 * size - 1) - 1)) - 1) if size else 0
    if scale > digits:
        raise NotThisWay(f"the writer of field {path!r} has {digits} digits, the table {type.flink()}")
    return digits


def _unit(own: Node, writer: Node, path: str) -> str:
    is_moment = writer.logical.startswith(("timestamp-", "local-timestamp-"))
    unit = (writer if is_moment else own).logical.rpartition("-")[2]
    if unit not in ("millis", "micros"):
        raise NotThisWay(f"the writer of field {path!r} has {writer.logical}")
    return unit


def _check_union(writer: Node, path: str) -> None:
    """Leave to Spark what Avro's Java library may refuse; it knows named types of one kind apart, too."""
    kinds = [b.kind for b in writer.branches]
    if not kinds or "union" in kinds or len(set(kinds)) < len(kinds):
        raise NotThisWay(f"the writer of {field_title(path)} has an unusual union")


def _check_names(names: Iterable[str], path: str) -> None:
    names = list(names)
    if len(set(names)) < len(names) or not all(map(_NAME.fullmatch, names)):
        raise NotThisWay(f"the writer of {field_title(path)} has unusual names")


def field_title(path: str) -> str:
    """Return what a message calls the value at `path`, which is empty for the document."""
    return f"field {path!r}" if path else "the document"
