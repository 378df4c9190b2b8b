"""What decides which records a range has, and in which order: whoever finishes one must agree in it."""

from __future__ import annotations

import hashlib
import json

from bridge.definition import Definition, Topic
from bridge.options import FORMATS

__all__ = ["is_unique", "plan_fingerprint"]

_ORDER = 3
"""Raised whenever produce_once orders the records of a shard in another way: what was sent is counted in that order."""


def is_unique(topic: Topic) -> bool:
    """Whether no key has two records in a version: an upsert topic's."""
    return bool(topic.schema.primary_key) and FORMATS[topic.value.name].insert_only


def plan_fingerprint(definition: Definition, topic: Topic) -> str:
    """A digest of what decides which records a range has, their shards and their order; secrets are not in it.

    Value documents and metadata (topic, timestamp, headers) count only where they order records: without a key, or with
    one that several rows may share.
    """
    publish, primary = definition.publish, topic.schema.primary_key
    specs = [topic.key]
    beside: list[object] = []
    if topic.key is None or not set(primary) or not set(primary) <= set(topic.key.columns):
        specs.append(topic.value)
        beside = [[c.name, c.key, c.type.flink()] for c in topic.schema.metadata if not c.virtual]
    told = {
        "order": _ORDER,
        "formats": [s and [s.name, dict(s.options), s.columns, repr(s.row), repr(s.metadata)] for s in specs],
        "upserts": FORMATS[topic.value.name].insert_only,
        "publish": [publish.pair, publish.net_changes],
        "primary": primary,
        **({"beside": beside} if beside else {}),
    }
    return hashlib.sha256(json.dumps(told, default=str, sort_keys=True).encode()).hexdigest()[:16]
