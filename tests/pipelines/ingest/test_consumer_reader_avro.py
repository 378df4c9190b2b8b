"""Consumers read Avro and raw documents as Spark's source does; new schemas become known as they are used."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from bridge.definition import FormatSpec
from bridge.embedded.schema_registry import SchemaRegistryServer
from bridge.errors import BadRecordError, KafkaError
from bridge.format_rules.avro_derive import derive
from bridge.pipelines.ingest.run import ingest
from tests.pipelines.world import Make, Record, World, readers

COLUMNS = "id BIGINT, name STRING, amount DECIMAL(10, 2), at TIMESTAMP(3), ok BOOLEAN, PRIMARY KEY (id) NOT ENFORCED"
AT = datetime(2026, 11, 23, 10, 0, 0, 123_000, tzinfo=timezone.utc)


def written(schema: Any, fields: Mapping[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), fields)
    return out.getvalue()


def values(count: int) -> list[tuple[int, dict[str, Any] | None]]:
    """Upserts and deletes of few keys."""
    return [
        (
            n % 7,
            None
            if n % 5 == 4
            else {
                "id": n % 7,
                "name": None if n % 3 == 0 else f"ä{n}",
                "amount": Decimal(n).scaleb(-2),
                "at": AT if n % 2 else None,
                "ok": (None, True, False)[n % 3],
            },
        )
        for n in range(count)
    ]


def schema_of(spec: FormatSpec | None) -> Any:
    assert spec is not None
    return derive(spec.row, legacy_timestamps=True)


def rows_by(world: World, reader: str) -> tuple[list[Any], list[str]]:
    """The table's rows and the readers of its batches, when `reader` reads the topic into a new table."""
    other = replace(world, folder=world.folder / reader, sections=f"ingest: {{reader: {reader}}}\n")
    other.folder.mkdir()
    reports = other.batches()
    return other.rows(), readers(reports)


def test_avro(make: Make) -> None:
    world = make(columns=COLUMNS, options={"key.format": "avro", "value.format": "avro"})
    topic = world.definition().topic
    key, value = schema_of(topic.key), schema_of(topic.value)
    world.send(
        (written(key, {"id": id}), None if fields is None else written(value, fields))
        for id, fields in values(60)
    )
    rows, by = rows_by(world, "consumer")
    assert by == ["consumer"]
    assert len(rows) == 5 and (rows, ["spark"]) == rows_by(world, "spark")


def test_avro_of_several_writers_with_raw_keys(make: Make, registry: SchemaRegistryServer) -> None:
    """The second batch has a schema under another subject, whose id is looked up when the batch is read."""
    options = {
        "key.format": "raw",
        "value.format": "avro-confluent",
        "value.avro-confluent.url": registry.url,
        "value.fields-include": "EXCEPT_KEY",
    }
    world = make(columns=COLUMNS, options=options, partitions=1)
    own = schema_of(world.definition().topic.value)
    fewer = {**own, "fields": [{"name": "gone", "type": "string"}, *own["fields"][::-1][1:]]}
    client = SchemaRegistryClient({"url": registry.url})

    def records(subject: str, schema: Any, count: int) -> list[Record]:
        id = int(client.register_schema(subject, Schema(json.dumps(schema), "AVRO"))).to_bytes(4, "big")
        return [
            (
                key.to_bytes(8, "big"),
                None if fields is None else b"\0" + id + written(schema, fields | {"gone": "x"}),
            )
            for key, fields in values(count)
        ]

    world.send(records(f"{world.topic}-value", own, 10))
    world.send(records(f"{world.topic}-elsewhere", fewer, 20))
    by_spark, _ = rows_by(world, "spark")
    world.options = {**options, "value.avro-confluent.properties.max.retries": "1"}  # a client without memory
    world.sections = "ingest: {reader: consumer}\n"
    reports = world.batches({"max-offsets-per-batch": 10})
    assert [r.reader for r in reports] == ["consumer"] * 3
    assert world.rows() == by_spark and len(by_spark) == 5


def test_spark_names_the_document_of_a_schema_that_no_registry_has(
    make: Make, registry: SchemaRegistryServer
) -> None:
    options = {"value.format": "avro-confluent", "value.avro-confluent.url": registry.url}
    world = make(columns=COLUMNS, options=options, partitions=1)
    world.send([('{"id": 1}', b"\0\x7f\xff\xff\xff\1\0")])
    with pytest.raises(BadRecordError, match="unknown schema id 2147483647: the schema registry has none"):
        ingest(world.spark, world.definition())


def test_a_registry_that_cannot_be_reached_is_an_error_without_credentials(make: Make) -> None:
    options = {
        "value.format": "avro-confluent",
        "value.avro-confluent.url": "http://me:secret@127.0.0.1:9",
        "value.avro-confluent.properties.max.retries": "0",
    }
    world = make(columns=COLUMNS, options=options, sections="ingest: {reader: consumer}\n")
    world.send([('{"id": 1}', b"\0\0\0\0\1\0")])
    with pytest.raises(
        KafkaError, match=r"schema registry http://127\.0\.0\.1:9: .*it cannot be reached"
    ) as down:
        ingest(world.spark, world.definition())
    assert "secret" not in str(down.value)
