"""maxwell-json: one row per document, before images of the fields that changed."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from pyspark.sql import SparkSession

from bridge.formats import catalog
from bridge.schema import ArrayType, MapType
from tests.formats.changes import GOODS, UNREADABLE, changes, decoder_of, details, metadata_of
from tests.formats.support import encode_changes, row_type, scalar

NAME = "maxwell-json"
ROW = b'{"id":1,"name":"a","weight":1.5,"more":[]}'
A = (1, "a", 1.5)


def _document(type: bytes, data: bytes = ROW, more: bytes = b"") -> bytes:
    return b'{"database":"d","type":"%s","data":%s%s}' % (type, data, more)


def test_each_type_gives_its_changes(spark: SparkSession) -> None:
    """A field absent from `old` did not change, a null one was null: on the fast path and by a full decode."""
    full = b'{"id":1,"name":1.10,"weight":1.5}'
    expected: dict[bytes | None, Any] = {
        _document(b"insert"): [("+I", *A)],
        _document(b"delete", ROW, b',"old":null'): [("-D", *A)],
        _document(b"update", ROW, b',"old":{"weight":5.3}'): [("-U", 1, "a", 5.3), ("+U", *A)],
        _document(b"update", ROW, b',"old":{"name":null}'): [("-U", 1, None, 1.5), ("+U", *A)],
        _document(b"update", ROW, b',"old":{"id":7,"x":1}'): [("-U", 7, "a", 1.5), ("+U", *A)],
        _document(b"update", ROW, b',"old":{}'): [("-U", *A), ("+U", *A)],
        _document(b"update", full, b',"old":{"weight":null}'): [
            ("-U", 1, "1.1", None),
            ("+U", 1, "1.1", 1.5),
        ],
        _document(b"update", ROW, b',"old":{"name":2.50}'): [("-U", 1, "2.5", 1.5), ("+U", *A)],
        None: [],
        b"": [],
        _document(
            b"bootstrap-insert"
        ): "field 'type' is 'bootstrap-insert', which is no change of a row; known are",
        _document(b"table-alter", b"null"): "field 'type' is 'table-alter', which is no change of a row",
        _document(b"secret"): "field 'type' has an unknown value; known are insert, update, delete",
        b'{"data":{"id":1}}': "field 'type' is null or missing",
        _document(b"insert", b"null"): "field 'data' is null or missing",
        _document(b"insert", b"[%s]" % ROW): "field 'data' cannot be read as ROW",
        _document(b"insert", b'{"id":"secret"}'): "field 'data.id' cannot be read as INT",
        _document(b"update", ROW, b',"old":{"id":"secret"}'): "field 'old.id' cannot be read as INT",
        _document(b"update", ROW, b',"old":[]'): "field 'old' cannot be read as ROW",
        _document(b"update"): "field 'old' of an update lacks the before image of a row",
        **UNREADABLE,
    }
    actual = changes(spark, decoder_of(NAME), list(expected))
    for (document, outcome), decoded in zip(expected.items(), actual, strict=True):
        if isinstance(outcome, str):
            assert outcome in decoded, document
        else:
            assert [(c[0], *_rounded(c)) for c in outcome] == [(c[0], *_rounded(c)) for c in decoded], (
                document
            )
        assert "secret" not in str(decoded)
    [keyed] = changes(spark, decoder_of(NAME, key=("id",)), [_document(b"update")])
    assert keyed == [("+U", *A)]


def _rounded(change: tuple[Any, ...]) -> list[Any]:
    return [round(v, 5) if isinstance(v, float) else v for v in change[1:]]


def test_numbers_are_those_of_flinks_trees(spark: SparkSession) -> None:
    """No digit of a DECIMAL is lost, and a number has neither zeros at its end nor the sign of -0."""
    row = row_type(
        text=scalar("STRING"), long=scalar("DECIMAL", 38, 18), tiny=scalar("TINYINT"), double=scalar("DOUBLE")
    )
    exact = Decimal("1.000000000000000001")
    expected: dict[bytes, Any] = {
        b'"long":1.000000000000000001': (None, exact, None, None),
        b'"long":1000000000000000001e-18': (None, exact, None, None),
        b'"long":" 1"': "field 'data.long' cannot be read as DECIMAL",
        b'"long":1.5,"tiny":1.00': (None, Decimal("1.500000000000000000"), 1, None),
        b'"tiny":10.0': "field 'data.tiny' cannot be read as TINYINT",  # Flink's text is 1E+1
        b'"double":-0.0,"text":-0.0': ("0", None, None, 0.0),
        b'"double":"-0.0","text":"-0.0"': ("-0.0", None, None, -0.0),
        **{
            b'"text":' + number.encode(): (text, None, None, None)
            for number, text in (
                ("100.0", "1E+2"),
                ("12.50", "12.5"),
                ("-0.00000010", "-1E-7"),
                ("0.0000010", "0.000001"),
                ("123e2", "1.23E+4"),
                ("12345678901234567.0", "12345678901234567"),
                ("1e400", "Infinity"),
            )
        },
    }
    actual = changes(spark, decoder_of(NAME, row), [_document(b"insert", b"{%s}" % d) for d in expected])
    for wanted, found in zip(expected.values(), actual, strict=True):
        assert str(found) == (wanted if isinstance(wanted, str) else str([("+I", *wanted)]))


def test_metadata_is_read_from_the_document(spark: SparkSession) -> None:
    """`ts` is in seconds."""
    more = b',"table":"t","ts":1596684883,"primary_key_columns": ["id"]'
    documents = [
        _document(b"insert", ROW, more),
        b'{"type":"insert","data":{"id":1}}',
        _document(b"insert", ROW, b',"ts":9223372036854775807'),
    ]
    values = {
        "database": "d",
        "table": "t",
        "primary-key-columns": ["id"],
        "ingestion-timestamp": datetime(2020, 8, 6, 3, 34, 43),
    }
    assert details(spark, decoder_of(NAME, metadata=metadata_of(NAME)), documents, "metadata") == [
        [values],
        [dict.fromkeys(values)],
        "field 'ts' cannot be read as TIMESTAMP_LTZ",
    ]


def test_an_update_tells_the_fields_that_changed(spark: SparkSession) -> None:
    """Insert and delete are Flink's bytes. Nulls in `old` are written whatever the options are."""
    old, new = (1, None, 1.5), (1, "b", None)
    some = [(None, old), (old, None), (old, new), (new, old), (old, old), (None, None)]
    assert encode_changes(spark, catalog.get(NAME).encoder(GOODS, {}), GOODS, some) == [
        b'{"data":{"id":1,"name":null,"weight":1.5},"type":"insert"}',
        b'{"data":{"id":1,"name":null,"weight":1.5},"type":"delete"}',
        b'{"data":{"id":1,"name":"b","weight":null},"old":{"weight":1.5,"name":null},"type":"update"}',
        b'{"data":{"id":1,"name":null,"weight":1.5},"old":{"name":"b","weight":null},"type":"update"}',
        b'{"data":{"id":1,"name":null,"weight":1.5},"old":{},"type":"update"}',
        None,
    ]
    sparing = catalog.get(NAME).encoder(GOODS, {"encode.ignore-null-fields": True})
    written = encode_changes(spark, sparing, GOODS, some[2:4])
    assert changes(spark, decoder_of(NAME), written) == [
        [("-U", *old), ("+U", *new)],
        [("-U", *new), ("+U", *old)],
    ]


def test_columns_with_parts_are_told_and_read(spark: SparkSession) -> None:
    """A map cannot be compared, so it is always written."""
    row = row_type(
        id=scalar("INT"),
        tags=MapType(scalar("STRING"), scalar("INT")),
        list=ArrayType(scalar("STRING")),
        inner=row_type(a=scalar("INT")),
    )
    old, new = (1, {"a": 1}, ["x"], (1,)), (1, {"a": 1}, ["x"], (None,))
    [written] = encode_changes(spark, catalog.get(NAME).encoder(row, {}), row, [(old, new)])
    assert written is not None and b'"old":{"tags":{"a":1},"inner":{"a":1}}' in written
    assert changes(spark, decoder_of(NAME, row), [written]) == [
        [("-U", 1, {"a": 1}, ["x"], {"a": 1}), ("+U", 1, {"a": 1}, ["x"], {"a": None})]
    ]
