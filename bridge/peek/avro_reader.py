"""Reads Avro documents with fastavro: by the schema that Flink derives from the DDL, or the writer's by its id."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import fastavro

from bridge.config.registry_settings import registry_settings
from bridge.definition import FormatSpec
from bridge.format_rules.avro_derive import derive
from bridge.formats.avro.registry_client import RegistryClient, registry_client
from bridge.peek.readers import Reader, Undecodable, as_json

_HEADER = 5
"""Bytes of Confluent's framing: a zero byte and the schema id in four."""


def reader(spec: FormatSpec) -> Reader:
    """Return a reader of documents of the schema that Flink derives from the fields of `spec`."""
    legacy = bool(spec.options.get("timestamp_mapping.legacy", True))
    schema = fastavro.parse_schema(derive(spec.row, legacy_timestamps=legacy))
    if str(spec.options.get("encoding", "binary")) == "json":
        return lambda document: _read(document, lambda source: _of_json(source, schema))
    return lambda document: _read(document, lambda source: fastavro.schemaless_reader(source, schema, None))


def framed_reader(spec: FormatSpec) -> Reader:
    """Return a reader of documents in Confluent's framing, whose schemas are in the registry of `spec.options`.

    Raises OptionError for settings that the registry client cannot follow. Calling the reader may raise KafkaError.
    """
    return _FramedReader(registry_client(registry_settings(spec.options, f"{spec.name}.")))


class _FramedReader:
    """Reads documents of any writer's schema, and looks up each schema id once."""

    def __init__(self, registry: RegistryClient) -> None:
        self._registry = registry
        self._schemas: dict[int, Any] = {}

    def __call__(self, document: bytes) -> str:
        if len(document) < _HEADER or document[0] != 0:
            raise Undecodable(
                "not in Confluent's framing, which is a zero byte, four of a schema id, the document"
            )
        id = int.from_bytes(document[1:_HEADER], "big")
        schema = self._schema(id)
        return _read(document[_HEADER:], lambda source: fastavro.schemaless_reader(source, schema, None))

    def _schema(self, id: int) -> Any:
        if id not in self._schemas:
            known = self._registry.schemas_by_id([id], None).get(id)
            if known is None or known.problem:
                reason = known.problem if known else "is not known to the schema registry"
                raise Undecodable(f"schema id {id} {reason}")
            self._schemas[id] = fastavro.parse_schema(json.loads(known.text))
        return self._schemas[id]


def _read(document: bytes, parse: Callable[[io.BytesIO], Any]) -> str:
    source = io.BytesIO(document)
    try:
        value = parse(source)
    except Exception as bad:  # fastavro raises errors of many types for bytes that are not of the schema
        raise Undecodable(f"no document of its Avro schema ({type(bad).__name__})") from None
    if rest := len(document) - source.tell():
        raise Undecodable(f"{rest} bytes follow the Avro document")
    return as_json(value)


def _of_json(source: io.BytesIO, schema: Any) -> Any:
    (value,) = fastavro.json_reader(io.StringIO(source.read().decode()), schema)
    return value
