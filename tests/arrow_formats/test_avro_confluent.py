"""Arrow's decoder of Avro in Confluent's framing: each document by its writer's schema, or left to Spark's paths."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from pyspark.sql import SparkSession

from bridge.arrow_formats.arrow_types import arrow_schema
from bridge.arrow_formats.avro import AvroConfluentArrowDecoder
from bridge.arrow_formats.base import ArrowDecoder, SchemaArrowDecoder
from bridge.arrow_formats.catalog import arrow_decoder
from bridge.definition import FormatSpec
from bridge.embedded.schema_registry import SchemaRegistryServer
from bridge.secret import Secret
from bridge.ways import NotThisWay
from tests.arrow_formats.against_spark import array, compare, spec
from tests.refusals import refusal

_TYPES = {"a": "BIGINT", "b": "STRING"}
_URL = "http://me:secret@127.0.0.1:9"


def given(types: dict[str, str] | None = None, **options: Any) -> FormatSpec:
    return spec("avro-confluent", types or _TYPES, **({"url": Secret(_URL)} | options))


def writer(**fields: Any) -> str:
    made = [{"name": name, "type": type} for name, type in fields.items()]
    return json.dumps({"type": "record", "name": "W", "fields": made})


def framed(id: int, document: bytes) -> bytes:
    return b"\0" + id.to_bytes(4, "big") + document


def known(*writers: str, types: dict[str, str] | None = None) -> ArrowDecoder:
    """A decoder that knows these writers by the numbers 0, 1 and so on."""
    decoder = arrow_decoder(given(types))
    assert isinstance(decoder, SchemaArrowDecoder)
    return decoder.with_schemas(dict(enumerate(writers)))


def rows(decoder: ArrowDecoder, payloads: Sequence[bytes]) -> list[Any]:
    return [tuple(row.values()) for row in decoder.decode(array(payloads)).to_pylist()]


def test_one_batch_of_several_writers_keeps_its_order() -> None:
    decoder = known(writer(a="int", gone="double"), writer(b="string", a="long"), writer(x="boolean"))
    payloads = [framed(1, b"\2x\2"), framed(0, b"\x0e" + bytes(8)), framed(2, b"\1"), framed(1, b"\0\4")]
    expected = [(1, "x"), (7, None), (None, None), (2, "")]
    assert rows(decoder, payloads) == expected
    assert rows(decoder, payloads * 1000) == expected * 1000
    table = decoder.decode(array(payloads))
    assert all(column.num_chunks == 1 for column in table.columns)
    table.validate(full=True)


def test_promotions_and_bytes_behind_a_record(
    spark: SparkSession, registry: SchemaRegistryServer, unique: Callable[[str], str]
) -> None:
    """As Avro promotes them; an enum is text, a fixed bytes or a decimal."""
    types = {
        "l": "BIGINT",
        "f": "FLOAT",
        "d": "DOUBLE",
        "s": "STRING",
        "y": "BYTES",
        "m": "DECIMAL(9, 2)",
        "t": "STRING",
    }
    fixed = {"type": "fixed", "name": "F", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 2}
    one = writer(
        l="int", f="long", d="float", s={"type": "enum", "name": "E", "symbols": ["ON", "OFF"]},
        y={"type": "fixed", "name": "Y", "size": 3}, m=fixed, t="bytes",
    )  # fmt: skip
    two = writer(t=["string", "null"], y="string", d=["null", "long"], f="int", m=["null", fixed])
    client, subject = SchemaRegistryClient({"url": registry.url}), unique("subject")
    ids = [int(client.register_schema(subject, Schema(text, "AVRO"))) for text in (one, two)]
    number = b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\1"  # 2^63 - 1
    whole = b"\x03" + number + b"\0\0\xc0\x7f" + b"\2" + b"\xff\xfe\xfd" + b"\xff\xff\xff\xfe" + b"\4ok"
    good = [
        framed(ids[0], whole),
        framed(ids[0], whole + b"behind"),
        framed(ids[1], b"\0\2x" + b"\4\xc3\x28" + b"\2" + number + b"\x81\x80\x80\x10" + b"\2\0\0\0\1"),
        framed(ids[1], b"\2" + b"\0" + b"\0" + b"\0" + b"\0"),
    ]
    bad = [
        framed(ids[0], whole.replace(b"\4ok", b"\4o\xff")),
        framed(ids[0], whole[:-1]),
        framed(ids[0], whole.replace(b"\2\xff\xfe\xfd", b"\4\xff\xfe\xfd")),
        framed(ids[0], whole.replace(b"\xff\xff\xff\xfe", b"\x7f\xff\xff\xff")),
        framed(2**31, whole),
        b"\1" + framed(ids[0], whole)[1:],
        b"\0\0",
        b"",
    ]
    found = given(types, url=registry.url, subject=subject)
    assert compare(spark, found, [*good, *bad]) == len(good)


def test_the_table_s_own_schema_has_units_and_defaults(
    spark: SparkSession, registry: SchemaRegistryServer, unique: Callable[[str], str]
) -> None:
    """Under the option `schema`; a default other than null is left to Spark."""
    client, subject = SchemaRegistryClient({"url": registry.url}), unique("subject")
    types = {"at": "TIMESTAMP(3)", "n": "INT"}
    micros = {"type": "long", "logicalType": "timestamp-micros"}
    ids = [
        int(client.register_schema(subject, Schema(w, "AVRO")))
        for w in (writer(at="long", n="int"), writer(at=micros))
    ]
    payloads = [framed(ids[0], b"\x80\x7d\2"), framed(ids[1], b"\x80\x7d")]
    for default, read in ((None, 2), (5, 1)):
        n = {"name": "n", "type": ["null", "int"] if default is None else ["int", "null"], "default": default}
        own = {"type": "record", "name": "T", "fields": [{"name": "at", "type": micros}, n]}
        found = given(types, url=registry.url, subject=subject, schema=json.dumps(own))
        assert compare(spark, found, payloads) == read


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (framed(7, b"\2"), "schema id 7: it is not known yet"),
        (framed(1, b"\2"), "schema id 1: the writer of field 'a' has string, the table BIGINT"),
        (framed(2, b"\2"), "schema id 2: the registry's text is no Avro schema"),
        (framed(0, b"\2\2"), "a document is truncated, or not of its schema"),
        (b"\0\0\0\0", "a document is truncated, or not of its schema"),
        (b"secret", "a document is not in Confluent's framing"),
        (framed(3, b"\0"), "the document is null, though it is NOT NULL"),
    ],
)
def test_a_reason_names_the_schema_and_has_no_payload(payload: bytes, reason: str) -> None:
    nullable = json.dumps(["null", json.loads(writer(a="long"))])
    decoder = known(writer(a="long", b="string"), writer(a="string"), "{secret", nullable)
    with pytest.raises(NotThisWay) as needed:
        decoder.decode(array([framed(0, b"\2\2x"), payload]))
    assert str(needed.value) == reason
    assert needed.value.__context__ is None or needed.value.__suppress_context__


def test_a_record_may_be_a_branch_of_a_union() -> None:
    decoder = known(json.dumps(["null", json.loads(writer(a="long"))]))
    assert rows(decoder, [framed(0, b"\2\4")]) == [(2, None)]


def test_a_row_without_fields() -> None:
    decoder = replace(known(writer(a="int"), writer(b="int")), row=given().row.__class__(()))  # type: ignore[type-var]
    assert isinstance(decoder, AvroConfluentArrowDecoder)
    decoder = decoder.with_schemas({0: writer(a="int"), 1: writer(b="int")})
    table = decoder.decode(array([framed(0, b"\0"), framed(1, b"\2"), framed(0, b"\4")]))
    assert (table.num_rows, table.num_columns) == (3, 0)


def test_no_payload_gives_no_row_of_all_columns() -> None:
    assert known().decode(array([])).equals(arrow_schema(given().row).empty_table())


@pytest.mark.parametrize("type", ["ARRAY<INT>", "MAP<STRING, INT>"])
def test_types_that_are_left_to_spark(type: str) -> None:
    assert refusal(lambda: arrow_decoder(given({"x": "INT", "a": type}))) == f"field 'a' is {type}"


def test_workers_get_neither_the_address_of_the_registry_nor_credentials() -> None:
    sent = pickle.dumps(known(writer(a="long")))
    assert b"secret" not in sent and b"127.0.0.1" not in sent
    assert pickle.loads(sent).decode(array([framed(0, b"\4")]))["a"].to_pylist() == [2]
    assert isinstance(pickle.loads(sent).decode(array([framed(0, b"\4")])), pa.Table)
