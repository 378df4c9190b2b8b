"""Arrow's decoder of raw bytes gives what Spark's paths give, or leaves them to these."""

from __future__ import annotations

import pickle
import struct

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from bridge.arrow_formats.arrow_types import arrow_schema
from bridge.arrow_formats.catalog import arrow_decoder
from bridge.definition import FormatSpec
from bridge.ways import NotThisWay
from tests.arrow_formats.against_spark import array, by_arrow, compare, made, spec
from tests.refusals import refusal

_CODES = {
    "BOOLEAN": "B",
    "TINYINT": "b",
    "SMALLINT": "h",
    "INT": "i",
    "BIGINT": "q",
    "FLOAT": "f",
    "DOUBLE": "d",
}


def of(type: str, **options: str) -> FormatSpec:
    return spec("raw", {"x": type}, **options)


@settings(max_examples=1, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(data=st.data())
@pytest.mark.parametrize("endianness", ["big-endian", "little-endian"])
@pytest.mark.parametrize("type", _CODES)
def test_numbers(spark: SparkSession, type: str, endianness: str, data: st.DataObject) -> None:
    size = struct.calcsize(_CODES[type])
    drawn = data.draw(st.lists(st.binary(min_size=size, max_size=size), min_size=50, max_size=50))
    usual = [bytes(size), b"\xff" + bytes(size - 1), bytes(size - 1) + b"\1"]
    wrong = [b"", bytes(size + 1), bytes(size - 1)]
    read = compare(spark, of(type, endianness=endianness), [*usual, *drawn, *wrong])
    assert len(usual) < read <= len(usual) + len(drawn)


@pytest.mark.parametrize("type", ["STRING", "VARCHAR(3)", "BYTES"])
def test_text_and_bytes(spark: SparkSession, type: str) -> None:
    good = [b"", b"abc", "é名😀".encode(), b"\0", b"x" * 5000]
    odd = [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", "é".encode()[:1]]
    assert compare(spark, of(type), [*good, *odd]) == len(good) + (len(odd) if type == "BYTES" else 0)


def test_any_byte_but_zero_is_true() -> None:
    assert by_arrow(of("BOOLEAN"), [b"\0", b"\1", b"\xff"]) == [{"x": False}, {"x": True}, {"x": True}]


@pytest.mark.parametrize(
    ("type", "payload", "reason"),
    [
        ("INT", b"\0\0\0", "a document is truncated, or not of its schema"),
        ("INT", b"secret", "a document is longer than its type, INT"),
        ("STRING", b"secret\xff", "a document is not valid UTF-8"),
        ("FLOAT", b"\x7f\xc0\0\0", "a number is NaN, which Java writes in one way"),
    ],
)
def test_a_reason_has_no_payload(type: str, payload: bytes, reason: str) -> None:
    with pytest.raises(NotThisWay) as needed:
        made(of(type)).decode(array([payload]))
    assert str(needed.value) == reason
    assert needed.value.__context__ is None or needed.value.__suppress_context__


def test_other_charsets_are_left_to_spark() -> None:
    assert refusal(lambda: arrow_decoder(of("STRING", charset="latin1"))) == "raw.charset is ISO-8859-1"
    assert refusal(lambda: arrow_decoder(of("BYTES", charset="latin1"))) is None


def test_no_payload_gives_no_row() -> None:
    assert made(of("INT")).decode(array([])).equals(arrow_schema(of("INT").row).empty_table())


def test_a_decoder_is_sent_to_workers() -> None:
    decoder = made(of("BIGINT"))
    sent = pickle.loads(pickle.dumps(decoder))
    assert sent == decoder and sent.decode(array([bytes(7) + b"\5"]))["x"].to_pylist() == [5]
