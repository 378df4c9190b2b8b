"""Records of an upsert topic to changes: identity, tombstones, metadata, bad records."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession

from bridge.columns import BAD, KIND, POSITION
from bridge.compact import TWO_PARTITIONS, latest_by_offset
from bridge.decode import BAD_KEY_ID, decode_keys, decode_values
from bridge.definition import FormatSpec, Topic
from bridge.schema import (
    Column,
    ComputedColumn,
    MapType,
    MetadataColumn,
    PhysicalColumn,
    ScalarType,
    TableSchema,
)
from tests.decode.records import AT, RECORD

_INT, _STRING, _BYTES = ScalarType("INT"), ScalarType("STRING"), ScalarType("BYTES")


def _records(spark: SparkSession, *documents: tuple[bytes | None, bytes | None], **more: Any) -> DataFrame:
    """Records of one partition, by key and value; `more` is the same for all."""
    rest = {"topic": "t", "partition": 0, "timestamp": AT, "timestampType": 0} | more
    rows = [{"key": k, "value": v, "offset": n} | rest for n, (k, v) in enumerate(documents)]
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=RECORD))


def _topic(
    *more: Column, key: tuple[str, ...] = ("id",), options: dict[str, Any] | None = None, prefix: str = ""
) -> Topic:
    columns = (PhysicalColumn("id", _INT.required()), PhysicalColumn("v", _STRING), *more)
    schema = TableSchema(columns, key)
    value = tuple(c.name for c in schema.physical if not (prefix and c.name in key))
    return Topic(
        connector="upsert-kafka",
        names=("t",),
        schema=schema,
        key=FormatSpec("json", options or {}, schema.row(key, prefix), key),
        value=FormatSpec("json", options or {}, schema.row(value), value),
        properties={},
    )


def _latest(records: DataFrame, topic: Topic) -> DataFrame:
    keyed = decode_keys(records, topic)
    return decode_values(latest_by_offset(keyed, [*topic.schema.primary_key, BAD_KEY_ID]), topic)


def _every(records: DataFrame, topic: Topic) -> DataFrame:
    return decode_values(decode_keys(records, topic), topic)


def _in_order(frame: DataFrame) -> list[Row]:
    return sorted(frame.collect(), key=lambda row: row[POSITION].offset)


def test_the_key_document_is_the_identity_and_only_null_deletes(spark: SparkSession) -> None:
    records = _records(
        spark, (b'{"id":1}', b'{"id":99,"v":"a"}'), (b'{"id":2}', b'{"id":2,"v":null}'), (b'{"id":1}', None)
    )
    changes = _every(records, _topic())
    assert changes.columns == ["id", "v", KIND, BAD, POSITION]
    assert [tuple(row)[:4] for row in _in_order(changes)] == [
        (1, "a", "+U", None),
        (2, None, "+U", None),
        (1, None, "-D", None),
    ]
    first = _in_order(changes)[0][POSITION]
    assert (first.topic, first.partition, first.offset) == ("t", 0, 0)
    assert first.timestamp.isoformat() == "2020-02-29T12:00:00.987000"


def test_a_null_value_in_the_raw_format_deletes_too(spark: SparkSession) -> None:
    """The raw format reads null as a row, but in an upsert topic a null value is a tombstone, and a null key is bad."""
    schema = TableSchema((PhysicalColumn("id", _STRING.required()), PhysicalColumn("v", _STRING)), ("id",))
    key, value = (FormatSpec("raw", {}, schema.row((name,)), (name,)) for name in ("id", "v"))
    topic = Topic("upsert-kafka", ("t",), schema, key, value, {})
    records = _records(spark, (b"a", None), (b"b", b""), (None, b"x"), (None, None))
    for fast in (False, True):
        keyed = decode_keys(records, topic, fast=fast)
        actual = _in_order(decode_values(keyed, topic, fast=fast))
        assert [(r.id, r.v, r[KIND]) for r in actual] == [
            ("a", None, "-D"),
            ("b", "", "+U"),
            (None, None, None),
            (None, None, None),
        ]
        assert all(r[BAD].startswith("null key") for r in actual[2:])


def test_keys_without_any_column_of_the_key_are_no_row(spark: SparkSession) -> None:
    """They would all be the row of NULL, and each would replace the one before."""
    envelopes = [b'{"schema":{},"payload":{"id":%d}}' % id for id in (1, 2)]
    changes = _latest(_records(spark, *[(e, e) for e in envelopes], (b'{"Id":3}', None)), _topic())
    actual = _in_order(changes)
    assert [(row["id"], row[KIND]) for row in actual] == [(None, None)] * 3
    assert all(row[BAD].startswith("key: the document has none of the ") for row in actual)
    assert ["'payload'" in row[BAD] for row in actual] == [True, True, False]


def test_key_and_value_may_have_fields_of_one_name(spark: SparkSession) -> None:
    topic = _topic(PhysicalColumn("k_v", _INT), key=("k_v",), prefix="k_")
    [row] = _every(_records(spark, (b'{"v":7}', b'{"id":1,"v":"x","k_v":8}')), topic).collect()
    assert (row["id"], row["v"], row["k_v"]) == (1, "x", 7)


def test_only_the_last_value_of_a_key_is_read_and_nothing_bad_is_lost(spark: SparkSession) -> None:
    records = _records(
        spark,
        (b'{"id":1}', b"superseded garbage"),
        (b'{"id":1}', b'{"id":1,"v":"last"}'),
        (None, b'{"id":1}'),
        (None, b'{"id":2}'),
        (b'{"id":"x"}', b'{"id":3}'),
        (b"[]", b'{"id":3}'),
        (b'{"id":4}', b""),
    )
    changes = _latest(records, _topic())
    assert TWO_PARTITIONS in changes.columns
    assert [(r[POSITION].offset, r["id"], r["v"], r[KIND], r[BAD]) for r in _in_order(changes)] == [
        (1, 1, "last", "+U", None),
        (
            2,
            None,
            None,
            None,
            "null key: in an upsert topic the key identifies the row, and must not be null",
        ),
        (
            3,
            None,
            None,
            None,
            "null key: in an upsert topic the key identifies the row, and must not be null",
        ),
        (4, None, None, None, "key: field 'id' cannot be read as INT"),
        (5, None, None, None, "key: the document must hold exactly one row"),
        (6, 4, None, None, "value: empty document"),
    ]


def test_not_null_is_checked_for_upserts_and_not_for_deletes(spark: SparkSession) -> None:
    topic = _topic(PhysicalColumn("must", _STRING.required()))
    records = _records(spark, (b'{"id":1}', b'{"id":1,"v":"a"}'), (b'{"id":2}', None))
    bad, gone = _in_order(_every(records, topic))
    assert bad[BAD] == "column 'must' is NOT NULL, and the record has no value for it"
    assert (bad["id"], bad["v"], bad[KIND]) == (1, None, None)
    assert (gone["id"], gone[KIND], gone[BAD]) == (2, "-D", None)


def test_ignored_parse_errors_are_dropped_and_arrays_give_their_last_row(spark: SparkSession) -> None:
    records = _records(
        spark,
        (b'{"id":1}', b"garbage"),
        (b"garbage", b'{"id":1}'),
        (b'{"id":2}', b"[]"),
        (b'{"id":3}', b'[{"v":"a"},{"v":"b"}]'),
        (b'{"id":4}', b'{"id":"x","v":["c"]}'),
    )
    rows = _in_order(_latest(records, _topic(options={"ignore-parse-errors": True})))
    assert [(r[KIND], r["v"], r[BAD]) for r in rows] == [
        ("dropped", None, None),
        ("dropped", None, None),
        ("skip", None, None),
        ("+U", "b", None),
        ("+U", '["c"]', None),
    ]


_METADATA = (
    MetadataColumn("topic", _STRING, "topic"),
    MetadataColumn("value", ScalarType("BIGINT"), "partition", virtual=True),
    MetadataColumn("offset", ScalarType("BIGINT"), "offset", virtual=True),
    MetadataColumn("timestamp", ScalarType("TIMESTAMP", (0,)), "timestamp"),
    MetadataColumn("instant", ScalarType("TIMESTAMP_LTZ", (1,)), "timestamp"),
    MetadataColumn("kind", _STRING, "timestamp-type", virtual=True),
    MetadataColumn("headers", MapType(_STRING, _BYTES), "headers"),
    MetadataColumn("texts", MapType(_STRING, _STRING), "headers", virtual=True),
    ComputedColumn("shown", "v || topic", "concat(`v`, ' in ', `topic`)"),
    ComputedColumn("twice", "id * 2", "`id` * 2"),
)


def test_metadata_and_computed_columns(spark: SparkSession) -> None:
    """Names of Kafka's columns are free for a table's columns of other meaning."""
    headers = [{"key": "a", "value": b"1"}, {"key": "b", "value": b"x"}, {"key": "a", "value": b"2"}]
    documents = ((b'{"id":1}', b'{"v":"x"}'), (b'{"id":2}', None))
    records = _records(spark, *documents, partition=3, timestampType=1, headers=headers)
    upsert, delete = _in_order(_latest(records, _topic(*_METADATA)))
    assert {name: upsert[name] for name in ("topic", "value", "offset", "kind", "shown", "twice")} == {
        "topic": "t",
        "value": 3,
        "offset": 0,
        "kind": "LogAppendTime",
        "shown": "x in t",
        "twice": 2,
    }
    assert upsert["timestamp"].isoformat() == "2020-02-29T12:00:00"
    assert upsert["instant"].isoformat() == "2020-02-29T12:00:00.900000"
    assert {k: bytes(v) for k, v in upsert["headers"].items()} == {"a": b"2", "b": b"x"}
    assert upsert["texts"] == {"a": "2", "b": "x"}
    assert [name for name in _topic(*_METADATA).schema.names if delete[name] is not None] == ["id"]


def test_a_record_without_headers_has_an_empty_map(spark: SparkSession) -> None:
    [row] = _every(_records(spark, (b'{"id":1}', b"{}"), timestampType=-1), _topic(*_METADATA)).collect()
    assert (row["headers"], row["texts"], row["kind"]) == ({}, {}, "NoTimestampType")
