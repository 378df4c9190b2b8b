"""The plan fingerprint: a run may finish a range of an earlier run only with the same one."""

from __future__ import annotations

import hashlib
import json

from bridge.definition import Definition, Topic
from bridge.options import FORMATS
from bridge.publish_progress import PublishRange

_ORDER = 3
"""Increased whenever produce_once orders the records of a shard in another way: cursors count records in that order."""


def is_unique(topic: Topic) -> bool:
    """Whether no key has two records in a version: true of an upsert topic."""
    return bool(topic.schema.primary_key) and FORMATS[topic.value.name].insert_only


def is_unique_in_range(topic: Topic, publish_range: PublishRange) -> bool:
    """Whether no key has two records in the range: a range of one version, to an upsert topic."""
    return is_unique(topic) and publish_range.first == publish_range.last


def plan_fingerprint(definition: Definition, topic: Topic) -> str:
    """Compute the digest of what decides which records a range has, their shards and their order; no secrets are in it.

    Value documents and metadata (topic, timestamp, headers) are part of it only where they order records: without a
    record key, or with one that several rows may share.
    """
    publish, primary = definition.publish, topic.schema.primary_key
    specs = [topic.key]
    metadata: list[object] = []
    if topic.key is None or not set(primary) or not set(primary) <= set(topic.key.columns):
        specs.append(topic.value)
        metadata = [[c.name, c.key, c.type.flink()] for c in topic.schema.metadata if not c.virtual]
    plan = {
        "order": _ORDER,
        "formats": [s and [s.name, dict(s.options), s.columns, repr(s.row), repr(s.metadata)] for s in specs],
        "upserts": FORMATS[topic.value.name].insert_only,
        "publish": [publish.pair, publish.net_changes],
        "primary": primary,
        **({"beside": metadata} if metadata else {}),
    }
    return hashlib.sha256(json.dumps(plan, default=str, sort_keys=True).encode()).hexdigest()[:16]
