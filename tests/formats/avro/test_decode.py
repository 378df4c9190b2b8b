"""Avro bytes to rows: documents of foreign writers, and what is refused."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bridge.format_rules.avro_derive import derive
from bridge.format_rules.avro_schema import parse
from bridge.formats.avro.decode import bound_memory, document
from bridge.formats.avro.format import AvroFormat
from bridge.formats.avro.schema_resolution import resolve
from bridge.formats.base import NEEDS_FULL_DECODE
from bridge.formats.sql import Names, apply, struct
from bridge.schema import ArrayType, MapType, RowType
from tests.formats.support import decode_all, encode_all, plain, row_type, scalar

_FORMAT = AvroFormat()
_NEW = {"timestamp_mapping.legacy": False}


def _long(value: int) -> bytes:
    """Avro's variable-length number."""
    rest, made = (value << 1) ^ (value >> 63), b""
    while rest > 127:
        made, rest = made + bytes([rest & 127 | 128]), rest >> 7
    return made + bytes([rest])


def _some(data: bytes) -> bytes:
    return b"\x02" + data


def _text(data: bytes) -> bytes:
    return _some(_long(len(data)) + data)


def test_the_error_of_a_value_that_does_not_fit_names_the_field(spark: SparkSession) -> None:
    """Numbers do not overflow, text is UTF-8, decimals keep their digits, NOT NULL is checked; nested, too."""
    row = row_type(
        tiny=scalar("TINYINT"),
        text=scalar("STRING"),
        price=scalar("DECIMAL", 5, 2),
        list=ArrayType(row_type(small=scalar("SMALLINT"), s=scalar("STRING"))),
        map=MapType(scalar("STRING"), scalar("STRING")),
    )

    def payload(
        tiny: int = 1,
        text: bytes = b"x",
        price: bytes = b"\x01",
        small: int = 1,
        s: bytes = b"y",
        key: bytes = b"k",
        value: bytes = b"v",
    ) -> bytes:
        listed = _some(_long(1) + _some(_some(_long(small)) + _text(s)) + b"\x00")
        mapped = _some(_long(1) + _long(len(key)) + key + _text(value) + b"\x00")
        return _some(_long(tiny)) + _text(text) + _text(price) + listed + mapped

    huge = (2**64 + 5).to_bytes(9, "big")  # its lower eight bytes are 5
    payloads = {
        payload(): None,
        payload(tiny=128): "field 'tiny': out of range of TINYINT",
        payload(tiny=-129): "field 'tiny': out of range of TINYINT",
        payload(text=b"secret\xff"): "field 'text': not valid UTF-8",
        payload(price=(100000).to_bytes(3, "big")): "field 'price': out of range of DECIMAL(5, 2)",
        payload(price=huge): "field 'price': out of range of DECIMAL(5, 2)",
        payload(small=2**15): "field 'list.small': out of range of SMALLINT",
        payload(s=b"\xc3"): "field 'list.s': not valid UTF-8",
        payload(key=b"\xff"): "field 'map': not valid UTF-8",
        payload(value=b"\xff"): "field 'map': not valid UTF-8",
    }
    actual = decode_all(spark, _FORMAT.decoder(row, _NEW), list(payloads))
    assert [error for _, error in actual] == list(payloads.values())
    assert actual[0][0] is not None and actual[0][0][0][1]["price"] == Decimal("0.01")
    fast = decode_all(spark, _FORMAT.decoder(row, _NEW), list(payloads), fast=True)
    assert fast == [actual[0], *[(None, NEEDS_FULL_DECODE)] * (len(payloads) - 1)]


def test_texts_are_checked_at_every_level(spark: SparkSession) -> None:
    """In lists of lists, in rows of lists, as keys and values of maps in lists; null lists among them."""
    texts = ArrayType(scalar("STRING"))
    row = row_type(
        lists=ArrayType(texts),
        maps=ArrayType(MapType(scalar("STRING"), scalar("STRING"))),
        rows=ArrayType(row_type(t=scalar("STRING"), l=texts)),
    )

    def listed(*items: bytes) -> bytes:
        return _some(_long(len(items)) + b"".join(items) + (b"\x00" if items else b""))

    def payload(deep: bytes = b"a", key: bytes = b"b", value: bytes = b"c", inner: bytes = b"d") -> bytes:
        entry = _some(_long(1) + _long(len(key)) + key + _text(value) + b"\x00")
        rows = listed(b"\x00", _some(_text(b"x") + listed(_text(inner), b"\x00")))
        return listed(b"\x00", listed(b"\x00", _text(deep))) + listed(b"\x00", entry) + rows

    payloads = {
        payload(): None,
        payload(deep=b"\xff"): "field 'lists': not valid UTF-8",
        payload(key=b"\xff"): "field 'maps': not valid UTF-8",
        payload(value=b"\xff"): "field 'maps': not valid UTF-8",
        payload(inner=b"\xff"): "field 'rows.l': not valid UTF-8",
    }
    actual = decode_all(spark, _FORMAT.decoder(row, _NEW), list(payloads))
    assert [error for _, error in actual] == list(payloads.values())
    assert actual[0][0] is not None and actual[0][0][0][1]["lists"] == [None, [None, "a"]]


@pytest.mark.versions
def test_lengths_that_no_record_has_cost_no_memory(spark: SparkSession) -> None:
    """A few bytes that claim gigabytes are a bad record, not the end of the JVM."""
    row = row_type(s=scalar("STRING"), b=scalar("BYTES"), l=ArrayType(scalar("INT")))
    null = b"\x00"
    claims = [2**31 - 20, 2**40, 2**63 - 1, -1, 2**27]
    payloads = [
        prefix + _some(_long(n)) + rest
        for n in claims
        for prefix, rest in ((b"", b"ab"), (null, b""), (null * 2, b""))
    ]
    assert all(error for _, error in decode_all(spark, _FORMAT.decoder(row, _NEW), payloads))


def test_timestamps_keep_the_digits_they_have(spark: SparkSession) -> None:
    """A precision below milliseconds cuts, both ways, before 1970, too; beyond there are none."""
    row = row_type(a=scalar("TIMESTAMP", 0), b=scalar("TIMESTAMP", 4), c=scalar("TIMESTAMP_LTZ", 3))
    at = datetime(1969, 12, 31, 23, 59, 58, 123456)
    written = encode_all(spark, _FORMAT.encoder(row, _NEW), row, [(at, at, at), (None, None, None)])
    assert written[0] == _some(_long(-2000)) + _some(_long(-1877)) + _some(_long(-1877))
    more = _some(_long(-1)) + _some(_long(-1)) + _some(_long(-1))
    [first, second, third] = decode_all(spark, _FORMAT.decoder(row, _NEW), [*written, more])
    assert first[0] is not None and first[0][0][1]["b"] == at.replace(microsecond=123000)
    assert second[0] is not None and set(second[0][0][1].values()) == {None}
    assert third[0] is not None and third[0][0][1]["a"] == datetime(1969, 12, 31, 23, 59, 59)
    first_of_all = [b"\x00" + _some(_long(-(2**63))) + b"\x00"]
    [(rows, error)] = decode_all(spark, _FORMAT.decoder(row, _NEW), first_of_all)
    assert rows is None and error


_TYPES: dict[str, tuple[Any, Any, bytes, Any]] = {
    "wider": (scalar("BIGINT"), "int", _long(7), 7),
    "float": (scalar("DOUBLE"), "long", _long(7), 7.0),
    "enum": (scalar("STRING"), {"type": "enum", "name": "E", "symbols": ["A", "B"]}, _long(1), "B"),
    "fixed": (scalar("BYTES"), {"type": "fixed", "name": "n.F", "size": 2}, b"ab", b"ab"),
    "text": (scalar("STRING"), {"type": "string", "logicalType": "uuid"}, _long(1) + b"u", "u"),
    "either": (scalar("BIGINT"), ["string", "null", "long"], b"\x04" + _long(9), 9),
    "none": (scalar("BIGINT"), ["string", "null", "long"], b"\x02", None),
    "micros": (
        scalar("TIMESTAMP", 3),
        {"type": "long", "logicalType": "timestamp-micros"},
        _long(1_234_567),
        datetime(1970, 1, 1, 0, 0, 1, 234000),
    ),
    "unnamed": (scalar("TIMESTAMP", 3), "long", _long(1234), datetime(1970, 1, 1, 0, 0, 1, 234000)),
    "scale": (
        scalar("DECIMAL", 10, 2),
        {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 4},
        _long(2) + (12345).to_bytes(2, "big"),
        Decimal("1.23"),
    ),
    "fixed_decimal": (
        scalar("DECIMAL", 10, 2),
        {"type": "fixed", "name": "n.D", "size": 3, "logicalType": "decimal", "precision": 6, "scale": 2},
        b"\xff\xff\xfe",
        Decimal("-0.02"),
    ),
}


@pytest.mark.versions
def test_any_writer_s_schema_is_read_as_the_table(spark: SparkSession) -> None:
    """Avro's promotions and more: logical types by the writer's, fields in any order, unknown ones ignored."""
    bound_memory()
    row = row_type(**{name: type for name, (type, _, _, _) in _TYPES.items()}, absent=scalar("INT"))
    odd = {"name": "odd", "type": {"type": "map", "values": "E"}, "default": "of no account"}
    names = list(_TYPES)[::-1]
    definitions = {name: _TYPES[name][1] for name in names}
    first = {"name": "enum", "type": definitions.pop("enum")}
    fields = [first, odd, *({"name": n, "type": t, "doc": "d"} for n, t in definitions.items())]
    writer = parse(json.dumps({"type": "record", "name": "W", "fields": fields}), "writer")
    own = parse(json.dumps(derive(row, legacy_timestamps=True)), "own")
    payload = _TYPES["enum"][2] + b"\x02\x02k\x00\x00" + b"".join(_TYPES[n][2] for n in definitions)
    reader, sql = resolve(row.required(), own, writer), Names()

    def expression(header: int, whole: bool) -> Any:
        body = document(
            "x",
            writer,
            reader,
            sql,
            lambda v: struct(v=v, e="CAST(NULL AS STRING)"),
            lambda reason: struct(v=f"CAST(NULL AS {row.spark()})", e=reason),
            header=header,
            whole=whole,
        )
        return apply(F.col("p"), body, "x")

    frame = spark.createDataFrame(
        [(bytearray(b"head!" + payload),), (bytearray(b"head!" + payload[:-1]),)], "p binary"
    )
    longer = F.concat(F.col("p"), F.lit(b"\n"))
    actual = frame.select(
        expression(5, True).alias("a"),
        apply(longer, "x", "x").alias("p"),
    ).select("a", expression(5, False).alias("b"))
    rows = actual.collect()
    expected = {name: value for name, (_, _, _, value) in _TYPES.items()} | {"absent": None}
    assert plain(rows[0].a.v) == expected and plain(rows[0].b.v) == expected
    assert rows[1].a.v is None and "truncated" in rows[1].a.e


def test_the_row_may_be_empty(spark: SparkSession) -> None:
    """No fields are no bytes."""
    row = RowType(())
    assert decode_all(spark, _FORMAT.decoder(row, _NEW), [b"", b"x"])[1][1] is not None
