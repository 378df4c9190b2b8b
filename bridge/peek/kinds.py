"""What a record does to a table, as Flink's RowKind; of a CDC document what its operation says."""

from __future__ import annotations

import json

from bridge.definition import Topic
from bridge.options import FORMATS

__all__ = ["kind_of"]

_FIELDS = ("op", "type", "op_type")
"""Where Debezium, Canal and Maxwell, and Ogg name the operation."""
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


def kind_of(topic: Topic, value: bytes | None, document: str | None) -> str:
    """The kind of a record with these bytes of value, decoded as `document`; "" where nobody can tell.

    upsert-kafka: +U (an insert or an update, which only the table tells apart), or -D for a tombstone. Insert-only
    formats of `kafka`: +I. CDC formats: the operation of the document; an update is -U +U.
    """
    if topic.is_upsert:
        return "-D" if value is None else "+U"
    if FORMATS[topic.value.name].insert_only:
        return "+I"
    found = json.loads(document) if document is not None else None
    if isinstance(found, dict) and isinstance(found.get("payload"), dict) and "op" not in found:
        found = found["payload"]
    if not isinstance(found, dict):
        return ""
    words = (found[name] for name in _FIELDS if isinstance(found.get(name), str))
    return _OPERATIONS.get(next(words, "").lower(), "")
