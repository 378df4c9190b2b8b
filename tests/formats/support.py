"""Formats run over many payloads or rows in one Spark job."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_type

from bridge.formats.base import PAYLOAD, ChangeEncoder, Decoder, Encoder, FastPathDecoder
from bridge.schema import ArrayType, DataType, MapType, RowField, RowType, ScalarType

Outcome = tuple[list[tuple[str, Any]] | None, str | None]


def _arrow_type(type: T.DataType) -> pa.DataType:
    """Spark's type in Arrow, whose TIMESTAMP asks for a time zone since Spark 4.2."""
    named = "timezone" in signature(to_arrow_type).parameters
    return to_arrow_type(type, timezone="UTC") if named else to_arrow_type(type)


def scalar(name: str, *parameters: int) -> ScalarType:
    return ScalarType(name, parameters)


def row_type(**fields: Any) -> RowType:
    return RowType(tuple(RowField(name, type) for name, type in fields.items()))


def decode_all(
    spark: SparkSession,
    decoder: Decoder,
    payloads: Sequence[bytes | None],
    *,
    fast: bool = False,
) -> list[Outcome]:
    """The rows of each payload as (kind, plain values by name), and its error; by the fast path if `fast`."""
    frame = _frame(spark, "BINARY", payloads)
    if fast:
        assert isinstance(decoder, FastPathDecoder)
        decoded = decoder.decode_fast(frame, F.col("x"), "d").select("i", "d")
    else:
        decoder = decoder.for_payloads(frame.select(F.col("x").alias(PAYLOAD)))
        decoded = frame.select("i", decoder.decode(F.col("x")).alias("d"))
    return [
        (None if r.d.rows is None else [(x.kind, plain(x.row)) for x in r.d.rows], r.d.error)
        for r in sorted(decoded.collect())
    ]


def encode_all(
    spark: SparkSession, encoder: Encoder | ChangeEncoder, row: RowType, rows: Sequence[Any]
) -> list[bytes | None]:
    """The bytes of each row; a row is a tuple in the order of `row`, or None."""
    frame = _frame(spark, row.spark(), [_arrow(r, row) for r in rows])
    return _bytes(encoded(encoder, frame, "e", F.col("x")))


def encoded(
    encoder: Encoder | ChangeEncoder, frame: DataFrame, name: str, row: Column, before: Column | None = None
) -> DataFrame:
    """`frame` with the column `name`: the bytes of the row, or of its change from `before`."""
    if hasattr(encoder, "encode_change"):
        return encoder.encode_change(frame, F.lit(None) if before is None else before, row, name)
    return encoder.encode(frame, row, name)


def encode_changes(
    spark: SparkSession, encoder: Encoder | ChangeEncoder, row: RowType, changes: Sequence[tuple[Any, Any]]
) -> list[bytes | None]:
    """The bytes of each (before, after) of a CDC format's encoder; each a row as for `encode_all`."""
    pair = row_type(before=row, after=row)
    frame = _frame(spark, pair.spark(), [_arrow(change, pair) for change in changes])
    return _bytes(encoded(encoder, frame, "e", F.col("x.after"), F.col("x.before")))


def _bytes(written: DataFrame) -> list[bytes | None]:
    """The column `e`, in order."""
    return [None if r.e is None else bytes(r.e) for r in sorted(written.drop("x").collect())]


def _frame(spark: SparkSession, type: str, values: Sequence[Any]) -> DataFrame:
    """Columns i and x, by way of Arrow: a list would cost a Python worker per job."""
    made = pa.array(values, type=_arrow_type(T.DataType.fromDDL(type)))
    return spark.createDataFrame(pa.table({"i": pa.array(range(len(values))), "x": made})).coalesce(1)


def _arrow(value: Any, type: DataType) -> Any:
    """`value` as pyarrow wants it: a ROW as dict, a MAP as pairs."""
    if value is None:
        return None
    if isinstance(type, RowType):
        return {f.name: _arrow(v, f.type) for f, v in zip(type.fields, value, strict=True)}
    if isinstance(type, ArrayType):
        return [_arrow(v, type.element) for v in value]
    if isinstance(type, MapType):
        return [(k, _arrow(v, type.value)) for k, v in value.items()]
    return value


def plain(value: Any) -> Any:
    """Rows as dicts and binary as bytes, on every level; NaN as a text, so that it equals itself."""
    if isinstance(value, Row):
        return {k: plain(v) for k, v in zip(value.__fields__, value, strict=True)}
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, bytearray):
        return bytes(value)
    return "NaN" if isinstance(value, float) and value != value else value
