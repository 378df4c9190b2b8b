"""Avro's JSON encoding, against fastavro's reader and writer of it.

avro-confluent against a real registry: ids, subjects, writers that differ, and what is refused.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.schema_registry_client import SchemaReference
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bridge.embedded.schema_registry import SchemaRegistryServer
from bridge.errors import KafkaError, OptionError
from bridge.format_rules.avro_derive import derive
from bridge.formats import catalog as formats
from bridge.formats.avro.format import AvroFormat
from bridge.formats.base import NEEDS_FULL_DECODE
from bridge.schema import ArrayType, MapType, RowType
from bridge.secret import Secret
from tests.formats.gate import Gate
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


_confluent_FORMAT = formats.get("avro-confluent")
_confluent_ROW = row_type(a=scalar("BIGINT"), b=scalar("STRING"))


@pytest.fixture
def client(registry: SchemaRegistryServer) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": registry.url})


def _record(*fields: dict[str, Any]) -> str:
    return json.dumps({"type": "record", "name": "W", "namespace": "w", "fields": list(fields)})


def _framed(id: int, document: bytes) -> bytes:
    return b"\x00" + id.to_bytes(4, "big") + document


def test_the_first_document_registers_the_derived_schema(
    spark: SparkSession, client: SchemaRegistryClient, registry_options: dict[str, Any]
) -> None:
    encoder = _confluent_FORMAT.encoder(_confluent_ROW, registry_options)
    [first, again] = encode_all(spark, encoder, _confluent_ROW, [(1, "x"), None])
    latest = client.get_latest_version(registry_options["subject"])
    assert again is None and first == _framed(int(latest.schema_id or 0), b"\x02\x02\x02\x02x")
    assert latest.schema is not None
    made = json.loads(str(latest.schema.schema_str))
    assert (made["name"], made["namespace"]) == ("record", "org.apache.flink.avro.generated")
    assert [f["type"] for f in made["fields"]] == [["null", "long"], ["null", "string"]]


def test_a_writer_s_schema_may_be_a_union(
    spark: SparkSession, client: SchemaRegistryClient, registry_options: dict[str, Any]
) -> None:
    """The fast path reads the only record of a union, past the number of its branch; others need a full decode."""

    def branch(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
        return {"type": "record", "name": name, "fields": list(fields)}

    def register(*branches: Any) -> int:
        schema = Schema(json.dumps(branches), "AVRO")
        return int(client.register_schema(registry_options["subject"], schema))

    a, text = {"name": "a", "type": ["null", "long"]}, {"name": "a", "type": "string"}
    one, two = register("null", "string", branch("A", a)), register(branch("A", text), branch("B", a))
    payloads = [
        _framed(one, b"\x04\x02\x0e"),
        _framed(one, b"\x00"),
        _framed(one, b"\x02\x02x"),
        _framed(one, b"\x04\x00"),
        _framed(two, b"\x02\x02\x0e"),
        _framed(two, b"\x00\x02x"),
    ]
    decoder = _confluent_FORMAT.decoder(_confluent_ROW, registry_options)
    actual = decode_all(spark, decoder, payloads)
    rows = [None if rows is None else rows[0][1]["a"] for rows, _ in actual]
    assert rows == [7, None, None, None, 7, None] and actual[3][1] is None
    fast = decode_all(spark, decoder, payloads, fast=True)
    assert all(a in (b, (None, NEEDS_FULL_DECODE)) for a, b in zip(fast, actual, strict=True))
    assert fast[0] == actual[0] and fast[4] == actual[4]


def test_one_batch_of_several_writers(
    spark: SparkSession, client: SchemaRegistryClient, registry_options: dict[str, Any]
) -> None:
    """Each by its own schema: missing fields, defaults, another order; errors name the field.

    The fast path knows the subject's newest schemas; documents of others, and truncated ones, need a full decode."""
    subject = registry_options["subject"]
    text = {"name": "b", "type": "string"}

    def register(schema: str, kind: str = "AVRO", under: str = subject, **more: Any) -> int:
        return int(client.register_schema(under, Schema(schema, kind, **more)))

    known = register(_record({"name": "a", "type": "int"}, {"name": "gone", "type": "double"}))
    swapped = register(_record(text, {"name": "a", "type": "long"}))
    misfit = register(_record({"name": "a", "type": ["null", "string"]}))
    elsewhere = register(_record({"name": "a", "type": "long"}, text), under=f"{subject}-other")
    not_avro = register(
        '{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}', "JSON", f"{subject}-json"
    )
    register('{"type": "enum", "name": "w.E", "symbols": ["ON", "OFF"]}', under=f"{subject}-part")
    referring = register(
        _record({"name": "b", "type": "w.E"}, {"name": "again", "type": "w.E"}),
        under=f"{subject}-refers",
        references=[SchemaReference("w.E", f"{subject}-part", 1)],
    )
    payloads = [
        _framed(known, b"\x0e" + b"\x00" * 8),
        _framed(swapped, b"\x02x\x02"),
        _framed(misfit, b"\x02\x02x"),
        _framed(elsewhere, b"\x04\x02y"),
        _framed(not_avro, b"{}"),
        _framed(referring, b"\x02\x00"),
        _framed(2**32 - 1, b"secret"),
        _framed(known, b"\x0e\x00"),
        _framed(known, b"\x0e" + b"\x00" * 8 + b"\n"),
        b"\x00\x00",
        b"",
        b"{secret}",
        None,
    ]
    decoder = _confluent_FORMAT.decoder(_confluent_ROW, registry_options)
    actual = decode_all(spark, decoder, payloads)
    rows = [None if rows is None else tuple(rows[0][1].values()) for rows, _ in actual]
    assert rows == [
        (7, None), (1, "x"), None, (2, "y"), None, (None, "OFF"), None, None, (7, None), None, None, None, None,
    ]  # fmt: skip
    errors = [error for _, error in actual]
    assert [n for n, error in enumerate(errors) if error is None] == [0, 1, 3, 5, 8, 12]
    assert errors[2] == (
        f"schema id {misfit} does not fit the table: field 'a': the writer has string, the table BIGINT"
    )
    assert errors[4] == f"schema id {not_avro} is of type JSON, not AVRO"
    assert (errors[6] or "").startswith("unknown schema id 4294967295: the schema registry has none")
    assert "truncated" in (errors[7] or "")
    assert all("shorter than Confluent's framing" in (e or "") for e in errors[9:11])
    assert "first byte is not 0" in (errors[11] or "")
    fresh = _confluent_FORMAT.decoder(
        _confluent_ROW, {**registry_options, "properties.max.retries": "1"}
    )  # another client: no memory
    fast = decode_all(spark, fresh, payloads, fast=True)
    assert [n for n, (_, error) in enumerate(fast) if error == NEEDS_FULL_DECODE] == [3, 4, 5, 6, 7]
    assert all(a in (b, (None, NEEDS_FULL_DECODE)) for a, b in zip(fast, actual, strict=True))


def test_a_missing_field_needs_a_default_when_it_is_not_null(
    spark: SparkSession, client: SchemaRegistryClient, registry_options: dict[str, Any]
) -> None:
    """The option `schema` has defaults, of any type; without it NOT NULL has none."""
    id = int(
        client.register_schema(
            registry_options["subject"], Schema(_record({"name": "a", "type": "long"}), "AVRO")
        )
    )
    row = row_type(a=scalar("BIGINT"), b=scalar("STRING").required(), c=scalar("TIMESTAMP", 3))
    millis = {"type": "long", "logicalType": "timestamp-millis"}
    given = _record(
        {"name": "a", "type": "long"},
        {"name": "b", "type": "string", "default": "99"},
        {"name": "c", "type": [millis, "null"], "default": 1000},
    )
    payload = _framed(id, b"\x02")
    [(_, refused)] = decode_all(spark, _confluent_FORMAT.decoder(row, registry_options), [payload])
    assert "field 'b': the writer's schema has no such field, and the table's STRING NOT NULL" in (
        refused or ""
    )
    [(rows, error)] = decode_all(
        spark, _confluent_FORMAT.decoder(row, {**registry_options, "schema": given}), [payload]
    )
    assert error is None and rows is not None
    assert (rows[0][1]["b"], str(rows[0][1]["c"])) == ("99", "1970-01-01 00:00:01")


def test_a_given_schema_is_written_and_the_registered_one_may_be_used(
    spark: SparkSession, client: SchemaRegistryClient, registry_options: dict[str, Any]
) -> None:
    subject = registry_options["subject"]
    given = _record({"name": "b", "type": ["string", "null"]}, {"name": "a", "type": "long"})
    look_only = {**registry_options, "properties.auto.register.schemas": "false"}
    with pytest.raises(
        KafkaError, match=f"not registered under '{subject}', and 'auto.register.schemas' is false"
    ):
        encode_all(spark, _confluent_FORMAT.encoder(_confluent_ROW, look_only), _confluent_ROW, [])
    latest = {**registry_options, "properties.use.latest.version": "true"}
    with pytest.raises(KafkaError, match=f"subject '{subject}' has no schema to be the latest one"):
        encode_all(spark, _confluent_FORMAT.encoder(_confluent_ROW, latest), _confluent_ROW, [])
    [written] = encode_all(
        spark,
        _confluent_FORMAT.encoder(_confluent_ROW, {**registry_options, "schema": given}),
        _confluent_ROW,
        [(1, "x")],
    )
    assert written is not None and written[5:] == b"\x00\x02x\x02"
    assert encode_all(
        spark, _confluent_FORMAT.encoder(_confluent_ROW, latest), _confluent_ROW, [(1, "x")]
    ) == [written]
    assert encode_all(
        spark,
        _confluent_FORMAT.encoder(_confluent_ROW, {**look_only, "schema": given}),
        _confluent_ROW,
        [(1, "x")],
    ) == [written]
    client.register_schema(subject, Schema(_record({"name": "a", "type": "string"}), "AVRO"))
    changed = _confluent_FORMAT.encoder(_confluent_ROW, {**latest, "properties.max.retries": "1"})
    with pytest.raises(
        OptionError, match=r"'properties.use.latest.version': .* does not match the table schema"
    ):
        encode_all(spark, changed, _confluent_ROW, [])


def test_writing_needs_a_subject() -> None:
    with pytest.raises(OptionError, match=r"Option 'avro-confluent.subject' is required for serialization"):
        _confluent_FORMAT.encoder(_confluent_ROW, {"url": "http://127.0.0.1:9"})


@pytest.fixture
def gate(registry: SchemaRegistryServer) -> Iterator[Gate]:
    with Gate(registry.url) as running:
        yield running


def test_credentials_reach_the_registry_and_no_message(gate: Gate, unique: Callable[[str], str]) -> None:
    """Basic, in the URL, and a bearer token; a refusal names the options and not their values."""
    gate.accepts = {"Basic dXNlcjpwOncgZA==", "Bearer t0ken"}  # user:p:w d
    accepted: list[dict[str, Any]] = [
        {"url": gate.url, "basic-auth.user-info": Secret("user:p:w d")},
        {"url": gate.url, "basic-auth.credentials-source": "USER_INFO", "basic-auth.user-info": "user:p:w d"},
        {"url": Secret(gate.url.replace("//", "//user:p%3Aw%20d@")), "basic-auth.credentials-source": "URL"},
        {
            "url": gate.url,
            "bearer-auth.credentials-source": "STATIC_TOKEN",
            "bearer-auth.token": Secret("t0ken"),
        },
    ]
    for options in accepted:
        _confluent_FORMAT.decoder(_confluent_ROW, {**options, "subject": unique("s")}).decode(F.col("x"))
    assert gate.passed >= len(accepted)
    wrong = {"url": gate.url.replace("//", "//user:secret@"), "subject": unique("s")}
    with pytest.raises(KafkaError, match=r"it refuses the credentials \(401\)") as refused:
        _confluent_FORMAT.decoder(_confluent_ROW, wrong).decode(F.col("x"))
    assert "secret" not in str(refused.value) and gate.url in str(refused.value)


def test_requests_to_a_failing_registry_are_retried_and_not_for_ever(
    gate: Gate, unique: Callable[[str], str], tmp_path: Path
) -> None:
    gate.failures = 2
    _confluent_FORMAT.decoder(_confluent_ROW, {"url": gate.url, "subject": unique("s")}).decode(F.col("x"))
    assert gate.passed == 1
    slow = {"url": gate.url, "subject": unique("s"), "properties.http.read.timeout.ms": "100"}
    gate.delay = 1.0
    with pytest.raises(KafkaError, match=f"schema registry {gate.url}: .*cannot be reached .*Timeout"):
        _confluent_FORMAT.decoder(_confluent_ROW, {**slow, "properties.max.retries": "0"}).decode(F.col("x"))
    gone = {"url": "http://me:secret@127.0.0.1:9", "subject": "s", "properties.max.retries": "1"}
    with pytest.raises(KafkaError, match=r"schema registry http://127.0.0.1:9: .*cannot be reached") as down:
        _confluent_FORMAT.decoder(_confluent_ROW, gone).decode(F.col("x"))
    assert "secret" not in str(down.value)


def test_a_key_s_schema_must_have_a_field_of_the_key(
    spark: SparkSession, client: SchemaRegistryClient, registry_options: dict[str, Any]
) -> None:
    """All of its documents would have one key, of nulls."""
    schema = Schema(_record({"name": "A", "type": "long"}), "AVRO")
    id = int(client.register_schema(registry_options["subject"], schema))
    document = _framed(id, b"\x0e")
    for fast in (False, True):
        [(rows, error)] = decode_all(
            spark,
            _confluent_FORMAT.decoder(_confluent_ROW, registry_options, key=("a", "b")),
            [document],
            fast=fast,
        )
        assert rows is None and error == (
            f"schema id {id} does not fit the table: it has none of the key's fields 'a', 'b' (fields are matched by "
            "their exact names)"
        )
    [(rows, error)] = decode_all(
        spark, _confluent_FORMAT.decoder(_confluent_ROW, registry_options), [document]
    )
    assert (error, rows) == (None, [("+I", {"a": None, "b": None})])
