"""debezium-json: operations, the schema envelope, metadata, the placeholder of unavailable values."""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.errors import OptionError
from bridge.formats import catalog
from bridge.formats.base import TRUNCATES
from bridge.schema import ArrayType, MapType
from tests.formats.changes import GOODS, UNREADABLE, changes, check_changes, decoder_of, details, metadata_of
from tests.formats.support import encode_changes, row_type, scalar

NAME = "debezium-json"
PLACEHOLDER = "__debezium_unavailable_value"
OLD, NEW = (1, "old", 1.5), (1, "new", 2.5)
OLD_TEXT, NEW_TEXT = b'{"id":1,"name":"old","weight":1.5}', b'{"id":"1","name":"new","weight":2.5,"more":{}}'


def _document(op: bytes, before: bytes = b"null", after: bytes = b"null", more: bytes = b"") -> bytes:
    return b'{"before":%s,"after":%s,"op":%s%s}' % (before, after, op, more)


def test_each_operation_gives_its_changes(spark: SparkSession) -> None:
    """Without a key an update needs the before image; fields are read as json reads them."""
    expected: dict[bytes | None, Any] = {
        _document(b'"c"', after=NEW_TEXT): [("+I", *NEW)],
        _document(b'"r"', OLD_TEXT, NEW_TEXT): [("+I", *NEW)],
        _document(b'"u"', OLD_TEXT, NEW_TEXT): [("-U", *OLD), ("+U", *NEW)],
        _document(b'"d"', OLD_TEXT, NEW_TEXT): [("-D", *OLD)],
        b'{"op":"d","before":{"id":1}}': [("-D", 1, None, None)],
        b'{"op":"d","before":{"id":1},"before":{"id":2}}': [("-D", 2, None, None)],
        b'{"op":"c","after":{"id":1,"name":1.10}}': [("+I", 1, "1.1", None)],
        None: [],
        b"": [],
        _document(b'"u"', after=NEW_TEXT): 'The "before" field of UPDATE message is null',
        _document(b'"d"', after=NEW_TEXT): "REPLICA IDENTITY of its table to FULL",
        _document(b'"c"', OLD_TEXT): "field 'after' is null or missing",
        _document(b'"u"', OLD_TEXT): "field 'after' is null or missing",
        _document(b'"secret"', OLD_TEXT): "field 'op' has an unknown value; known are c, r, u, d",
        _document(b'"t"'): TRUNCATES,
        _document(b'"m"'): "field 'op' is 'm', which is no change of a row; known are c, r, u, d",
        _document(b"null", OLD_TEXT): "field 'op' is null or missing",
        b'{"payload":{"op":"c"}}': "need 'schema-include' = 'true'",
        _document(b'"c"', after=b'{"id":"secret"}'): "field 'after.id' cannot be read as INT",
        _document(b'"c"', after=b'{"id":2147483648}'): "field 'after.id' cannot be read as INT",
        _document(b'"c"', after=b'{"weight":NaN}'): "malformed",
        _document(b'"u"', b"[]", NEW_TEXT): "field 'before' cannot be read as ROW",
        **UNREADABLE,
    }
    check_changes(spark, decoder_of(NAME), expected)


def test_with_a_key_an_update_needs_no_before_image(spark: SparkSession) -> None:
    documents = [_document(b'"u"', after=NEW_TEXT), _document(b'"d"')]
    updated, deleted = changes(spark, decoder_of(NAME, key=("id",)), documents)
    assert updated == [("+U", *NEW)]
    assert deleted.startswith('The "before" field of DELETE message is null')


def test_schema_include_reads_the_payload(spark: SparkSession) -> None:
    wrapped = b'{"schema":{"type":"struct","fields":[]},"payload":%s}'
    expected: dict[bytes, Any] = {
        wrapped % _document(b'"u"', OLD_TEXT, NEW_TEXT): [("-U", *OLD), ("+U", *NEW)],
        b'{"payload":%s}' % _document(b'"c"', after=NEW_TEXT): [("+I", *NEW)],
        wrapped % b"null": "field 'payload' is null or missing",
        _document(b'"c"', after=NEW_TEXT): "field 'payload' is null or missing",
        wrapped % _document(b'"c"', after=b'{"id":"x"}'): "field 'payload.after.id' cannot be read as INT",
        wrapped % _document(b'"x"'): "field 'payload.op' has an unknown value",
        wrapped % _document(b'"t"'): TRUNCATES,
    }
    check_changes(spark, decoder_of(NAME, options={"schema-include": True}), expected)


def test_ignore_parse_errors_reads_bad_fields_as_null(spark: SparkSession) -> None:
    """A document without a change is still an error, for the caller to count."""
    decoder = decoder_of(NAME, options={"ignore-parse-errors": True})
    assert decoder.skips_errors
    documents = [_document(b'"c"', after=b'{"id":1,"weight":"x"}'), _document(b'"x"'), b"{"]
    good, unknown, broken = changes(spark, decoder, documents)
    assert good == [("+I", 1, None, None)]
    assert "'op'" in unknown and "malformed" in broken


_SOURCE = b',"ts_ms":1589355606100,"source":{"ts_ms":7,"db":"inventory","table":"products","n":null,"x":1.10}'


def test_metadata_is_read_from_the_envelope(spark: SparkSession) -> None:
    """Everything in every row of the document; without a source, null."""
    documents = [
        b'{"op":"u","before":{"id":1},"after":{"id":2},"schema":{"a":1}%s}' % _SOURCE,
        b'{"op":"c","after":{"id":1}}',
        b'{"op":"c","after":{"id":1},"ts_ms":9223372036854775807}',
        b'{"op":"c","after":{"id":1},"source":{"ts_ms":"secret"}}',
    ]
    everything = details(spark, decoder_of(NAME, metadata=metadata_of(NAME)), documents, "metadata")
    values = {
        "schema": '{"a":1}',
        "ingestion-timestamp": datetime(2020, 5, 13, 7, 40, 6, 100_000),
        "source.timestamp": datetime(1970, 1, 1, 0, 0, 0, 7_000),
        "source.database": "inventory",
        "source.schema": None,
        "source.table": "products",
        "source.properties": {"ts_ms": "7", "db": "inventory", "table": "products", "n": None, "x": "1.1"},
    }
    nothing: dict[str, Any] = dict.fromkeys(values)
    assert everything[:2] == [[values, values], [nothing]]
    assert everything[2:] == [
        "field 'ts_ms' cannot be read as TIMESTAMP_LTZ",
        "field 'source.ts_ms' cannot be read as TIMESTAMP_LTZ",
    ]
    some = metadata_of(NAME, "source.table", "schema", "source.timestamp")
    decoder = decoder_of(NAME, options={"schema-include": True}, metadata=some)
    wrapped = b'{"schema":{"a":1},"payload":{"op":"c","after":{"id":1}%s}}' % _SOURCE
    [[few]] = details(spark, decoder, [wrapped], "metadata")
    assert list(few.items()) == [(key, values[key]) for key in some.names]


def test_a_placeholder_is_null_and_its_field_is_unavailable(spark: SparkSession) -> None:
    """On the fast path and by a full decode (a fraction in a STRING); in lists, maps and bytes too."""
    row = row_type(
        id=scalar("INT"),
        text=scalar("STRING"),
        bytes=scalar("BYTES"),
        texts=ArrayType(scalar("STRING")),
        numbers=ArrayType(scalar("BIGINT")),
        pairs=MapType(scalar("STRING"), scalar("STRING")),
        other=scalar("STRING"),
    )
    coded = base64.b64encode(PLACEHOLDER.encode()).decode()
    numbers = ",".join(str(b) for b in PLACEHOLDER.encode())
    held = (
        f'{{"id":1,"text":"{PLACEHOLDER}","bytes":"{coded}","texts":["{PLACEHOLDER}"],"numbers":[{numbers}],'
        f'"pairs":{{"{PLACEHOLDER}":"{PLACEHOLDER}"}},"other":%s}}'
    )
    documents = [_document(b'"c"', after=(held % other).encode()) for other in ('"a"', "1.10")]
    documents.append(
        _document(b'"u"', (held % '"a"').encode(), b'{"id":1,"texts":["%s","b"]}' % coded.encode())
    )
    decoder = decoder_of(NAME, row)
    assert decoder.has_unavailable
    nulls = [None] * 5
    assert changes(spark, decoder, documents) == [
        [("+I", 1, *nulls, "a")],
        [("+I", 1, *nulls, "1.1")],
        [("-U", 1, *nulls, "a"), ("+U", 1, None, None, [coded, "b"], None, None, None)],
    ]
    fields = ["text", "bytes", "texts", "numbers", "pairs"]
    assert details(spark, decoder, documents, "unavailable") == [[fields], [fields], [fields, None]]


def test_an_insert_and_a_delete_are_flinks_bytes_an_update_is_one_message(spark: SparkSession) -> None:
    some = [(None, OLD), (OLD, None), (OLD, (1, None, 2.5)), (None, None)]
    written = encode_changes(spark, catalog.get(NAME).encoder(GOODS, {}), GOODS, some)
    assert written == [
        b'{"before":null,"after":{"id":1,"name":"old","weight":1.5},"op":"c"}',
        b'{"before":{"id":1,"name":"old","weight":1.5},"after":null,"op":"d"}',
        b'{"before":{"id":1,"name":"old","weight":1.5},"after":{"id":1,"name":null,"weight":2.5},"op":"u"}',
        None,
    ]
    sparing = catalog.get(NAME).encoder(GOODS, {"encode.ignore-null-fields": True})
    assert encode_changes(spark, sparing, GOODS, [*some[:2], (None, (1, None, None))]) == [
        b'{"after":{"id":1,"name":"old","weight":1.5},"op":"c"}',
        b'{"before":{"id":1,"name":"old","weight":1.5},"op":"d"}',
        b'{"after":{"id":1},"op":"c"}',
    ]


def test_documents_with_schemas_are_not_written() -> None:
    with pytest.raises(OptionError, match="Debezium JSON serialization doesn't support"):
        catalog.get(NAME).encoder(GOODS, {"schema-include": True})
