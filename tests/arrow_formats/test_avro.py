"""Arrow's decoder of plain Avro gives what Spark's paths give, or leaves the documents to them.

Arrow's decoder of Avro in Confluent's framing: each document by its writer's schema, or left to Spark's paths.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
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
from bridge.schema import RowType
from bridge.secret import Secret
from bridge.ways import NotThisWay
from tests.arrow_formats.against_spark import array, by_arrow, compare, made, spec
from tests.arrow_formats.drawn_avro import document
from tests.refusals import refusal

_TYPES = {
    "i": "BIGINT",
    "t": "TINYINT",
    "b": "BOOLEAN",
    "s": "STRING",
    "m": "DECIMAL(5, 2)",
    "f": "DOUBLE",
    "d": "DATE",
    "ts": "TIMESTAMP(3)",
    "r": "ROW<a INT NOT NULL, b STRING>",
}
_NONE: dict[str, Any] = dict.fromkeys(_TYPES)
_HEAD = b"\0" * len(_TYPES)


def given(types: dict[str, str] | None = None, **options: Any) -> FormatSpec:
    return spec("avro", types or _TYPES, **options)


def of(**values: Any) -> bytes:
    """The document of these values; the others are null."""
    return document(given().row, *(_NONE | values).values())


def refused(types: dict[str, str], payload: bytes) -> str:
    with pytest.raises(NotThisWay) as needed:
        made(given(types)).decode(array([payload]))
    assert needed.value.__context__ is None or needed.value.__suppress_context__
    return str(needed.value)


def test_values_at_their_limits(spark: SparkSession) -> None:
    """What is beyond them is an error, or is cut by Java; some days and times depend on settings of Spark."""
    integers = [0, 63, -64, 64, 8191, -8192, 2**27, -(2**28), 2**55, 2**62 - 1, 2**63 - 1, -(2**63)]
    read = [of(i=i) for i in integers]
    read += [of(t=t) for t in (-128, 127)]
    read += [of(s=s) for s in ("", "\0", "x" * 70_000, "é名😀")]
    read += [
        of(m=(n).to_bytes(size, "big", signed=True))
        for n in (0, -1, 99_999, -99_999)
        for size in (3, 8, 9, 16)
    ]
    read += [of(f=f) for f in (0.0, -0.0, float("inf"), float("nan"), 5e-324)]
    read += [of(d=d) for d in (0, -141_427, 2_932_896)]
    read += [of(ts=ts) for ts in (-1, -2_208_988_800_000, 253_402_300_799_999)]
    read += [of(r={"a": -(2**31), "b": None}), of(r={"a": 1, "b": "x"}), of()]
    left = [of(t=128), of(t=-129), of(d=-141_428), of(d=2_932_897), of(d=2**31 - 1)]
    left += [of(ts=ts) for ts in (-2_208_988_800_001, 253_402_300_800_000, 2**63 - 1, -(2**63))]
    left += [of(m=m) for m in (b"", b"\1\x86\xa0", b"\xfe\x79\x60", b"\x7f" * 16, b"\0" * 17)]
    assert compare(spark, given(), [*read, *left]) == len(read)


def test_bytes_that_are_no_document(spark: SparkSession) -> None:
    whole = of(i=300, s="abc", f=1.5, r={"a": 1, "b": "x"})
    cut = [whole[:at] for at in range(len(whole))]
    # A number of more bytes than it needs is read, by Java too.
    longer = [b"\2\x80\0" + _HEAD[1:], b"\2" + b"\x82" + b"\x80" * 8 + b"\0" + _HEAD[1:]]
    odd = [
        whole + b"\0",
        b"\4" + _HEAD,  # no such branch of a union
        b"\1" + _HEAD,
        b"\2" + b"\xff" * 10 + _HEAD[1:],  # more than 64 bits
        b"\2" + b"\xff" * 9 + b"\2" + _HEAD[1:],
        b"\0\2\x80\x80\x80\x80\x10" + _HEAD[2:],  # more than 32 bits
        b"\0\0\2\2" + _HEAD[3:],  # a boolean of 2
        b"\0\0\0\2\1" + _HEAD[4:],  # a length of -1
        b"\0\0\0\2\x80\x80\x80\x80\x08" + _HEAD[4:],  # and one of more than 64 MiB
        b"\0\0\0\2\x04\xc0\x80" + _HEAD[4:],
        b"\0\0\0\2\x06\xed\xa0\x80" + _HEAD[4:],
        b"\0\0\0\2\x02\xff" + _HEAD[4:],
    ]
    assert compare(spark, given(), [whole, *cut, *odd, *longer]) == 1 + len(longer)


def test_documents_do_not_make_up_for_each_other() -> None:
    types = {"s": "STRING NOT NULL"}
    for documents in ([b"\4a", b"b\2c"], [b"\2ab", b""], [b"", b"\2ab"]):
        with pytest.raises(NotThisWay):
            made(given(types)).decode(array(documents))


def test_a_slice_of_an_array_is_read_as_such() -> None:
    payloads = array([b"bad", b"\2a", b"\2b", b"\xff"])
    table = made(given({"s": "STRING NOT NULL"})).decode(payloads.slice(1, 2))
    assert table["s"].to_pylist() == ["a", "b"]


def test_types_do_not_depend_on_values() -> None:
    assert made(given()).decode(array([])).equals(arrow_schema(given().row).empty_table())
    for documents in ([of()], [of(i=1, s="x", r={"a": 1, "b": None})] * 2, [of(), of(m=b"\1")]):
        table = made(given()).decode(array(documents))
        assert table.schema == arrow_schema(given().row)
        table.validate(full=True)


def test_timestamps_of_either_mapping(spark: SparkSession) -> None:
    """Flink's legacy mapping has no type for all of them; the other one has milliseconds, whatever the digits are."""
    types = {"a": "TIMESTAMP(6)", "b": "TIMESTAMP_LTZ(3)", "c": "TIMESTAMP_LTZ(1)"}
    new = FormatSpec("avro", {"timestamp_mapping.legacy": False}, given(types).row, tuple(types))
    payload = document(new.row, 1_234, 1_234, -1_234, legacy=False)
    assert compare(spark, new, [payload]) == 1
    assert [str(v) for v in by_arrow(new, [payload])[0].values()] == [  # type: ignore[union-attr]
        "1970-01-01 00:00:01.234000",
        "1970-01-01 00:00:01.234000+00:00",
        "1969-12-31 23:59:58.700000+00:00",
    ]


def test_a_row_without_fields(spark: SparkSession) -> None:
    none = FormatSpec("avro", {}, RowType(()), ())
    assert compare(spark, none, [b"", b"x"]) == 1
    table = made(none).decode(array([b"", b""]))
    assert (table.num_rows, table.num_columns) == (2, 0)


@pytest.mark.parametrize(
    ("type", "payload", "reason"),
    [
        ("BIGINT NOT NULL", b"\x80", "a document is truncated, or not of its schema"),
        ("BIGINT NOT NULL", b"\0secret", "a document is longer than its schema says"),
        ("INT NOT NULL", b"\xff" * 6, "a number has more than 32 bits"),
        ("TINYINT NOT NULL", b"\xfe\x7f", "field 'x' is out of the usual range"),
        ("STRING NOT NULL", b"\x0esecret\xff", "field 'x' is not valid UTF-8"),
        ("STRING NOT NULL", b"\1", "a length is negative, or more than 64 MiB"),
        ("STRING", b"\6", "field 'x' has another type of a union"),
        ("BOOLEAN NOT NULL", b"\5", "field 'x' is neither true nor false"),
        ("FLOAT NOT NULL", b"\1\0\xc0\x7f", "field 'x' has an unusual NaN"),
        ("DECIMAL(3, 1) NOT NULL", b"\4\x7f\xff", "field 'x' is out of range of DECIMAL(3, 1) NOT NULL"),
        ("DATE NOT NULL", b"\xfe\xff\xff\xff\x0f", "field 'x' is out of the usual range"),
        ("ROW<y BOOLEAN NOT NULL>", b"\2\7", "field 'x.y' is neither true nor false"),
    ],
)
def test_a_reason_names_the_field_and_has_no_payload(type: str, payload: bytes, reason: str) -> None:
    assert refused({"x": type}, payload) == reason


@pytest.mark.parametrize("type", ["ARRAY<INT>", "MAP<STRING, INT>", "ROW<a INT, b ARRAY<BYTES>>"])
def test_types_that_are_left_to_spark(type: str) -> None:
    found = given({"x": "INT", "a": type})
    part = "field 'a.b' is ARRAY<BYTES>" if type.startswith("ROW") else f"field 'a' is {type}"
    assert refusal(lambda: arrow_decoder(found)) == part


def test_the_json_encoding_is_left_to_spark() -> None:
    assert refusal(lambda: arrow_decoder(given(encoding="json"))) == "avro.encoding is json"


def test_a_decoder_is_sent_to_workers() -> None:
    decoder = made(given())
    sent = pickle.loads(pickle.dumps(decoder))
    assert sent == decoder and sent.decode(array([of(i=1)]))["i"].to_pylist() == [1]


def test_workers_import_little() -> None:
    program = """
import sys, bridge.arrow_formats.avro, bridge.arrow_formats.raw
print([m for m in ("pyspark", "pydantic", "pandas", "fastavro", "bridge.options", "bridge.config") if m in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


_confluent_TYPES = {"a": "BIGINT", "b": "STRING"}
_URL = "http://me:secret@127.0.0.1:9"


def confluent_given(types: dict[str, str] | None = None, **options: Any) -> FormatSpec:
    return spec("avro-confluent", types or _confluent_TYPES, **({"url": Secret(_URL)} | options))


def writer(**fields: Any) -> str:
    made = [{"name": name, "type": type} for name, type in fields.items()]
    return json.dumps({"type": "record", "name": "W", "fields": made})


def framed(id: int, document: bytes) -> bytes:
    return b"\0" + id.to_bytes(4, "big") + document


def known(*writers: str, types: dict[str, str] | None = None) -> ArrowDecoder:
    """A decoder that knows these writers by the numbers 0, 1 and so on."""
    decoder = arrow_decoder(confluent_given(types))
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
    found = confluent_given(types, url=registry.url, subject=subject)
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
        found = confluent_given(types, url=registry.url, subject=subject, schema=json.dumps(own))
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


def test_a_row_without_fields_confluent() -> None:
    decoder = replace(known(writer(a="int"), writer(b="int")), row=confluent_given().row.__class__(()))  # type: ignore[type-var]
    assert isinstance(decoder, AvroConfluentArrowDecoder)
    decoder = decoder.with_schemas({0: writer(a="int"), 1: writer(b="int")})
    table = decoder.decode(array([framed(0, b"\0"), framed(1, b"\2"), framed(0, b"\4")]))
    assert (table.num_rows, table.num_columns) == (3, 0)


def test_no_payload_gives_no_row_of_all_columns() -> None:
    assert known().decode(array([])).equals(arrow_schema(confluent_given().row).empty_table())


@pytest.mark.parametrize("type", ["ARRAY<INT>", "MAP<STRING, INT>"])
def test_types_that_are_left_to_spark_confluent(type: str) -> None:
    assert refusal(lambda: arrow_decoder(confluent_given({"x": "INT", "a": type}))) == f"field 'a' is {type}"


def test_workers_get_neither_the_address_of_the_registry_nor_credentials() -> None:
    sent = pickle.dumps(known(writer(a="long")))
    assert b"secret" not in sent and b"127.0.0.1" not in sent
    assert pickle.loads(sent).decode(array([framed(0, b"\4")]))["a"].to_pylist() == [2]
    assert isinstance(pickle.loads(sent).decode(array([framed(0, b"\4")])), pa.Table)
