"""Changes to records: keys, values, tombstones and metadata."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bridge.columns import AFTER, BEFORE, KIND, POSITION
from bridge.definition import FormatSpec, Sink, Topic
from bridge.encode import encode, encode_changes
from bridge.options import FORMATS
from bridge.pipelines.runtime.spark_errors import raised_reason
from bridge.schema import (
    ArrayType,
    DataType,
    MapType,
    MetadataColumn,
    PhysicalColumn,
    RowField,
    RowType,
    ScalarType,
    TableSchema,
)

_INT, _STRING = ScalarType("INT"), ScalarType("STRING")


def _topic(schema: TableSchema, key: tuple[str, ...], value: tuple[str, ...], prefix: str = "") -> Topic:
    return Topic(
        connector="upsert-kafka",
        names=("t",),
        schema=schema,
        key=FormatSpec("json", {}, schema.row(key, prefix), key),
        value=FormatSpec("json", {}, schema.row(value), value),
        properties={},
    )


def _changes(spark: SparkSession, columns: str, rows: list[tuple[Any, ...]]) -> Any:
    schema = f"{columns}, {KIND} string, {POSITION} struct<version: bigint>"
    return spark.createDataFrame([(*row, (n,)) for n, row in enumerate(rows)], schema)


def test_adds_carry_both_documents_and_retractions_are_tombstones(spark: SparkSession) -> None:
    schema = TableSchema((PhysicalColumn("id", _INT), PhysicalColumn("v", _STRING)), ("id",))
    rows = [(1, "a", "+I"), (1, "a", "-U"), (1, "b", "+U"), (1, "b", "-D"), (2, None, "-D")]
    records = encode(_changes(spark, "id int, v string", rows), _topic(schema, ("id",), ("id", "v")))
    assert records.columns == ["key", "value", POSITION]
    assert [
        (bytes(r.key), r.value and bytes(r.value)) for r in records.orderBy(f"{POSITION}.version").collect()
    ] == [
        (b'{"id":1}', b'{"id":1,"v":"a"}'),
        (b'{"id":1}', None),
        (b'{"id":1}', b'{"id":1,"v":"b"}'),
        (b'{"id":1}', None),
        (b'{"id":2}', None),
    ]


def test_documents_have_their_own_names_and_orders(spark: SparkSession) -> None:
    """As in Flink's example of key.fields-prefix: two fields `user_id`, one of them the key's."""
    names = ("k_user_id", "name", "k_event.id", "user_id")
    schema = TableSchema(
        tuple(PhysicalColumn(n, _STRING if n == "name" else _INT) for n in names), names[::2]
    )
    topic = _topic(schema, ("k_event.id", "k_user_id"), ("name", "user_id"), "k_")
    changes = _changes(
        spark, "k_user_id int, name string, `k_event.id` int, user_id int", [(1, "n", 100, 41, "+I")]
    )
    [record] = encode(changes, topic).collect()
    assert bytes(record.key) == b'{"event.id":100,"user_id":1}'
    assert bytes(record.value) == b'{"name":"n","user_id":41}'


def test_writable_metadata_becomes_part_of_the_record(spark: SparkSession) -> None:
    def metadata(name: str, type: DataType, key: str, virtual: bool = False) -> MetadataColumn:
        return MetadataColumn(name, type, key, virtual)

    schema = TableSchema(
        (
            PhysicalColumn("id", _INT),
            metadata("at", ScalarType("TIMESTAMP", (3,)), "timestamp"),
            metadata("h", MapType(_STRING, ScalarType("BYTES")), "headers"),
            metadata("where", _STRING, "topic"),
            metadata("offset", ScalarType("BIGINT"), "offset", virtual=True),
        ),
        ("id",),
    )
    columns = "id int, at timestamp_ntz, h map<string,binary>, where string, offset bigint, __kind string"
    changes = spark.sql(
        f"SELECT * FROM VALUES (1, timestamp_ntz'2020-02-29 12:00:00.123', map('a', X'01'), 'other', 7L, '+U', "
        f"named_struct('version', 0L)), (2, null, null, null, null, '-D', named_struct('version', 1L)) "
        f"AS t({', '.join(c.split()[0] for c in columns.split(', '))}, {POSITION})"
    )
    records = encode(changes, _topic(schema, ("id",), ("id",)))
    assert records.columns == ["key", "value", "timestamp", "headers", "topic", POSITION]
    first, second = records.orderBy(f"{POSITION}.version").collect()
    assert records.schema["timestamp"].dataType.typeName() == "timestamp"
    assert first.timestamp.isoformat() == "2020-02-29T12:00:00.123000"
    assert [(h.key, bytes(h.value)) for h in first.headers] == [("a", b"\x01")] and first.topic == "other"
    assert (second.value, second.timestamp, second.headers, second.topic) == (None, None, None, None)


def test_headers_declared_as_texts_are_written_as_bytes(spark: SparkSession) -> None:
    headers = MetadataColumn("h", MapType(_STRING, _STRING), "headers")
    schema = TableSchema((PhysicalColumn("id", _INT), headers), ("id",))
    changes = spark.sql(
        f"SELECT 1 AS id, map('a', 'é') AS h, '+I' AS {KIND}, named_struct('version', 0L) AS {POSITION}"
    )
    [record] = encode(changes, _topic(schema, ("id",), ("id",))).collect()
    assert [(h.key, bytes(h.value)) for h in record.headers] == [("a", "é".encode())]


def test_a_list_of_headers_is_written_in_its_order(spark: SparkSession) -> None:
    entries = ArrayType(RowType((RowField("name", _STRING), RowField("content", _STRING))))
    schema = TableSchema((PhysicalColumn("id", _INT), MetadataColumn("h", entries, "header-list")), ("id",))
    headers = "array(named_struct('name', 'a', 'content', '1'), named_struct('name', 'a', 'content', '2'))"
    changes = spark.sql(
        f"SELECT 1 AS id, {headers} AS h, '+I' AS {KIND}, named_struct('version', 0L) AS {POSITION}"
    )
    [record] = encode(changes, _topic(schema, ("id",), ("id",))).collect()
    assert [(h.key, bytes(h.value)) for h in record.headers] == [("a", b"1"), ("a", b"2")]


def test_headers_of_the_sink_follow_the_row_s_and_are_in_tombstones(spark: SparkSession) -> None:
    """As `sink.add-tableId-to-header-enabled` writes them."""
    sink = Sink(headers=(("schemaName", ""), ("tableName", "größe")))
    made = [("schemaName", b""), ("tableName", "größe".encode())]
    rows = [(1, {"a": b"\x01"}, "+I"), (2, None, "+I"), (3, {"a": None}, "-D")]
    changes = _changes(spark, "id int, h map<string,binary>", rows)

    def headers(*columns: MetadataColumn) -> list[list[tuple[str, bytes | None]]]:
        schema = TableSchema((PhysicalColumn("id", _INT), *columns), ("id",))
        records = encode(changes, replace(_topic(schema, ("id",), ("id",)), sink=sink))
        assert records.columns == ["key", "value", "headers", POSITION]
        actual = records.orderBy(f"{POSITION}.version").collect()
        return [[(h.key, None if h.value is None else bytes(h.value)) for h in r.headers] for r in actual]

    assert headers() == [made] * 3
    own = MetadataColumn("h", MapType(_STRING, ScalarType("BYTES")), "headers")
    assert headers(own) == [[("a", b"\x01"), *made], made, [("a", None), *made]]


@pytest.mark.parametrize(
    ("format", "constants", "documents"),
    [
        (
            "canal-json",
            {"database": "größe", "table": "t", "pkNames": ["id"]},
            [
                '{"data":[{"id":1,"v":"a"}],"type":"INSERT","database":"größe","table":"t","pkNames":["id"]}',
                '{"old":[{"id":2,"v":"a"}],"data":[{"id":2,"v":"}"}],"type":"UPDATE","database":"größe","table":"t",'
                '"pkNames":["id"]}',
                '{"data":[{"id":3,"v":null}],"type":"DELETE","database":"größe","table":"t","pkNames":["id"]}',
            ],
        ),
        (
            "debezium-json",
            {"source": {"db": None, "table": "t"}},
            [
                '{"before":null,"after":{"id":1,"v":"a"},"op":"c","source":{"db":null,"table":"t"}}',
                '{"before":{"id":2,"v":"a"},"after":{"id":2,"v":"}"},"op":"u","source":{"db":null,"table":"t"}}',
                '{"before":{"id":3,"v":null},"after":null,"op":"d","source":{"db":null,"table":"t"}}',
            ],
        ),
    ],
)
def test_constants_end_every_message(
    spark: SparkSession, format: str, constants: dict[str, Any], documents: list[str]
) -> None:
    """As the kafka sink of Flink CDC has them (its tests of CanalJson- and DebeziumJsonSerializationSchema)."""
    schema = TableSchema((PhysicalColumn("id", _INT), PhysicalColumn("v", _STRING)), ("id",))
    value = replace(_topic(schema, ("id",), ("id", "v")).value, name=format, constants=constants)
    topic = replace(_topic(schema, ("id",), ("id", "v")), connector="kafka", value=value)
    row = "named_struct('id', {}, 'v', {})".format
    none = "CAST(NULL AS STRUCT<id: INT, v: STRING>)"
    sides = [(none, row(1, "'a'")), (row(2, "'a'"), row(2, "'}'")), (row(3, "CAST(NULL AS STRING)"), none)]
    frame = spark.sql(
        " UNION ALL ".join(
            f"SELECT {before} AS {BEFORE}, {after} AS {AFTER}, named_struct('version', {n}L) AS {POSITION}"
            for n, (before, after) in enumerate(sides)
        )
    )
    records = encode_changes(frame, topic).orderBy(f"{POSITION}.version").collect()
    assert [bytes(record.value).decode() for record in records] == documents


@pytest.mark.parametrize(
    "format", ["json", "csv", "avro", "canal-json", "debezium-json", "maxwell-json", "ogg-json"]
)
def test_texts_that_are_not_utf_8_are_refused(spark: SparkSession, format: str) -> None:
    """Java would replace their bytes, and the topic would have another text than the table."""
    nested = RowType((RowField("x", ArrayType(_STRING)),)) if format != "csv" else ArrayType(_STRING)
    columns = (PhysicalColumn("id", _STRING), PhysicalColumn("v", _STRING), PhysicalColumn("n", nested))
    schema = TableSchema(columns, ("id",))
    topic = _topic(schema, ("id",), ("id", "v", "n"))
    topic = replace(topic, value=replace(topic.value, name=format))
    bad, array = "CAST(X'61ff' AS STRING)", "array('é', {})".format
    wrapped = "named_struct('x', {})".format if format != "csv" else str
    rows = [("'a'", "'é'", "'a'"), (bad, "'a'", "'a'"), ("'a'", bad, "'a'"), ("'a'", "'a'", bad)]
    for at, (id, v, n) in enumerate(rows):
        row = f"named_struct('id', {id}, 'v', {v}, 'n', {wrapped(array(n))})"
        position = f"named_struct('version', 7L) AS {POSITION}"
        if FORMATS[format].insert_only:
            frame = spark.sql(f"SELECT r.*, '+U' AS {KIND}, {position} FROM (SELECT {row} AS r)")
            records = encode(frame, topic)
        else:
            records = encode_changes(
                spark.sql(f"SELECT {row} AS {BEFORE}, {row} AS {AFTER}, {position}"), topic
            )
        if not at:
            assert records.collect()[0].value
            continue
        with pytest.raises(PySparkException) as refused:
            records.collect()
        column, named = ("id", "v", "n")[at - 1], "json" if at == 1 else format
        assert (raised_reason(refused.value) or "").startswith(
            f"column '{column}' of a row holds a text that is not valid UTF-8, which format '{named}' cannot carry. "
            "Correct the row in the table; where it has a PRIMARY KEY, `bridge resync FILE` then sends"
        )


def test_raw_has_the_bytes_of_any_text_and_gone_rows_send_none(spark: SparkSession) -> None:
    schema = TableSchema((PhysicalColumn("id", _INT), PhysicalColumn("v", _STRING)), ("id",))
    topic = _topic(schema, ("id",), ("v",))
    frame = spark.sql(
        f"SELECT 1 AS id, CAST(X'61ff' AS STRING) AS v, k AS {KIND}, named_struct('version', 1L) AS {POSITION} "
        "FROM VALUES ('-D'), ('+U') AS t(k)"
    )
    assert [r.value for r in encode(frame.where(f"{KIND} = '-D'"), topic).collect()] == [None]
    raw = replace(topic, value=replace(topic.value, name="raw"))
    assert [r.value and bytes(r.value) for r in encode(frame, raw).collect()] == [None, b"a\xff"]
    as_utf_16 = replace(raw, value=replace(raw.value, options={"charset": "UTF-16BE"}))
    with pytest.raises(PySparkException, match="not valid UTF-8, which format 'raw' cannot carry"):
        encode(frame, as_utf_16).collect()
