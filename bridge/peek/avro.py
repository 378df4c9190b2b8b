"""Avro documents, read by fastavro: with the schema that Flink derives from the DDL, or the writer's by its id."""

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
from bridge.peek.base import Reader, Undecodable, as_json

__all__ = ["reader"]

_HEADER = 5
"""Confluent's framing: a zero byte and the schema's id in four."""


def reader(spec: FormatSpec) -> Reader:
    """The reader of `avro`, `avro-confluent` or `debezium-avro-confluent`, as `documents.reader` describes it."""
    if spec.name != "avro":
        return _Framed(registry_client(registry_settings(spec.options, f"{spec.name}.")))
    legacy = bool(spec.options.get("timestamp_mapping.legacy", True))
    schema = fastavro.parse_schema(derive(spec.row, legacy_timestamps=legacy))
    if str(spec.options.get("encoding", "binary")) == "json":
        return lambda document: _read(document, lambda source: _of_json(source, schema))
    return lambda document: _read(document, lambda source: fastavro.schemaless_reader(source, schema, None))


class _Framed:
    """Reads documents of any writer's schema; each id is asked for once."""

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
        found = parse(source)
    except Exception as bad:  # fastavro raises whatever its reading of foreign bytes comes to
        raise Undecodable(f"no document of its Avro schema ({type(bad).__name__})") from None
    if rest := len(document) - source.tell():
        raise Undecodable(f"{rest} bytes follow the Avro document")
    return as_json(found)


def _of_json(source: io.BytesIO, schema: Any) -> Any:
    (found,) = fastavro.json_reader(io.StringIO(source.read().decode()), schema)
    return found
