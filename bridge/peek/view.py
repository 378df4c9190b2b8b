"""Decodes records, filters them by key, names their row kind, and formats them for people and for programs.

Key and value bytes become JSON text by the reader that the format declares. These readers are not the decoders of an
ingest, which check every field against the DDL, in Spark. Here a JSON document is shown as it is, a CDC document as a
whole, and only formats without names in their documents take them from the DDL.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from bridge.console import printable
from bridge.definition import Definition, FormatSpec, Topic
from bridge.format_rules.change_documents import CANAL, DEBEZIUM, MAXWELL, OGG
from bridge.options.formats import FORMATS, load
from bridge.peek.readers import Reader, Undecodable, as_json
from bridge.peek.records import Filter, Record

_WRAPPER = "payload"
"""The field in which Kafka Connect's converter wraps a change event."""
_OPERATIONS = {
    "c": "+I",
    "r": "+I",
    "i": "+I",
    "insert": "+I",
    "u": "-U +U",
    "update": "-U +U",
    "d": "-D",
    "delete": "-D",
}
_OTHERS = {word for words in (CANAL, DEBEZIUM, MAXWELL, OGG) for word in (*words.others, words.truncate)}


def kind_of(topic: Topic, value: bytes | None, document: str | None) -> str:
    """Return the row kind of a record by its value's bytes and its decoded `document`; "" for an unknown operation.
    An operation of the tool that is no change of a row (a truncate) is shown as it is.

    upsert-kafka: +U (an insert or an update, which only the table can distinguish), or -D for a tombstone. Insert-only
    formats of `kafka`: +I. CDC formats: the operation of the document; an update is -U +U.
    """
    if topic.is_upsert:
        return "-D" if value is None else "+U"
    format = FORMATS[topic.value.name]
    if format.insert_only:
        return "+I"
    event = json.loads(document) if document is not None else None
    if (
        isinstance(event, dict)
        and isinstance(event.get(_WRAPPER), dict)
        and format.operation_field not in event
    ):
        event = event[_WRAPPER]
    if not isinstance(event, dict):
        return ""
    operation = event.get(format.operation_field)
    if not isinstance(operation, str):
        return ""
    return operation if operation in _OTHERS else _OPERATIONS.get(operation.lower(), "")


def matches(topic: Topic, key: str) -> Filter:
    """Return a filter of records with this key: its bytes as text, its only column's value, or its document as JSON."""
    decode = reader(topic.key) if topic.key is not None else None
    value = _parsed(key)

    def filter(record: Record) -> bool:
        if record.key is None:
            return False
        if record.key == key.encode():
            return True
        if decode is None:
            return False
        try:
            document = json.loads(decode(record.key))
        except Undecodable:
            return False
        fields = list(document.values()) if isinstance(document, dict) else []
        only = len(fields) == 1 and (fields[0] == value or str(fields[0]) == key)
        return bool(document == value or only)

    return filter


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


_SHOWN_BYTES = 200
_HIDDEN = "***"
ALL = "*"
"""In `Definition.peek_hides`: hides keys, values and headers as a whole."""


@dataclass(frozen=True)
class Part:
    """A key or a value: its JSON text, or the bytes and the reason why they have none."""

    json: str | None
    """None for a null, and for what cannot be decoded or is hidden as a whole."""
    bytes: bytes | None = None
    reason: str = ""

    @property
    def text(self) -> str:
        """Return one line for people."""
        if self.reason and self.bytes is not None:
            rest = f" ... {len(self.bytes):,} bytes in all" if len(self.bytes) > _SHOWN_BYTES else ""
            return f"{self.bytes[:_SHOWN_BYTES]!r}{rest}  (undecodable: {self.reason})"
        return self.reason or ("null" if self.json is None else self.json)

    def as_value(self) -> Any:
        """Return the document for programs; for bytes an object with `undecodable` and the bytes in base64."""
        if self.reason and self.bytes is not None:
            return {"undecodable": self.reason, "base64": base64.b64encode(self.bytes).decode()}
        return {"hidden": self.reason} if self.reason else json.loads(self.json or "null")


@dataclass(frozen=True)
class DecodedRecord:
    """A record, decoded."""

    record: Record
    kind: str
    """Flink's RowKind, see `kinds.kind_of`."""
    key: Part
    value: Part
    headers_hidden: bool = False

    @property
    def headers(self) -> dict[str, str | None]:
        """Return names and values as text; empty where a pipeline hides everything."""
        if self.headers_hidden:
            return {}
        return {n: None if v is None else v.decode("utf-8", "replace") for n, v in self.record.headers}

    @property
    def time(self) -> str:
        """Return the record's timestamp in UTC; "" where it has none."""
        if self.record.timestamp is None:
            return ""
        at = datetime.fromtimestamp(self.record.timestamp / 1000, timezone.utc)
        return at.isoformat(sep=" ", timespec="milliseconds").replace("+00:00", "Z")

    def lines(self) -> str:
        """Return lines for a terminal: the position, then key, value and headers."""
        record = self.record
        head = f"{record.topic}-{record.partition} offset {record.offset}  {self.time}  {self.kind}".rstrip()
        headers = ", ".join(f"{name}={value}" for name, value in self.headers.items())
        parts = "\n".join(
            [
                head,
                f"  key    {self.key.text}",
                f"  value  {self.value.text}",
                *([f"  headers  {headers}"] if headers else []),
            ]
        )
        return printable(parts)

    def as_dict(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        record = self.record
        return {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": self.time or None,
            "kind": self.kind or None,
            "key": self.key.as_value(),
            "value": self.value.as_value(),
            "headers": self.headers,
        }


def viewer(definition: Definition) -> Callable[[Record], DecodedRecord]:
    """Return a function that decodes records by the pipeline's formats and hides what `peek.hide` names.

    The function raises KafkaError where a schema registry does not answer.
    """
    topic, hide = definition.topic, definition.peek_hides
    read_key = reader(topic.key) if topic.key is not None else None
    read_value = reader(topic.value)

    def view(record: Record) -> DecodedRecord:
        key, value = _decoded(record.key, read_key), _decoded(record.value, read_value)
        kind = kind_of(topic, record.value, value.json)
        return DecodedRecord(record, kind, _shown(key, hide), _shown(value, hide), headers_hidden=ALL in hide)

    return view


def _decoded(payload: bytes | None, read: Reader | None) -> Part:
    if payload is None:
        return Part(None)
    if read is None:
        return Part(None, payload, "the topic has no key format")
    try:
        return Part(read(payload))
    except Undecodable as bad:
        return Part(None, payload, str(bad))


def _shown(part: Part, hide: tuple[str, ...]) -> Part:
    """Return `part` without the values of fields to `hide`, and without bytes, which may contain them."""
    if not hide or part == Part(None):
        return part
    if part.bytes is not None:
        return Part(None, reason=f"hidden, {len(part.bytes):,} bytes (undecodable: {part.reason})")
    if ALL in hide:
        return Part(None, reason=f"hidden, {len(part.json or ''):,} characters")
    return Part(as_json(_without(json.loads(part.json or "null"), frozenset(hide))))


def _without(value: Any, hide: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {name: _HIDDEN if name in hide else _without(inner, hide) for name, inner in value.items()}
    return [_without(inner, hide) for inner in value] if isinstance(value, list) else value


def reader(spec: FormatSpec) -> Reader:
    """Return the reader of documents of `spec`. Calling it may raise KafkaError where a registry does not answer."""
    made: Reader = load(FORMATS[spec.name].reader)(spec)
    return made
