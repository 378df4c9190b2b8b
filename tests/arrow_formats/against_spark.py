"""Compares an Arrow decoder with Spark's path, and draws documents for both."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from bridge.arrow_formats.base import ArrowDecoder, NeedsFullDecode
from bridge.arrow_formats.catalog import arrow_decoder
from bridge.columns import col
from bridge.ddl import parse
from bridge.definition import FormatSpec
from bridge.formats import catalog
from bridge.formats.base import NEEDS_FULL_DECODE, FastPathDecoder
from bridge.schema import RowField, RowType

TYPES: dict[str, str] = {
    "i": "BIGINT",
    "n": "INT",
    "sm": "SMALLINT",
    "t": "TINYINT",
    "f": "DOUBLE",
    "b": "BOOLEAN",
    "s": "STRING",
    "v": "VARCHAR(5)",
    "m": "DECIMAL(10, 2)",
    "w": "DECIMAL(38, 9)",
    "k": "DECIMAL(20, 0)",
    "d": "DATE",
    "ts": "TIMESTAMP(3)",
    "z": "TIMESTAMP_LTZ(6)",
}


def spec(types: dict[str, str] | None = None, **options: Any) -> FormatSpec:
    columns = ", ".join(f"`{name}` {type}" for name, type in (types or TYPES).items())
    table = parse(f"CREATE TABLE t ({columns}) WITH ('connector' = 'kafka')")
    fields = tuple(RowField(c.name, c.type) for c in table.schema.physical)
    return FormatSpec("json", {k.replace("_", "-"): v for k, v in options.items()}, RowType(fields), ())


def made(given: FormatSpec) -> ArrowDecoder:
    decoder = arrow_decoder(given)
    assert not isinstance(decoder, str), decoder
    return decoder


def by_arrow(given: FormatSpec, documents: Sequence[bytes]) -> list[dict[str, Any] | None]:
    """The row of each document, decoded alone; None where it is refused."""
    decoder, rows = made(given), list[dict[str, Any] | None]()
    for document in documents:
        try:
            rows += decoder.decode(pa.array([document], pa.binary())).to_pylist()
        except NeedsFullDecode:
            rows.append(None)
    return rows


def by_spark(spark: SparkSession, given: FormatSpec, documents: Sequence[bytes]) -> list[list[Any]]:
    """The outcomes (rows, error) of each document by the full decode and by the fast path."""
    decoder = catalog.get("json").decoder(given.row, given.options)
    assert isinstance(decoder, FastPathDecoder)
    frame = spark.createDataFrame(list(enumerate(documents)), "at int, payload binary")
    frame = decoder.decode_fast(frame, col("payload"), "fast").withColumn(
        "full", decoder.decode(col("payload"))
    )
    rows = frame.select("at", "fast", "full").toArrow().to_pylist()
    return [[row["full"], row["fast"]] for row in sorted(rows, key=lambda r: r["at"])]


def bits(row: dict[str, Any]) -> dict[str, Any]:
    """The row with doubles by their bits, and decimals with their scale."""
    return {
        name: struct.pack(">d", value)
        if isinstance(value, float)
        else str(value)
        if value is not None
        else None
        for name, value in row.items()
    }


def compare(spark: SparkSession, given: FormatSpec, documents: Sequence[bytes]) -> int:
    """Assert that no document is read otherwise; returns the number of documents that Arrow has read."""
    accepted = 0
    outcomes = by_spark(spark, given, documents)
    for document, row, outcome in zip(documents, by_arrow(given, documents), outcomes, strict=True):
        if row is None:
            continue
        accepted += 1
        for result in outcome:
            if result["error"] == NEEDS_FULL_DECODE:
                continue
            assert result["error"] is None, (document, row, result)
            (only,) = result["rows"]
            assert only["kind"] == "+I"
            assert bits(only["row"]) == bits(row), document
    return accepted


USUAL: dict[str, list[Any]] = {
    "i": [1, -1, 2**63 - 1, -(2**63), 0],
    "n": [2**31 - 1, -(2**31)],
    "sm": [2**15 - 1, -(2**15)],
    "t": [127, -128],
    "f": [1.5, 1e-300, 4.9e-324, 1.7976931348623157e308, 3, 0.1, 123456789.123456789],
    "b": [True, False],
    "s": ["", "a", "ä€😀", 'quote " slash \\ / tab \t', "\u0000", "NaN", "x" * 600],
    "v": ["longer than five"],
    "m": [1, 0.5, 12345678.25, -3.1, 0],
    "w": [1, 0.123456789, 99999.5, 123456789012345678901234567],
    "k": [12345678901234567890, 0, -1],
    "d": ["2026-11-23", "1000-01-01", "9999-12-31", "2024-02-29"],
    "ts": ["2026-11-23 10:00:00", "1969-12-31 23:59:59.999", "2026-11-23 10:00:00.1"],
    "z": ["2026-11-23 10:00:00Z", "1582-10-10 00:00:00.123456Z"],
}


_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=True),
    st.decimals(allow_nan=False, allow_infinity=False, places=3).map(str),
    st.text(max_size=6),
    st.sampled_from([value for values in USUAL.values() for value in values]),
)
_values = st.recursive(
    _scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.sampled_from("isx"), inner)),
    max_leaves=3,
)
_fitting = st.sampled_from([(name, value) for name, values in USUAL.items() for value in values])


_damage = st.one_of(
    st.binary(max_size=2), st.sampled_from([b"}{", b"0", b".", b"e", b"\n", b"-", b'"', b","])
)


@st.composite
def documents(draw: st.DrawFn) -> bytes:
    """A document, mostly one that fits the row, then perhaps damaged."""
    fields = draw(
        st.lists(
            st.one_of(_fitting, _fitting, st.tuples(st.sampled_from([*TYPES, "x"]), _values)), max_size=4
        )
    )
    space = draw(st.sampled_from(["", " ", "\t"]))
    inner = f",{space}".join(
        f"{json.dumps(name)}{space}:{space}{json.dumps(value, ensure_ascii=draw(st.booleans()))}"
        for name, value in fields
    )
    text = bytearray("{" + inner + "}", "utf-8", "surrogatepass")
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        at = draw(st.integers(0, len(text)))
        text[at : at + draw(st.integers(0, 2))] = draw(
            st.one_of(
                st.binary(max_size=2), st.sampled_from([b"}{", b"0", b".", b"e", b"\n", b"-", b'"', b","])
            )
        )
    return bytes(text)
