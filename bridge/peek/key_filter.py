"""Filters records by the text of a key."""

from __future__ import annotations

import json

from bridge.definition import Topic
from bridge.peek.base import Undecodable
from bridge.peek.documents import reader
from bridge.peek.records import Filter, Record

__all__ = ["matches"]


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
