"""Pipelines of one process run for a minute at the same time, with all readers, and share what they may share."""

from __future__ import annotations

import io
import itertools
import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import fastavro
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from pyspark.sql import SparkSession

from bridge.definition import Definition
from bridge.embedded.broker import Broker
from bridge.embedded.schema_registry import SchemaRegistryServer
from bridge.metrics import Summary
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.publish.run import publish
from bridge.pipelines.runtime.rounds import run_rounds
from tests.pipelines.world import Record, World, tombstone, upsert

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SECONDS = 60.0
KEYS = 40
APPENDS = {
    "columns": "id BIGINT, name STRING, amount DECIMAL(10, 2)",
    "cleanup": "delete",
    "options": {
        "connector": "kafka",
        "key.format": None,
        "value.format": None,
        "format": "json",
        "scan.startup.mode": "earliest-offset",
    },
}
READERS: dict[str, dict[str, Any]] = {
    "consumer": {"sections": "ingest: {reader: consumer}\nmerge: {engine: driver}\n"},
    "spark": {"sections": "ingest: {reader: spark}\n"},
    "appends": APPENDS,
}


class Writers:
    """Documents of writers whose schemas differ: each one's is registered when it writes for the first time."""

    def __init__(self, registry: str, subject: str) -> None:
        self._client, self._subject = SchemaRegistryClient({"url": registry}), subject

    def documents(self, writer: int) -> list[Record]:
        fields = [
            {"name": "name", "type": ["null", "string"]},
            {"name": f"extra{writer}", "type": "int"},
        ]
        schema: Any = {"type": "record", "name": "w", "fields": fields}
        id = self._client.register_schema(self._subject, Schema(json.dumps(schema), "AVRO"))
        return [(json.dumps({"id": key}), self._document(schema, id, writer, key)) for key in range(KEYS)]

    def _document(self, schema: Any, id: int, writer: int, key: int) -> bytes:
        out = io.BytesIO(b"\0" + id.to_bytes(4, "big"))
        out.seek(5)
        row = {"name": f"{writer}-{key}", f"extra{writer}": writer}
        fastavro.schemaless_writer(out, fastavro.parse_schema(schema), row)
        return out.getvalue()


def test_all_of_them_for_a_minute(
    spark: SparkSession,
    broker: Broker,
    registry: SchemaRegistryServer,
    lake: Path,
    unique: Callable[[str], str],
) -> None:
    """Two read documents of one subject, which gets a schema after the other while they do. All write their metrics,
    events and lineage into the same files."""
    subject, worlds = unique("subject"), dict[str, World]()
    watched = {
        "metrics": f"{lake}/all.prom",
        "events": f"{lake}/events.jsonl",
        "lineage": f"{lake}/lineage.jsonl",
    }
    avro = {
        "columns": "id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED",
        "options": {
            "value.format": "avro-confluent",
            "value.avro-confluent.url": registry.url,
            "value.avro-confluent.subject": subject,
            "value.fields-include": "EXCEPT_KEY",
        },
    }
    for name, more in {"avro1": avro, "avro2": avro, **READERS}.items():
        worlds[name] = World.make(spark, broker, lake, unique, folder=name, partitions=2, **more)
    out = World(spark, broker, worlds["spark"].folder, unique("out"))
    broker.create_topic(out.topic, partitions=2)
    definitions = [
        world.definition(name, {"max-offsets-per-batch": 400 if name == "spark" else 100, **watched})
        for name, world in worlds.items()
    ]
    publishes = out.definition("out", {"checkpoint": "out"})
    writers, failures, stop = Writers(registry.url, subject), list[str](), threading.Event()

    def send(number: int) -> None:
        for name in ("avro1", "avro2"):
            worlds[name].send(writers.documents(number))
        changes = [
            tombstone(id) if (id + number) % 7 == 0 else upsert(id, f"{number}-{id}") for id in range(KEYS)
        ]
        for name in ("consumer", "spark"):
            worlds[name].send(changes)
        worlds["appends"].send([(None, upsert(number, f"{id}")[1]) for id in range(KEYS)])

    def run(session: SparkSession, definition: Definition) -> Summary:
        return (publish if definition is publishes else ingest)(session, definition)

    def rounds(every: float | None) -> int:
        return run_rounds(
            spark,
            [*definitions, publishes],
            run,
            parallel=4,
            every_seconds=every,
            stop=stop,
            failed=lambda definition, failure: failures.append(f"{definition.name}: {failure}"),
        ).rounds

    send(0)
    for definition in definitions:
        ingest(spark, definition)
    begun, number = time.monotonic(), 0
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(rounds, 0.0)
        try:
            for number in itertools.count(1):
                send(number)
                if time.monotonic() - begun > SECONDS or running.done():
                    break
                time.sleep(5)
        finally:
            stop.set()
        made = running.result(300)
    stop.clear()
    rounds(None)
    rounds(None)  # a publish may have run before the ingest of its table
    print(f"{made} rounds, {number} writers")
    assert failures == [] and made > 1
    for name in ("avro1", "avro2"):
        assert worlds[name].rows() == sorted(((id, f"{number}-{id}") for id in range(KEYS)), key=str)
    for definition in definitions[:4]:
        assert verify(spark, definition).equal
    assert verify(spark, publishes, direction="publish").equal
    assert worlds["appends"].table().select("id", "name").distinct().count() == (number + 1) * KEYS
    assert worlds["appends"].table().count() == (number + 1) * KEYS
    for kind in ("events", "lineage"):
        assert all(map(json.loads, Path(watched[kind]).read_text().splitlines()))
    assert "bridge_commits_total" in Path(watched["metrics"]).read_text()
