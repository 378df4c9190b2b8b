"""Arrow's reader of json gives what Spark's path gives, or refuses the document."""

from __future__ import annotations

import json
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from bridge.arrow_formats.base import NeedsFullDecode
from bridge.arrow_formats.catalog import arrow_decoder
from bridge.definition import FormatSpec
from tests.arrow_formats.against_spark import TYPES, USUAL, by_arrow, compare, documents, made, spec


def test_usual_documents_of_every_type_are_read_by_arrow(spark: SparkSession) -> None:
    usual = [
        json.dumps({name: value}, ensure_ascii=ascii).encode()
        for name, values in USUAL.items()
        for value in [*values, None]
        for ascii in (True, False)
    ]
    usual += [b"{}", b'{"other": {"i": [1, {"s": null}]}, "i": 5}', b'{ "i" : 1 , "s" : "x" }']
    assert compare(spark, spec(), usual) == len(usual)


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


@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(documents(), min_size=150, max_size=200))
def test_drawn_documents_are_read_alike_or_refused(spark: SparkSession, drawn: list[bytes]) -> None:
    compare(spark, spec(), drawn)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(documents(), min_size=150, max_size=200))
def test_many_drawn_documents_are_read_alike_or_refused(spark: SparkSession, drawn: list[bytes]) -> None:
    compare(spark, spec(), drawn)


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
