"""Avro's JSON encoding, against fastavro's reader and writer of it."""

from __future__ import annotations

import io
import json
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bridge.format_rules.avro_derive import derive
from bridge.formats.avro.format import AvroFormat
from bridge.formats.base import NEEDS_FULL_DECODE
from bridge.schema import ArrayType, MapType, RowType
from tests.formats.shapes import SHAPES
from tests.formats.support import decode_all, encode_all, row_type, scalar

_FORMAT = AvroFormat()
_JSON = {"encoding": "json", "timestamp_mapping.legacy": False}
_ROW = row_type(
    id=scalar("BIGINT").required(),
    name=scalar("STRING"),
    price=scalar("DECIMAL", 38, 2),
    raw=scalar("BYTES"),
    tiny=scalar("TINYINT"),
    day=scalar("DATE"),
    at=scalar("TIMESTAMP", 3),
    since=scalar("TIMESTAMP", 6),
    ratio=scalar("DOUBLE"),
    tags=ArrayType(scalar("STRING")),
    sizes=MapType(scalar("STRING"), scalar("INT").required()),
    inner=row_type(a=scalar("INT"), b=scalar("BYTES").required()),
)
_AT, _SINCE = datetime(1969, 12, 31, 23, 59, 58, 123000), datetime(2026, 1, 2, 3, 4, 5, 678000)
_FULL: tuple[Any, ...] = (
    2**53 + 1,
    'ü"\n',
    Decimal("-99999999999999999999999999999999999.99"),
    bytes(range(256)),
    -128,
    date(1969, 12, 31),
    _AT,
    _SINCE,
    1.5,
    ["a", None, ""],
    {"k": 7},
    (None, b"\xff\x00"),
)
_EMPTY: tuple[Any, ...] = (0, *[None] * 11)


def _schema(row: RowType) -> Any:
    return fastavro.parse_schema(derive(row, legacy_timestamps=False))


def _fastavro_reads(document: bytes, row: RowType) -> dict[str, Any]:
    [actual] = fastavro.json_reader(io.StringIO(document.decode()), _schema(row))
    assert isinstance(actual, dict)
    return actual


def test_what_is_written_fastavro_reads(spark: SparkSession) -> None:
    full, empty = encode_all(spark, _FORMAT.encoder(_ROW, _JSON), _ROW, [_FULL, _EMPTY])
    assert full is not None and empty is not None
    actual = _fastavro_reads(full, _ROW)
    expected = dict(zip(_ROW.names, _FULL, strict=True)) | {"inner": {"a": None, "b": b"\xff\x00"}}
    assert actual == expected
    assert set(_fastavro_reads(empty, _ROW).values()) == {0, None}
    assert json.loads(full)["name"] == {"string": 'ü"\n'} and json.loads(full)["id"] == 2**53 + 1


def test_what_fastavro_writes_is_read(spark: SparkSession) -> None:
    out = io.StringIO()
    record = dict(zip(_ROW.names, _FULL, strict=True)) | {"inner": {"a": 5, "b": b"\x80"}}
    fastavro.json_writer(out, _schema(_ROW), [record])
    decoder = _FORMAT.decoder(_ROW, _JSON)
    for fast in (False, True):
        [(rows, error)] = decode_all(spark, decoder, [out.getvalue().encode()], fast=fast)
        assert error in (None, NEEDS_FULL_DECODE) and (fast or error is None)
        if rows is not None:
            assert rows == [("+I", record)]


def test_the_error_of_a_bad_document_names_the_field(spark: SparkSession) -> None:
    row = row_type(
        id=scalar("BIGINT").required(),
        tiny=scalar("TINYINT"),
        raw=scalar("BYTES"),
        price=scalar("DECIMAL", 4, 2),
        at=scalar("TIMESTAMP", 3),
        list=ArrayType(scalar("SMALLINT")),
    )
    good = {"id": 1, "tiny": None, "raw": None, "price": None, "at": None, "list": None}
    wrong: dict[str, Any] = {
        "field 'tiny': out of range of TINYINT": {"tiny": {"int": 128}},
        "field 'raw': has characters that are no bytes": {"raw": {"bytes": "secret Ā"}},
        "field 'price': out of range of DECIMAL(4, 2)": {"price": {"bytes": "\u0001\u0000\u0000"}},
        "field 'at': out of range of TIMESTAMP(3)": {"at": {"long": 2**62}},
        "field 'list': out of range of SMALLINT": {"list": {"array": [{"int": 1}, {"int": 2**15}]}},
        "field 'id': null, and its Avro schema has no null": {"id": None},
        "field 'tiny.int'": {"tiny": {"long": 5}},
        "field 'tiny'": {"tiny": "secret"},
    }
    documents = [json.dumps(good | change).encode() for change in wrong.values()]
    actual = decode_all(spark, _FORMAT.decoder(row, _JSON), [json.dumps(good).encode(), *documents])
    assert actual[0][1] is None
    for (_, error), expected in zip(actual[1:], wrong, strict=True):
        assert expected in (error or "") and "secret" not in (error or "")
    fast = decode_all(spark, _FORMAT.decoder(row, _JSON), documents, fast=True)
    assert {error for _, error in fast} == {NEEDS_FULL_DECODE}


def test_bytes_that_are_no_record(spark: SparkSession) -> None:
    row = row_type(id=scalar("BIGINT"))
    payloads = [b"", b"\xff", b"[1", b"{}", b'[{"id":null},{"id":null}]', b"null", b'{"id":{"long":"x"}}']
    actual = decode_all(spark, _FORMAT.decoder(row, _JSON), payloads)
    assert [rows for rows, error in actual if error is None] == []
    assert decode_all(spark, _FORMAT.decoder(row, _JSON), [None]) == [(None, None)]


def test_a_null_where_the_schema_has_none_fails_with_the_field(spark: SparkSession) -> None:
    encoder = _FORMAT.encoder(_ROW, _JSON)
    assert encode_all(spark, encoder, _ROW, [None]) == [None]
    with pytest.raises(PySparkException, match=r"format 'avro': field 'inner\.b' is null"):
        encode_all(spark, encoder, _ROW, [(*_FULL[:-1], (1, None))])


@settings(max_examples=1, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_is_written_is_read_back(spark: SparkSession, data: st.DataObject) -> None:
    """Every type that the binary encoding has, with nulls."""
    shape = SHAPES["avro"].shapes["everything"]
    options = {**shape.options, "encoding": "json"}
    rows = data.draw(shape.rows)
    written = encode_all(spark, _FORMAT.encoder(shape.row, options), shape.row, rows)
    read = decode_all(spark, _FORMAT.decoder(shape.row, options), written)
    binary = encode_all(spark, _FORMAT.encoder(shape.row, shape.options), shape.row, rows)
    assert read == decode_all(spark, _FORMAT.decoder(shape.row, shape.options), binary)
