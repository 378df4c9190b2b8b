"""Flink's formats avro, in the binary or the JSON encoding, and avro-confluent.

In the JSON encoding ('avro.encoding' = 'json') the schema decides how values are written, as in Avro's specification: a
value of a union that is not null is an object of one member, named after its branch; bytes, and decimals in them, are
text of the characters 0 to 255; times are numbers. The json format reads and writes the documents as rows of another
type, the JSON row; here values are converted between it and the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from bridge.format_rules.avro_given import derived_schema, framed_schema
from bridge.format_rules.avro_schema import Node
from bridge.format_rules.json_options import JsonOptions, Numbers
from bridge.formats.avro.decode import bound_memory, document
from bridge.formats.avro.encode import avro_bytes, non_null_branch, null_failures, timestamp_unit
from bridge.formats.avro.framing import FramedDecoder, FramedEncoder, Subject
from bridge.formats.avro.registry_client import WriterSchema
from bridge.formats.avro.schema_resolution import resolve, truncation
from bridge.formats.base import NEEDS_FULL_DECODE, NOTHING, Options
from bridge.formats.json.decode import JsonDecoder
from bridge.formats.json.encode import JsonEncoder
from bridge.formats.sql import Names, RowDecoder, SqlDecoder, SqlEncoder, apply, let, literal, member, null
from bridge.schema import ArrayType, DataType, MapType, RowField, RowType, ScalarType

_EMPTY = "empty document"


class AvroFormat:
    """Reads and writes one record per document, of the schema that Flink derives from the table."""

    name = "avro"

    def decoder(
        self, row: RowType, options: Options, *, metadata: RowType = NOTHING, key: Sequence[str] = ()
    ) -> AvroDecoder | _AvroJsonDecoder:
        """See Format.decoder."""
        decoder = _AvroJsonDecoder if _is_json(options) else AvroDecoder
        return decoder(row, derived_schema(self.name, row, options))

    def encoder(self, row: RowType, options: Options) -> AvroEncoder:
        """See Format.encoder."""
        encoder = _AvroJsonEncoder if _is_json(options) else AvroEncoder
        return encoder(row, derived_schema(self.name, row, options))


def _is_json(options: Options) -> bool:
    return str(options.get("encoding", "binary")) == "json"


class AvroDecoder(SqlDecoder):
    """Reads one row per document. A value that does not fit needs a full decode."""

    def __init__(self, row: RowType, schema: Node) -> None:
        self.row, self.schema = row, schema

    def document(self, payload: str, names: Names, *, fast: bool) -> str:
        bound_memory()
        reader = resolve(self.row.required(), self.schema, self.schema)
        decoded = document(
            payload, self.schema, reader, names, lambda v: self.good(v, names), self.bad, fast=fast
        )
        empty = f"WHEN length({payload}) = 0 THEN {self.bad(literal(_EMPTY))} " if self.row.fields else ""
        return f"CASE WHEN {payload} IS NULL THEN {self.bad(null('STRING'))} {empty}ELSE {decoded} END"


class AvroEncoder(SqlEncoder):
    """Writes one record per row. Fails for a null where the table's type is NOT NULL."""

    def __init__(self, row: RowType, schema: Node) -> None:
        self.row, self.schema = row, schema

    def typed(self, row: Column) -> Column:
        # to_avro takes exactly these types; Spark drops a cast to the same type.
        return row.cast(self.row.spark())

    def payload(self, row: str, names: Names) -> str:
        return avro_bytes(row, self.row, self.schema, names, AvroFormat.name)


_NARROW = ("TINYINT", "SMALLINT", "DATE")
_TIMESTAMPS = ("TIMESTAMP", "TIMESTAMP_LTZ")
_CHARACTERS = r"'^[\\u0000-\\u00ff]*$'"
_DECIMAL = '\'{{"type": "bytes", "logicalType": "decimal", "precision": {}, "scale": {}}}\''
_MOST_BYTES = 16
"""The two's complement of 38 digits has at most so many bytes, whose number takes one byte in Avro."""
_FARTHEST = {"millis": 9_223_372_036_854_775, "micros": 2**63 - 1}
"""The largest number of each unit that Spark's timestamps can represent."""

_Converter = Callable[[str, DataType, Node, Names], str]


class _AvroJsonDecoder(RowDecoder):
    """Reads one record per document; every field must be present, as Avro's decoder demands it. A value that does not
    fit needs a full decode."""

    def __init__(self, row: RowType, schema: Node) -> None:
        self.row = row
        self._schema = schema
        options = JsonOptions(fail_on_missing_field=True, numbers=Numbers.VALUES)
        self._json = JsonDecoder(_json_row(row, schema), options)

    def decode(self, payload: Column) -> Column:
        """See Decoder.decode."""
        return self._converted(self._json.decode(payload), fast=False)

    def decode_fast(self, frame: DataFrame, payload: Column, name: str) -> DataFrame:
        """See FastPathDecoder.decode_fast."""
        document = f"{name}_document"
        frame = self._json.decode_fast(frame, payload, document)
        return frame.withColumn(name, self._converted(F.col(document), fast=True)).drop(document)

    def _converted(self, decoded: Column, *, fast: bool) -> Column:
        names = Names()
        document = names.fresh()
        return apply(decoded, self._document(document, names, fast=fast), document)

    def _document(self, payload: str, names: Names, *, fast: bool) -> str:
        """`payload` is what the json format has decoded."""
        bad = self.bad

        def reason(text: str) -> str:
            return literal(NEEDS_FULL_DECODE if fast else text)

        def row_or_error(value: str) -> str:
            misfits = " ".join(
                f"WHEN {condition} THEN {reason(problem)}"
                for condition, problem in _misfits(value, self.row, self._schema, names, "")
            )
            row = _to_table(value, self.row, self._schema, names)
            good = self.good(row, names)
            error = f"CASE {misfits} END" if misfits else null("STRING")
            return let(names, error, lambda e: f"IF({e} IS NULL, {good}, {bad(e)})")

        return (
            f"CASE WHEN {payload}.error IS NOT NULL OR {payload}.rows IS NULL THEN {bad(f'{payload}.error')} "
            f"WHEN size({payload}.rows) != 1 THEN {bad(reason('not one record'))} "
            f"ELSE {let(names, f'{payload}.rows[0].row', row_or_error)} END"
        )


class _AvroJsonEncoder(AvroEncoder):
    """Writes Avro's JSON."""

    def payload(self, row: str, names: Names) -> str:
        inner, json = names.lambdas(), JsonEncoder(_json_row(self.row, self.schema), JsonOptions())
        failing = null_failures(row, self.row, self.schema, inner, AvroFormat.name)
        json_row = _to_json(row, self.row, self.schema, inner)
        made = f"CASE WHEN {row} IS NULL THEN NULL {failing} ELSE {json_row} END"
        return let(names, made, lambda value: json.payload(value, names))


def _json_row(row: RowType, schema: Node) -> RowType:
    nodes = {f.name: f.node for f in schema.fields}
    return RowType(tuple(RowField(f.name, _json_type(f.type, nodes[f.name])) for f in row.fields))


def _json_type(type: DataType, node: Node) -> DataType:
    """Return the type of what a document holds for a value of `type`."""
    part = non_null_branch(node)
    if isinstance(type, RowType):
        made: DataType = _json_row(type, part)
    elif isinstance(type, ArrayType):
        made = ArrayType(_json_type(type.element, part.items))
    elif isinstance(type, MapType):
        made = MapType(type.key, _json_type(type.value, part.values))
    else:
        assert isinstance(type, ScalarType)
        made = _json_scalar(type)
    return RowType((RowField(_branch(part), made),)) if node.is_nullable else made


def _json_scalar(type: ScalarType) -> ScalarType:
    if type.name == "DECIMAL" or type.is_binary:
        return ScalarType("STRING")
    if type.name in _NARROW:
        return ScalarType("INT")
    if type.name in _TIMESTAMPS:
        return ScalarType("BIGINT")
    return type


def _branch(node: Node) -> str:
    return node.full_name if node.kind in ("record", "enum", "fixed") else node.kind


def _misfits(value: str, type: DataType, node: Node, names: Names, path: str) -> Iterator[tuple[str, str]]:
    """Yield (SQL condition, reason) for every way in which a `value` of the JSON row does not fit the table's type."""
    where, part = f"field '{path}': ", non_null_branch(node)
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
            for condition, reason in _misfits(member(value, f.name), f.type, nodes[f.name], names, below):
                yield (f"({value} IS NOT NULL AND {condition})" if path else condition), reason
    elif isinstance(type, ArrayType | MapType):
        items = value if isinstance(type, ArrayType) else f"map_values({value})"
        item, (item_type, item_node) = names.fresh(), _item(type, part)
        for condition, reason in _misfits(item, item_type, item_node, names, path):
            yield f"coalesce(exists({items}, {item} -> coalesce({condition}, FALSE)), FALSE)", reason
    else:
        assert isinstance(type, ScalarType)
        if type.is_binary:
            yield f"({value} NOT RLIKE {_CHARACTERS})", f"{where}has characters that are no bytes"
        elif _json_scalar(type) != type and type.name != "DATE":
            unfit = f"({value} IS NOT NULL AND {_scalar_to_table(value, type, part)} IS NULL)"
            yield unfit, f"{where}out of range of {type.flink()}"


def _to_table(value: str, type: DataType, node: Node, names: Names) -> str:
    """Return the table's value of a `value` in the JSON row; null for one that does not fit."""
    part = non_null_branch(node)
    if node.is_nullable:
        value = member(value, _branch(part))
    if isinstance(type, ScalarType):
        return _scalar_to_table(value, type, part)
    made = _with_parts(value, type, part, names, _to_table)
    return f"IF({value} IS NULL, {null(type.spark())}, {made})" if isinstance(type, RowType) else made


def _to_json(value: str, type: DataType, node: Node, names: Names) -> str:
    """Return the JSON row's value of a table's `value`, which is null only where `node` is nullable."""
    part = non_null_branch(node)
    if isinstance(type, ScalarType):
        made = _scalar_to_json(value, type, part)
    else:
        made = _with_parts(value, type, part, names, _to_json)
    if not node.is_nullable:
        return made
    absent = null(_json_type(type, node).spark())
    return f"IF({value} IS NULL, {absent}, named_struct({literal(_branch(part))}, {made}))"


def _with_parts(value: str, type: DataType, node: Node, names: Names, convert: _Converter) -> str:
    """Return `value`, a row, array or map, with its fields or items converted."""
    if isinstance(type, RowType):
        nodes = {f.name: f.node for f in node.fields}
        pairs = [
            f"{literal(f.name)}, {convert(member(value, f.name), f.type, nodes[f.name], names)}"
            for f in type.fields
        ]
        return f"named_struct({', '.join(pairs)})"
    assert isinstance(type, ArrayType | MapType)
    item = names.fresh()
    made = convert(item, *_item(type, node), names)
    if isinstance(type, ArrayType):
        return f"transform({value}, {item} -> {made})"
    return f"transform_values({value}, ({names.fresh()}, {item}) -> {made})"


def _item(type: ArrayType | MapType, node: Node) -> tuple[DataType, Node]:
    """Return the type and the schema of an array's elements or a map's values."""
    return (type.element, node.items) if isinstance(type, ArrayType) else (type.value, node.values)


def _scalar_to_table(value: str, type: ScalarType, node: Node) -> str:
    if type.is_binary:
        return f"IF({value} RLIKE {_CHARACTERS}, encode({value}, 'ISO-8859-1'), NULL)"
    if type.name == "DECIMAL":
        length = f"unhex(lpad(hex(2 * length({value})), 2, '0'))"
        schema = _DECIMAL.format(38, type.parameters[1])
        made = (
            f"from_avro(concat({length}, encode({value}, 'ISO-8859-1')), {schema}, map('mode', 'PERMISSIVE'))"
        )
        fits = f"{value} RLIKE {_CHARACTERS} AND length({value}) BETWEEN 1 AND {_MOST_BYTES}"
        return f"IF({fits}, TRY_CAST({made} AS {type.spark()}), NULL)"
    if type.name == "DATE":
        return f"date_from_unix_date({value})"
    if type.name in _NARROW:
        return f"TRY_CAST({value} AS {type.spark()})"
    return _timestamp_to_table(value, type, timestamp_unit(node)) if type.name in _TIMESTAMPS else value


def _timestamp_to_table(value: str, type: ScalarType, unit: str) -> str:
    most = _FARTHEST[unit]
    made = f"timestamp_{unit}(IF({value} BETWEEN -{most} AND {most}, {value}, NULL))"
    if type.name == "TIMESTAMP":
        made = f"CAST({made} AS TIMESTAMP_NTZ)"
    truncate = truncation(type, 3 if unit == "millis" else 6, minus="try_subtract({}, {})")
    return truncate(made) if truncate else made


def _scalar_to_json(value: str, type: ScalarType, node: Node) -> str:
    if type.is_binary:
        return f"decode({value}, 'ISO-8859-1')"
    if type.name == "DECIMAL":
        document = f"to_avro({value}, {_DECIMAL.format(*type.parameters)})"
        return f"decode(substring({document}, 2), 'ISO-8859-1')"
    if type.name == "DATE":
        return f"unix_date({value})"
    if type.name in _NARROW:
        return f"CAST({value} AS INT)"
    if type.name in _TIMESTAMPS:
        truncate = truncation(type, 3 if timestamp_unit(node) == "millis" else 6)
        truncated = truncate(value) if truncate else value
        return f"unix_{timestamp_unit(node)}(CAST({truncated} AS TIMESTAMP))"
    return value


class AvroConfluentFormat:
    """Reads and writes one record per document, whose first bytes name the writer's schema."""

    name = "avro-confluent"

    def decoder(
        self, row: RowType, options: Options, *, metadata: RowType = NOTHING, key: Sequence[str] = ()
    ) -> _RowDecoder:
        """See Format.decoder."""
        own, _ = framed_schema(self.name, row, options)
        return _RowDecoder(row, row.required(), own, Subject(self.name, options), key=key)

    def encoder(self, row: RowType, options: Options) -> _RowEncoder:
        """See Format.encoder. Raises OptionError without a subject."""
        return _RowEncoder(row, *framed_schema(self.name, row, options), Subject(self.name, options))


class _RowDecoder(FramedDecoder):
    def with_schemas(self, writers: Mapping[int, WriterSchema]) -> _RowDecoder:
        return _RowDecoder(self.row, self.type, self.own, self.subject, writers, self.key)


class _RowEncoder(FramedEncoder, SqlEncoder):
    """Registers the schema, or looks it up, before Spark reads a row."""

    def typed(self, row: Column) -> Column:
        return row.cast(self.type.spark())

    def payload(self, row: str, names: Names) -> str:
        return self.framed(row, names)
