"""Defines, for each format, the measured rows, the options and the function of Spark that does the same work."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro, to_avro

from benchmarks.rows import FLAT, NARROW, ORDERS, TEXT, Shape
from bridge.format_rules.avro_derive import derive
from bridge.schema import ArrayType, RowField, RowType, ScalarType

HALF = 0.5
_OF_AVRO = 0.7
_STRING = ScalarType("STRING")
_CSV_OPTIONS = "map('nullValue', 'null')"
_JSON_OPTIONS = "map('ignoreNullFields', 'false')"


@dataclass(frozen=True)
class Baseline:
    """Spark's functions: `decode` of column `payload`; `encode` of column `row`, or of `before` and `after`."""

    decode_name: str
    encode_name: str
    decode: Callable[[RowType], Column]
    encode: Callable[[RowType], Column]


@dataclass(frozen=True)
class Entry:
    """How one format is measured. `than` names another format, of whose speed this one must reach `than_goal`."""

    baseline: Baseline
    shapes: tuple[Shape, ...] = (ORDERS, NARROW)
    options: Mapping[str, str] = field(default_factory=dict)
    changes: bool = False
    needs_registry: bool = False
    than: str | None = None
    than_goal: float = _OF_AVRO


def _from_json(type: RowType) -> Column:
    return F.expr(f"from_json(CAST(payload AS STRING), '{type.spark()}')")


def _json(envelope: Callable[[RowType], RowType], parts: str) -> Baseline:
    """`parts`: the envelope that Spark writes, of `before`, `after` and the operation."""
    return Baseline(
        "from_json",
        "to_json",
        lambda row: _from_json(envelope(row)),
        lambda row: F.expr(f"CAST(to_json(named_struct({parts}), {_JSON_OPTIONS}) AS BINARY)"),
    )


def _op(insert: str, update: str, delete: str) -> str:
    return f"CASE WHEN before IS NULL THEN '{insert}' WHEN after IS NULL THEN '{delete}' ELSE '{update}' END"


def _record(**fields: str) -> Callable[[RowType], RowType]:
    """An envelope; a field is the table's row ('row'), an array of it ('rows') or a text ('text')."""

    def made(row: RowType) -> RowType:
        kinds = {"row": row, "rows": ArrayType(row), "text": _STRING}
        return RowType(tuple(RowField(name, kinds[kind]) for name, kind in fields.items()))

    return made


def _row(row: RowType) -> RowType:
    return row


_PAIR = _record(before="row", after="row", op="text")


def _avro_schema(type: RowType) -> str:
    """Returns a schema for the same bytes as the bridge's; Spark has no type for Flink's legacy timestamps."""
    return json.dumps(derive(type, legacy_timestamps=False))


def _avro(envelope: Callable[[RowType], RowType], parts: str, *, header: int = 0) -> Baseline:
    """Spark does not support Confluent's framing: it reads the document after the header, and writes no header."""
    payload = f"substring(payload, {header + 1})" if header else "payload"

    def decode(row: RowType) -> Column:
        return from_avro(F.expr(payload), _avro_schema(envelope(row)))

    def encode(row: RowType) -> Column:
        return to_avro(F.expr(parts), _avro_schema(envelope(row)))

    return Baseline("from_avro", "to_avro", decode, encode)


ENTRIES: Mapping[str, Entry] = {
    "json": Entry(
        Baseline(
            "from_json",
            "to_json",
            _from_json,
            lambda row: F.expr(f"CAST(to_json(row, {_JSON_OPTIONS}) AS BINARY)"),
        )
    ),
    "debezium-json": Entry(
        _json(_PAIR, f"'before', before, 'after', after, 'op', {_op('c', 'u', 'd')}"), changes=True
    ),
    "ogg-json": Entry(
        _json(
            _record(before="row", after="row", op_type="text"),
            f"'before', before, 'after', after, 'op_type', {_op('I', 'U', 'D')}",
        ),
        changes=True,
    ),
    "canal-json": Entry(
        _json(
            _record(old="rows", data="rows", type="text"),
            f"'old', IF(after IS NULL OR before IS NULL, NULL, array(before)), "
            f"'data', array(coalesce(after, before)), 'type', {_op('INSERT', 'UPDATE', 'DELETE')}",
        ),
        shapes=(FLAT, NARROW),  # it copies MySQL, whose rows have no nested types
        changes=True,
    ),
    "maxwell-json": Entry(
        _json(
            _record(data="row", old="row", type="text"),
            f"'data', coalesce(after, before), 'old', IF(after IS NULL, NULL, before), "
            f"'type', {_op('insert', 'update', 'delete')}",
        ),
        shapes=(FLAT, NARROW),  # it copies MySQL, whose rows have no nested types
        changes=True,
    ),
    "csv": Entry(
        Baseline(
            "from_csv",
            "to_csv",
            lambda row: F.expr(f"from_csv(CAST(payload AS STRING), '{row.spark()}', {_CSV_OPTIONS})"),
            lambda row: F.expr(f"CAST(to_csv(row, {_CSV_OPTIONS}) AS BINARY)"),
        ),
        shapes=(FLAT, NARROW),  # from_csv reads no nested types
        options={"null-literal": "null"},  # without it a null number is an empty text, which is not a number
    ),
    "raw": Entry(
        Baseline(
            "decode",
            "encode",
            lambda row: F.expr("named_struct('line', decode(payload, 'UTF-8'))"),
            lambda row: F.expr("encode(row.line, 'UTF-8')"),
        ),
        shapes=(TEXT,),
    ),
    "avro": Entry(_avro(_row, "row")),
    "avro-confluent": Entry(_avro(_row, "row", header=5), needs_registry=True, than="avro"),
    "debezium-avro-confluent": Entry(
        _avro(
            _PAIR,
            f"named_struct('before', before, 'after', after, 'op', {_op('c', 'u', 'd')})",
            header=6,  # Flink's envelope is nullable, which adds a byte
        ),
        changes=True,
        needs_registry=True,
    ),
}
"""By name, for every format of the catalog."""
