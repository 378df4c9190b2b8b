"""Provides the schemas of a case, and its documents in Confluent's framing, written by Avro's Java library.

The first case that needs a registry starts it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from pyspark.sql import SparkSession

from bridge.embedded.schema_registry import SchemaRegistryServer
from tests.cases.outcome import Unsupported

_LAST_ID = 5000


class Schemas:
    """The registry of a run."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self._registry: SchemaRegistryServer | None = None
        self._client: SchemaRegistryClient | None = None
        self._texts: dict[int, str] = {}

    @property
    def url(self) -> str:
        """The URL of the registry; starts it on first use."""
        if self._registry is None:
            self._registry = SchemaRegistryServer(self.folder).start()
        return self._registry.url

    def stop(self) -> None:
        """Stops the registry, which loses its schemas."""
        if self._registry is not None:
            self._registry.stop()
        self._registry, self._client, self._texts = None, None, {}

    def register(self, subject: str, schema: Any) -> int:
        """Registers `schema` (JSON) under `subject` and returns its id."""
        text = json.dumps(schema)
        id = int(self._connected().register_schema(subject, Schema(text, "AVRO")))
        self._texts[id] = text
        return id

    def _connected(self) -> SchemaRegistryClient:
        if self._client is None:
            self._client = SchemaRegistryClient({"url": self.url})
        return self._client

    def place(self, id: int, subject: str, schema: Any) -> None:
        """Registers `schema` with this id. Ids are sequential, so other schemas are registered up to it."""
        if not 0 < id <= _LAST_ID:
            raise Unsupported(f"schema id {id}")
        if self._texts.get(id) not in (None, json.dumps(schema)) or max(self._texts, default=0) > id:
            self.stop()
        while id not in self._texts:
            due = max(self._texts, default=0) + 1
            filler = {"type": "fixed", "name": "filler", "size": due}
            self.register(subject if due == id else "filler", schema if due == id else filler)

    def framed(self, document: Mapping[str, Any], schemas: Mapping[str, Any], subject: str) -> bytes:
        """Encodes {"avro": a document in Avro's JSON encoding, "schema": its name in `schemas`}."""
        schema = schemas.get(document.get("schema", ""))
        if schema is None:
            raise Unsupported("avro-confluent: a document whose schema the case does not give")
        head = b"\x00" + self.register(subject, schema).to_bytes(4, "big")
        return head + _encoded(self.spark, json.dumps(schema), json.dumps(document["avro"]))


def _encoded(spark: SparkSession, schema: str, document: str) -> bytes:
    jvm: Any = spark.sparkContext._jvm
    avro = jvm.org.apache.avro
    parsed = jvm.org.apache.avro.Schema.Parser().parse(schema)
    value = avro.generic.GenericDatumReader(parsed).read(
        None, avro.io.DecoderFactory.get().jsonDecoder(parsed, document)
    )
    out = jvm.java.io.ByteArrayOutputStream()
    encoder = avro.io.EncoderFactory.get().binaryEncoder(out, None)
    avro.generic.GenericDatumWriter(parsed).write(value, encoder)
    encoder.flush()
    return bytes(out.toByteArray())
