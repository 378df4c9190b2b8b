"""Arrow's reader of json gives what Spark's path gives, or refuses the document."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
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


def test_usual_documents_of_every_type_are_read_by_arrow(spark: SparkSession) -> None:
    documents = [
        json.dumps({name: value}, ensure_ascii=ascii).encode()
        for name, values in USUAL.items()
        for value in [*values, None]
        for ascii in (True, False)
    ]
    documents += [b"{}", b'{"other": {"i": [1, {"s": null}]}, "i": 5}', b'{ "i" : 1 , "s" : "x" }']
    assert compare(spark, spec(), documents) == len(documents)


ODD = [
    b'{"i": 1.0}', b'{"i": 1e3}', b'{"i": "1"}', b'{"i": -0}', b'{"i": 01}', b'{"i": +1}',
    b'{"i": 9223372036854775808}',
    b'{"t": 128}', b'{"sm": 32768}', b'{"n": 2147483648}', b'{"i": true}', b'{"i": [1]}',
    b'{"i": {}}', b'{"i": ""}',
    b'{"f": NaN}', b'{"f": Infinity}', b'{"f":-Inf}', b'{"x": NaN}', b'{"x": [-Infinity]}',
    b'{"f": "NaN"}', b'{"f": "1.5"}',
    b'{"f": 1e400}', b'{"f": 1.7976931348623159e308}', b'{"f": 1e-400}', b'{"f": -0}',
    b'{"f": .5}', b'{"f": 5.}',
    b'{"b": 1}', b'{"b": "true"}', b'{"b": "x"}', b'{"s": 5}', b'{"s": 1.10}', b'{"s": true}',
    b'{"s": {"a": 1}}', b'{"s": [1]}',
    b'{"s": "\\ud800"}', b'{"s": "\\ud83d\\ude00"}', b'{"s": "\\u0000"}', b'{"s": "\\x"}',
    b'{"s": "a\tb"}', b'{"s": "a\nb"}',
    b'{"s": "\xff"}', b'{"\xff": 1}', b"{\"s\": '1'}", b"{'s': 1}", b'{"s": "\xed\xa0\x80"}',
    b'{"s": "\xc0\x80"}',
    b'{"m": 1e2}', b'{"m": 1.1000000}', b'{"m": 1.239}', b'{"m": 123456789.1}', b'{"m": "1.5"}',
    b'{"m": "+5"}', b'{"m": "5."}',
    b'{"m": ""}', b'{"m": " 1"}', b'{"m": 1E400}', b'{"m": "1e2"}', b'{"m": "1e400"}',
    b'{"m": 0e-9}', b'{"m": -0.0}',
    b'{"w": 0.1234567890123}', b'{"w": 1234567890123456.5}', b'{"w": 12345678901234567.0}',
    b'{"w": 1e20}', b'{"w": 1e23}',
    b'{"w": 123456789012345.123}', b'{"k": 12345678901234567890.0}', b'{"k": 1.5}',
    b'{"k": "12345678901234567890"}',
    b'{"k": 123456789012345678, "f": 1.5}', b'{"k": 1e19}', b'{"w": 999999999999999.9}',
    b'{"w": "0.1234567890"}',
    b'{"d": "2026-02-30"}', b'{"d": "2026-2-3"}', b'{"d": 5}', b'{"d": ""}',
    b'{"d": "2026-11-23 "}', b'{"d": "2026-11-23T00"}', b'{"d": "12026-11-23"}',
    b'{"d": "0999-01-01"}',
    b'{"ts": "2026-11-23T10:00:00"}', b'{"ts": "2026-11-23 10:00:00.1239"}',
    b'{"ts": "2026-11-23 24:00:00"}',
    b'{"ts": "2026-11-23 10:00:60"}', b'{"ts": "2026-11-23 10:00"}',
    b'{"ts": "2026-11-23 10:00:00Z"}', b'{"ts": 1700000000}',
    b'{"ts": "2026-02-29 10:00:00"}', b'{"ts": "2026-11-23 10:00:00."}',
    b'{"z": "2026-11-23 10:00:00"}',
    b'{"z": "2026-11-23 10:00:00+01:00"}', b'{"z": "2026-11-23 10:00:00.1234567Z"}',
    b'{"z": "2026-11-23 10:00:00z"}',
    b'{"i": 1, "i": 2}', b'{"x": 1, "x": 2}', b'{"x": {"i": 1, "i": 2}}', b'{"i": null, "i": 2}',
    b'{"I": 1, "i": 2}', b'{"": 1}',
    b"", b" ", b"null", b"5", b'"{}"', b"[]", b'[{"i": 1}]', b"{", b"}", b"{}}", b"{}{}", b"{} {}",
    b'{"i": 1}{"i": 2}', b"{}\n{}",
    b' {"i": 1}', b'{"i": 1} ', b'{"i": 1}\n', b'\xef\xbb\xbf{"i": 1}',
    '{"i": 1}'.encode("utf-16-le"), b'{"i": 1}\x00', b'\x00{}',
    b'{"i": 1,}', b'{"i": 1 "s": ""}', b'{"i" 1}', b"{i: 1}", b'{"i": 1} // c }', b'{/* c */}',
    b'{"i": tru}', b'{"i": nul}',
    b'{"a": ' + b"[" * 300 + b"]" * 300 + b"}", b'{"a": ' + b"[" * 1200 + b"]" * 1200 + b"}",
    b'{"a": ' + b"1" * 999 + b"}", b'{"a": ' + b"1" * 1200 + b"}",
    b'{"a": "' + b"1" * 1200 + b'"}', b'{"s": "' + b"x" * 5000 + b'"}',
]  # fmt: skip


def test_odd_documents_are_read_alike_or_refused(spark: SparkSession) -> None:
    assert compare(spark, spec(), ODD) >= 15


def test_iso_timestamps(spark: SparkSession) -> None:
    iso = FormatSpec("json", {"timestamp-format.standard": "ISO-8601"}, spec().row, ())
    usual = [b'{"ts": "2026-11-23T10:00:00.12"}', b'{"z": "2026-11-23T10:00:00Z"}', b'{"d": "2026-11-23"}']
    odd = [b'{"ts": "2026-11-23 10:00:00"}', b'{"ts": "2026-11-23T10:00"}', b'{"z": "2026-11-23T10:00Z"}']
    assert compare(spark, iso, [*usual, *odd]) == len(usual)


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
def _documents(draw: st.DrawFn) -> bytes:
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


@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(_documents(), min_size=150, max_size=200))
def test_drawn_documents_are_read_alike_or_refused(spark: SparkSession, documents: list[bytes]) -> None:
    compare(spark, spec(), documents)


@pytest.mark.slow
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(_documents(), min_size=150, max_size=200))
def test_many_drawn_documents_are_read_alike_or_refused(spark: SparkSession, documents: list[bytes]) -> None:
    compare(spark, spec(), documents)


def test_a_batch_is_read_row_by_row_in_its_order() -> None:
    documents = [json.dumps({"i": n, "s": "x" * (n % 50)}).encode() for n in range(5000)]
    rows = made(spec()).decode(pa.array(documents, pa.binary())).select(["i", "s"]).to_pylist()
    assert rows == [{"i": n, "s": "x" * (n % 50)} for n in range(5000)]


@pytest.mark.parametrize(
    "documents",
    [
        [b'{"i": 1}{"i": 2}', b""],
        [b'{"i": 1}\n{"i": 2}', b" "],
        [b'{"i": 1}\n{"i": 2}', b"{}"],
        [b'{"s": "a', b'b"}'],
        [b'{"s": "a}', b'{b"}'],
        [b'{"x": [{}', b"{}]}"],
    ],
)
def test_documents_do_not_make_up_for_each_other(documents: list[bytes]) -> None:
    with pytest.raises(NeedsFullDecode):
        made(spec()).decode(pa.array(documents, pa.binary()))


def test_no_payload_gives_no_row_of_all_columns() -> None:
    empty = made(spec()).decode(pa.array([], pa.binary()))
    assert empty.num_rows == 0 and empty.column_names == list(TYPES)


def test_a_reason_has_no_payload() -> None:
    with pytest.raises(NeedsFullDecode) as refused:
        made(spec()).decode(pa.array([b'{"i": "secret"}'], pa.binary()))
    assert "secret" not in str(refused.value) and str(refused.value)


@pytest.mark.parametrize(
    ("types", "options", "reason"),
    [
        ({"a": "FLOAT"}, {}, "field 'a' of a json document is FLOAT"),
        ({"a": "BYTES"}, {}, "field 'a' of a json document is BYTES"),
        ({"a": "ARRAY<INT>"}, {}, "field 'a' of a json document is ARRAY<INT>"),
        ({"a": "INT"}, {"ignore_parse_errors": True}, "json has the option 'ignore-parse-errors'"),
        ({"a": "INT"}, {"fail_on_missing_field": True}, "json has the option 'fail-on-missing-field'"),
    ],
)
def test_what_is_left_to_spark(types: dict[str, str], options: dict[str, Any], reason: str) -> None:
    assert arrow_decoder(spec(types, **options)) == reason


def test_types_are_those_of_spark(spark: SparkSession) -> None:
    """The frame that Spark makes of the same row has the same Arrow types."""
    row = spec().row
    expected = (
        spark.createDataFrame([], row.spark().removeprefix("STRUCT<").removesuffix(">")).toArrow().schema
    )
    assert made(spec()).decode(pa.array([], pa.binary())).schema.equals(expected)


def test_years_that_python_does_not_know_are_left_to_spark() -> None:
    documents = [b'{"d": "0000-01-01"}', b'{"d": "-0001-01-01"}', b'{"ts": "0000-01-01 00:00:00"}']
    assert by_arrow(spec(), documents) == [None] * 3


def test_doubles_are_finite() -> None:
    for document in (b'{"f": 1.7976931348623159e308}', b'{"f": NaN}'):
        assert by_arrow(spec(), [document]) == [None]
    (row,) = by_arrow(spec(), [b'{"f": 1.7976931348623157e308}'])
    assert row is not None and math.isfinite(row["f"])
