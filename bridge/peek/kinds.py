"""The row kind of a record: of a CDC document by the operation that it names."""

from __future__ import annotations

import json

from bridge.definition import Topic
from bridge.format_rules.change_documents import CANAL, DEBEZIUM, MAXWELL, OGG
from bridge.options import FORMATS

__all__ = ["kind_of"]

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
_OTHERS = {word for words in (CANAL, DEBEZIUM, MAXWELL, OGG) for word in words.others}


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
