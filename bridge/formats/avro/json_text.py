"""Avro's JSON encoding ('avro.encoding' = 'json'): a document is JSON in which the schema says how values stand.

As in Avro's specification, "JSON Encoding": a value of a union that is not null is an object of one member, named after
its branch; bytes, and decimals in them, are text of the characters 0 to 255; times are numbers. Documents are read and
written by the json format, as rows of another shape, the twin, whose values are converted afterwards or before.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Column, DataFrame

from bridge.format_rules.avro_schema import Node
from bridge.format_rules.json_options import JsonOptions
from bridge.formats.avro.encode import filled, lacking, unit
from bridge.formats.avro.schema_resolution import cut
from bridge.formats.base import NEEDS_FULL_DECODE
from bridge.formats.json.decode import JsonDecoder
from bridge.formats.json.encode import JsonEncoder
from bridge.formats.sql import Names, apply, let, literal, member, null, struct
from bridge.schema import ArrayType, DataType, MapType, RowField, RowType, ScalarType

__all__ = ["AvroJsonDecoder", "AvroJsonEncoder"]

_NARROW = ("TINYINT", "SMALLINT", "DATE")
_CHARACTERS = r"'^[\\u0000-\\u00ff]*$'"
_DECIMAL = '\'{{"type": "bytes", "logicalType": "decimal", "precision": {}, "scale": {}}}\''
_MOST_BYTES = 16
"""Two's complement of 38 digits takes no more; a length of so many has one byte in Avro."""
_FARTHEST = {"millis": 9_223_372_036_854_775, "micros": 2**63 - 1}
"""Of what Spark's timestamps reach, in each unit."""


class AvroJsonDecoder:
    """Reads one record per document; every field must be there, as Avro's decoder wants it."""

    skips_errors = False
    has_unavailable = False

    def __init__(self, row: RowType, schema: Node) -> None:
        self.row = row
        self._schema = schema
        self._json = JsonDecoder(_twin_row(row, schema), JsonOptions(fail_on_missing_field=True))

    def decode(self, payload: Column, *, fast: bool = False) -> Column:
        """See Decoder.decode. A value that does not fit is DOUBTFUL to a glance, as it is to json's."""
        names = Names()
        found = names.fresh()
        return apply(self._json.decode(payload, fast=fast), self._outcome(found, names, fast), found)

    def for_payloads(self, payloads: DataFrame) -> AvroJsonDecoder:
        """See Decoder.closer: nothing to find out."""
        return self

    def _outcome(self, found: str, names: Names, fast: bool) -> str:
        nothing = null(f"ARRAY<STRUCT<kind: STRING, row: {self.row.spark()}>>")
        reading = _Reading(names)

        def judged(value: str) -> str:
            misfits = " ".join(
                f"WHEN {condition} THEN {literal(NEEDS_FULL_DECODE if fast else reason)}"
                for condition, reason in reading.misfits(value, self.row, self._schema, "")
            )
            error = f"CASE {misfits} END" if misfits else null("STRING")
            made = reading.converted(value, self.row, self._schema)
            good = struct(rows=f"array({struct(kind=literal('+I'), row=made)})", error=null("STRING"))
            return let(names, error, lambda e: f"IF({e} IS NULL, {good}, {struct(rows=nothing, error=e)})")

        read = let(names, f"{found}.rows[0].row", judged)
        several = literal(NEEDS_FULL_DECODE if fast else "not one record")
        return (
            f"CASE WHEN {found}.error IS NOT NULL OR {found}.rows IS NULL "
            f"THEN {struct(rows=nothing, error=f'{found}.error')} "
            f"WHEN size({found}.rows) != 1 THEN {struct(rows=nothing, error=several)} ELSE {read} END"
        )


class AvroJsonEncoder:
    """Writes one record per row. Fails for a null where the table's type is NOT NULL."""

    def __init__(self, row: RowType, schema: Node) -> None:
        self.row, self._schema = row, schema
        self._json = JsonEncoder(_twin_row(row, schema), JsonOptions())

    def encode(self, row: Column) -> Column:
        """See Encoder.encode."""
        names = Names()
        value = names.fresh()
        failing = lacking(value, self.row, self._schema, names, "avro")
        made = _Writing(names).converted(value, self.row, self._schema)
        body = f"CASE WHEN {value} IS NULL THEN NULL {failing} ELSE {made} END"
        return self._json.encode(apply(row.cast(self.row.spark()), body, value))


def _twin_row(row: RowType, schema: Node) -> RowType:
    nodes = {f.name: f.node for f in schema.fields}
    return RowType(tuple(RowField(f.name, _twin(f.type, nodes[f.name])) for f in row.fields))


def _twin(type: DataType, node: Node) -> DataType:
    """What stands in the document for a value of `type`."""
    part = filled(node)
    if isinstance(type, RowType):
        made: DataType = _twin_row(type, part)
    elif isinstance(type, ArrayType):
        made = ArrayType(_twin(type.element, part.items))
    elif isinstance(type, MapType):
        made = MapType(type.key, _twin(type.value, part.values))
    else:
        assert isinstance(type, ScalarType)
        made = _twin_scalar(type)
    return RowType((RowField(_branch(part), made),)) if node.is_nullable else made


def _twin_scalar(type: ScalarType) -> ScalarType:
    if type.name == "DECIMAL" or type.is_binary:
        return ScalarType("STRING")
    if type.name in _NARROW:
        return ScalarType("INT")
    if type.name in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return ScalarType("BIGINT")
    return type


def _branch(node: Node) -> str:
    return node.full_name if node.kind in ("record", "enum", "fixed") else node.kind


class _Reading:
    """From values of the twin to the table's."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def misfits(self, value: str, type: DataType, node: Node, path: str) -> Iterator[tuple[str, str]]:
        """(SQL condition, reason) for everything in `value` that is no value of the table's."""
        where, part = f"field '{path}': ", filled(node)
        if node.is_nullable:
            inner = member(value, _branch(part))
            yield f"({value} IS NOT NULL AND {inner} IS NULL)", f"{where}not of the type {_branch(part)}"
            value = inner
        elif path:
            yield f"{value} IS NULL", f"{where}null, and its Avro schema has no null"
        if isinstance(type, RowType):
            nodes = {f.name: f.node for f in part.fields}
            for f in type.fields:
                below = f"{path}.{f.name}" if path else f.name
                for condition, reason in self.misfits(member(value, f.name), f.type, nodes[f.name], below):
                    yield (f"({value} IS NOT NULL AND {condition})" if path else condition), reason
        elif isinstance(type, ArrayType | MapType):
            items = value if isinstance(type, ArrayType) else f"map_values({value})"
            inside = part.items if isinstance(type, ArrayType) else part.values
            item = self._names.fresh()
            element = type.element if isinstance(type, ArrayType) else type.value
            for condition, reason in self.misfits(item, element, inside, path):
                yield f"coalesce(exists({items}, {item} -> coalesce({condition}, FALSE)), FALSE)", reason
        else:
            assert isinstance(type, ScalarType)
            reason = f"{where}out of range of {type.flink()}"
            if type.is_binary:
                yield f"({value} NOT RLIKE {_CHARACTERS})", f"{where}has characters that are no bytes"
            elif _twin_scalar(type) != type and type.name != "DATE":
                yield f"({value} IS NOT NULL AND {self._scalar(value, type, part)} IS NULL)", reason

    def converted(self, value: str, type: DataType, node: Node) -> str:
        """The table's value; null for one that does not fit."""
        part = filled(node)
        if node.is_nullable:
            value = member(value, _branch(part))
        if isinstance(type, RowType):
            nodes = {f.name: f.node for f in part.fields}
            pairs = [
                f"{literal(f.name)}, {self.converted(member(value, f.name), f.type, nodes[f.name])}"
                for f in type.fields
            ]
            return f"IF({value} IS NULL, {null(type.spark())}, named_struct({', '.join(pairs)}))"
        item = self._names.fresh()
        if isinstance(type, ArrayType):
            return f"transform({value}, {item} -> {self.converted(item, type.element, part.items)})"
        if isinstance(type, MapType):
            made = self.converted(item, type.value, part.values)
            return f"transform_values({value}, ({self._names.fresh()}, {item}) -> {made})"
        assert isinstance(type, ScalarType)
        return self._scalar(value, type, part)

    def _scalar(self, value: str, type: ScalarType, node: Node) -> str:
        if type.is_binary:
            return f"IF({value} RLIKE {_CHARACTERS}, encode({value}, 'ISO-8859-1'), NULL)"
        if type.name == "DECIMAL":
            length = f"unhex(lpad(hex(2 * length({value})), 2, '0'))"
            schema = _DECIMAL.format(38, type.parameters[1])
            made = f"from_avro(concat({length}, encode({value}, 'ISO-8859-1')), {schema}, map('mode', 'PERMISSIVE'))"
            fits = f"{value} RLIKE {_CHARACTERS} AND length({value}) BETWEEN 1 AND {_MOST_BYTES}"
            return f"IF({fits}, TRY_CAST({made} AS {type.spark()}), NULL)"
        if type.name == "DATE":
            return f"date_from_unix_date({value})"
        if type.name in _NARROW:
            return f"TRY_CAST({value} AS {type.spark()})"
        if type.name in ("TIMESTAMP", "TIMESTAMP_LTZ"):
            return self._moment(value, type, unit(node))
        return value

    def _moment(self, value: str, type: ScalarType, unit: str) -> str:
        most = _FARTHEST[unit]
        made = f"timestamp_{unit}(IF({value} BETWEEN -{most} AND {most}, {value}, NULL))"
        if type.name == "TIMESTAMP":
            made = f"CAST({made} AS TIMESTAMP_NTZ)"
        shorter = cut(type, 3 if unit == "millis" else 6, minus="try_subtract({}, {})")
        return shorter(made) if shorter else made


class _Writing:
    """From the table's values to those of the twin."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def converted(self, value: str, type: DataType, node: Node) -> str:
        part = filled(node)
        made = self._required(value, type, part)
        if not node.is_nullable:
            return made
        twin = _twin(type, node).spark()
        return f"IF({value} IS NULL, {null(twin)}, named_struct({literal(_branch(part))}, {made}))"

    def _required(self, value: str, type: DataType, node: Node) -> str:
        if isinstance(type, RowType):
            nodes = {f.name: f.node for f in node.fields}
            pairs = [
                f"{literal(f.name)}, {self.converted(member(value, f.name), f.type, nodes[f.name])}"
                for f in type.fields
            ]
            return f"named_struct({', '.join(pairs)})"
        item = self._names.fresh()
        if isinstance(type, ArrayType):
            return f"transform({value}, {item} -> {self.converted(item, type.element, node.items)})"
        if isinstance(type, MapType):
            made = self.converted(item, type.value, node.values)
            return f"transform_values({value}, ({self._names.fresh()}, {item}) -> {made})"
        assert isinstance(type, ScalarType)
        if type.is_binary:
            return f"decode({value}, 'ISO-8859-1')"
        if type.name == "DECIMAL":
            written = f"to_avro({value}, {_DECIMAL.format(*type.parameters)})"
            return f"decode(substring({written}, 2), 'ISO-8859-1')"
        if type.name == "DATE":
            return f"unix_date({value})"
        if type.name in _NARROW:
            return f"CAST({value} AS INT)"
        if type.name in ("TIMESTAMP", "TIMESTAMP_LTZ"):
            shorter = cut(type, 3 if unit(node) == "millis" else 6)
            kept = shorter(value) if shorter else value
            return f"unix_{unit(node)}(CAST({kept} AS TIMESTAMP))"
        return value
