"""The raw format: bytes of one column, as Flink lays them out."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bridge.errors import DefinitionError, OptionError, UnsupportedError
from bridge.formats import catalog
from bridge.formats.base import Decoder
from bridge.schema import ArrayType, DataType, ScalarType
from tests.formats.support import Outcome, decode_all, encode_all, row_type, scalar

_NUMBERS: Mapping[str, tuple[str, list[Any]]] = {
    "TINYINT": ("b", [0, -1, 127, -128]),
    "SMALLINT": ("h", [1, -2, 2**15 - 1, -(2**15)]),
    "INT": ("i", [1, -2, 2**31 - 1, -(2**31)]),
    "BIGINT": ("q", [1, -2, 2**63 - 1, -(2**63)]),
    "FLOAT": ("f", [1.5, -0.0, float("inf"), 1.401298464324817e-45]),
    "DOUBLE": ("d", [1.5, -0.0, float("-inf"), 5e-324]),
    "BOOLEAN": ("?", [True, False]),
}


def _read(spark: SparkSession, decoder: Decoder, payloads: Sequence[bytes | None]) -> list[Outcome]:
    """What the payloads decode to, on the fast path, too."""
    actual = decode_all(spark, decoder, payloads)
    assert repr(decode_all(spark, decoder, payloads, fast=True)) == repr(actual)
    return actual


@pytest.mark.parametrize("name", _NUMBERS)
def test_numbers_have_their_size_and_the_declared_byte_order(spark: SparkSession, name: str) -> None:
    code, values = _NUMBERS[name]
    row, raw = row_type(x=scalar(name)), catalog.get("raw")
    for endianness, sign in (("big-endian", ">"), ("little-endian", "<")):
        options = {"endianness": endianness}
        expected = [struct.pack(sign + code, value) for value in values]
        assert encode_all(spark, raw.encoder(row, options), row, [(v,) for v in values]) == expected
        *good, short, empty = _read(spark, raw.decoder(row, options), [*expected, expected[0] + b"\0", b""])
        assert repr([rows[0][1]["x"] for rows, _ in good if rows]) == repr(values)
        size = struct.calcsize(code)
        reason = f"field 'x': Size of data received for deserializing {name} type is not {size}."
        assert short == empty == (None, reason)


def test_any_byte_but_zero_is_true(spark: SparkSession) -> None:
    decoder = catalog.get("raw").decoder(row_type(x=scalar("BOOLEAN")), {})
    assert _read(spark, decoder, [b"\xff", b"\x02"]) == [([("+I", {"x": True})], None)] * 2


_TEXTS = {
    "UTF-8": (["é名😀", ""], [b"\xff", b"\xed\xa0\x80"]),
    "utf8": (["é"], [b"\xff"]),
    "US-ASCII": (["abc"], [b"\xc3\xa9"]),
    "latin1": (["é\x80"], []),
    "UTF-16": (["é名😀"], [b"\0", b"\xfe\xff\xd8\x00", b"\xff\xfe\x00\xdc"]),
    "UTF-16BE": (["é名😀"], [b"\0", b"\xd8\x3d\x00\x41", b"\xdc\x00"]),
    "UTF-16LE": (["é名😀"], [b"\0", b"\x3d\xd8\x41\x00"]),
    "UTF-32": (["é名😀"], [b"\0\0\0", b"\0\x11\0\0", b"\0\0\xd8\0"]),
}
_PYTHON = {"UTF-16": "utf-16-be", "UTF-32": "utf-32-be"}


@pytest.mark.parametrize("charset", _TEXTS)
def test_text_is_text_in_its_charset(spark: SparkSession, charset: str) -> None:
    """Bytes that are no text are an error (Flink: a replacement character)."""
    texts, broken = _TEXTS[charset]
    row, raw = row_type(x=scalar("STRING")), catalog.get("raw")
    options = {"charset": charset}
    mark = b"\xfe\xff" if charset == "UTF-16" else b""
    bytes = [mark + text.encode(_PYTHON.get(charset, charset)) for text in texts]
    assert encode_all(spark, raw.encoder(row, options), row, [(t,) for t in texts]) == bytes
    actual = _read(spark, raw.decoder(row, options), [*bytes, *broken])
    assert [rows and rows[0][1]["x"] for rows, _ in actual] == texts + [None] * len(broken)
    assert all("field 'x': not valid " in str(error) for _, error in actual[len(texts) :])


def test_a_character_the_charset_lacks_fails_the_row(spark: SparkSession) -> None:
    row = row_type(x=scalar("STRING"))
    for charset, text in (("US-ASCII", "hunter2é"), ("ISO-8859-1", "hunter2名")):
        encoder = catalog.get("raw").encoder(row, {"charset": charset})
        words = f"field 'x' holds a character that charset {charset} does not have"
        with pytest.raises(PySparkException, match=words) as failed:
            encode_all(spark, encoder, row, [(text,)])
        assert "hunter2" not in str(failed.value)


def test_null_is_null_and_empty_is_not(spark: SparkSession) -> None:
    raw = catalog.get("raw")
    for type, empty in ((scalar("STRING"), ""), (scalar("VARBINARY", 9), b"")):
        row = row_type(x=type)
        assert encode_all(spark, raw.encoder(row, {}), row, [(None,), None, (empty,)]) == [None, None, b""]
        actual = _read(spark, raw.decoder(row, {}), [None, b""])
        assert actual == [([("+I", {"x": None})], None), ([("+I", {"x": empty})], None)]


@pytest.mark.parametrize("type", ["BOOLEAN", "SMALLINT", "BIGINT", "FLOAT", "DOUBLE"])
def test_null_is_a_null_of_every_type(spark: SparkSession, type: str) -> None:
    row = row_type(x=scalar(type))
    assert _read(spark, catalog.get("raw").decoder(row, {}), [None]) == [([("+I", {"x": None})], None)]


@pytest.mark.parametrize(
    ("types", "options", "error", "words"),
    [
        (
            {"a": scalar("INT"), "b": scalar("STRING").required()},
            {},
            DefinitionError,
            "The 'raw' format only supports single physical column. However the defined schema contains "
            "multiple physical columns: [`a` INT, `b` STRING NOT NULL]",
        ),
        (
            {"a": scalar("DECIMAL", 5, 2)},
            {},
            DefinitionError,
            "The 'raw' format doesn't supports 'DECIMAL(5, 2)' as column type.",
        ),
        ({"a": ArrayType(scalar("INT"))}, {}, DefinitionError, "doesn't supports 'ARRAY<INT>'"),
        ({"a": ScalarType("TIME", (0,))}, {}, UnsupportedError, "format 'raw': Delta has no TIME"),
        (
            {"a": scalar("STRING")},
            {"charset": "GBK"},
            OptionError,
            "Unsupported 'raw.charset' name: GBK. Spark reads UTF-8, US-ASCII,",
        ),
    ],
)
@pytest.mark.parametrize("side", ["decoder", "encoder"])
def test_rows_that_raw_cannot_represent_are_refused_with_flinks_message(
    side: str, types: dict[str, DataType], options: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=re.escape(words)):
        getattr(catalog.get("raw"), side)(row_type(**types), options)
