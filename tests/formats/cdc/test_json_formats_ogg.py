"""ogg-json: Debezium's two states with GoldenGate's words."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pyspark.sql import SparkSession

from bridge.formats import catalog
from bridge.formats.base import TRUNCATES
from tests.formats.changes import GOODS, UNREADABLE, changes, check_changes, decoder_of, details, metadata_of
from tests.formats.support import encode_changes

NAME = "ogg-json"
OLD, NEW = (1, "old", 1.5), (1, "new", 2.5)
OLD_TEXT, NEW_TEXT = b'{"id":1,"name":"old","weight":1.5}', b'{"id":1,"name":"new","weight":2.5}'


def _document(type: bytes, before: bytes = b"null", after: bytes = b"null", more: bytes = b"") -> bytes:
    return b'{"op_type":"%s","before":%s,"after":%s%s}' % (type, before, after, more)


def test_each_operation_gives_its_changes(spark: SparkSession) -> None:
    expected: dict[bytes | None, Any] = {
        _document(b"I", after=NEW_TEXT): [("+I", *NEW)],
        _document(b"U", OLD_TEXT, NEW_TEXT): [("-U", *OLD), ("+U", *NEW)],
        _document(b"D", OLD_TEXT): [("-D", *OLD)],
        None: [],
        b"": [],
        _document(b"U", after=NEW_TEXT): 'The "before" field of UPDATE message is null',
        _document(b"D", after=NEW_TEXT): 'The "before" field of DELETE message is null',
        _document(b"I"): "field 'after' is null or missing",
        _document(b"T"): TRUNCATES,
        _document(b"secret"): "field 'op_type' has an unknown value; known are I, U, D",
        b'{"after":{"id":1}}': "field 'op_type' is null or missing",
        _document(b"I", after=b'{"id":"secret"}'): "field 'after.id' cannot be read as INT",
        **UNREADABLE,
    }
    check_changes(spark, decoder_of(NAME), expected)
    assert not decoder_of(NAME).has_unavailable
    [keyed] = changes(spark, decoder_of(NAME, key=("id",)), [_document(b"U", after=NEW_TEXT)])
    assert keyed == [("+U", *NEW)]


def test_metadata_is_read_from_the_document(spark: SparkSession) -> None:
    """Times come as GoldenGate writes them, of UTC, or as milliseconds."""
    more = (
        b',"table":"OGG.T","primary_keys":["ID"],"op_ts":"2020-10-08 14:36:35.123456",'
        b'"current_ts":"2020-10-08T14:36:39.000000"'
    )
    documents = [
        _document(b"I", after=NEW_TEXT, more=more),
        _document(b"I", after=NEW_TEXT, more=b',"op_ts":1602167795123'),
        _document(b"I", after=NEW_TEXT, more=b',"current_ts":"secret"'),
    ]
    nothing = dict.fromkeys(metadata_of(NAME).names)
    values = {
        "table": "OGG.T",
        "primary-keys": ["ID"],
        "ingestion-timestamp": datetime(2020, 10, 8, 14, 36, 39),
        "event-timestamp": datetime(2020, 10, 8, 14, 36, 35, 123_000),
    }
    assert details(spark, decoder_of(NAME, metadata=metadata_of(NAME)), documents, "metadata") == [
        [values],
        [{**nothing, "event-timestamp": datetime(2020, 10, 8, 14, 36, 35, 123_000)}],
        "field 'current_ts' cannot be read as TIMESTAMP_LTZ",
    ]


def test_changes_are_written_with_both_states(spark: SparkSession) -> None:
    some = [(None, NEW), (OLD, None), (OLD, NEW), (None, None)]
    assert encode_changes(spark, catalog.get(NAME).encoder(GOODS, {}), GOODS, some) == [
        b'{"before":null,"after":%s,"op_type":"I"}' % NEW_TEXT,
        b'{"before":%s,"after":null,"op_type":"D"}' % OLD_TEXT,
        b'{"before":%s,"after":%s,"op_type":"U"}' % (OLD_TEXT, NEW_TEXT),
        None,
    ]
