"""Records of one key, by its text as a person types it."""

from __future__ import annotations

import json

from bridge.definition import Topic
from bridge.peek.base import Undecodable
from bridge.peek.documents import reader
from bridge.peek.records import Filter, Record

__all__ = ["matches"]


def matches(topic: Topic, key: str) -> Filter:
    """True for a record whose key is `key`: its bytes as text, its only column's value, or its document as JSON."""
    decode = reader(topic.key) if topic.key is not None else None
    wanted = _parsed(key)

    def filter(record: Record) -> bool:
        if record.key is None:
            return False
        if record.key == key.encode():
            return True
        if decode is None:
            return False
        try:
            found = json.loads(decode(record.key))
        except Undecodable:
            return False
        parts = list(found.values()) if isinstance(found, dict) else []
        return bool(found == wanted or (len(parts) == 1 and (parts[0] == wanted or str(parts[0]) == key)))

    return filter


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text
