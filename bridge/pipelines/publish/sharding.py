"""How many shards a new publish range has, and whether each of its data files may be one.

A range whose data files are its shards is sent without a shuffle, which takes a third less time as long as all tasks
are busy to the end (docs/adr/017).
"""

from __future__ import annotations

import hashlib
import heapq
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bridge.definition import Definition, DeliveryGuarantee, Topic
from bridge.options import FORMATS
from bridge.partitioners import TASK_FREE
from bridge.publish_progress import PublishRange


@dataclass(frozen=True)
class Sharding:
    """The shards of an exactly-once publish. A publish without transactions has none."""

    tasks: int
    """How many tasks send at a time: `sink.parallelism`, or what Spark runs."""
    scales: bool = True
    """Whether a range with more rows has more shards. False where `sink.parallelism` fixes their number, and where a
    partitioner places records by their task, which is the shard's number."""
    allows_files: bool = True
    """Whether a data file may be a shard. Files have no order among them, so no key may be in two of them."""
    rows_per_shard: int = 500_000
    """A task that sorts more rows than this is slower for each of them, since its memory is soon full."""
    max_shards_per_task: int = 8
    """More shards than this for each task do not pay for their transactional ids."""

    def shards(self, rows: int = 0) -> int:
        """The number of shards of a range with about `rows` rows; a multiple of `tasks`."""
        shards_per_task = -(-rows // (self.tasks * self.rows_per_shard)) if self.scales else 1
        return self.tasks * min(max(shards_per_task, 1), self.max_shards_per_task)

    @property
    def file_tasks(self) -> int:
        """How many tasks send at a time where data files are the shards; 0 where they may not be."""
        return self.tasks if self.scales and self.allows_files else 0


def sharding_for(topic: Topic, parallelism: int) -> Sharding | None:
    """The sharding of a publish to `topic`; None where `sink.delivery-guarantee` is not exactly-once. `parallelism` is
    the number of tasks that Spark runs at a time."""
    sink = topic.sink
    if sink.delivery_guarantee is not DeliveryGuarantee.EXACTLY_ONCE:
        return None
    return Sharding(
        tasks=sink.parallelism or parallelism,
        scales=sink.parallelism is None and sink.partitioner in TASK_FREE,
        allows_files=is_unique(topic),
    )


@dataclass(frozen=True)
class FileShardLimits:
    """The sizes from which files are worth a shard each (docs/adr/017)."""

    min_rows: int = 200_000
    """The shuffle of fewer rows costs less than planning the read of their files."""
    min_rows_per_file: int = 100_000
    """Opening a shard for fewer rows takes as long as shuffling them."""
    max_files_per_task: int = 32
    """More files than this for each task do not pay for their transactional ids."""
    max_imbalance: float = 1.4
    """The longest task may take this many times the average; above it, waiting for it costs what the shuffle does."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> FileShardLimits:
        """The limits, lowered by BRIDGE_FILE_SLOT_ROWS for trials on small tables: its value is `min_rows`, half of
        it is `min_rows_per_file`."""
        rows = int(environment.get("BRIDGE_FILE_SLOT_ROWS", cls.min_rows))
        return cls(min_rows=rows, min_rows_per_file=rows // 2)

    def pay_off(self, sizes: Sequence[int], rows: int, tasks: int) -> bool:
        """Whether files of these sizes, with `rows` rows in all, are sent faster as shards. Spark gives the largest
        file that is left to the first of `tasks` tasks that is free."""
        if not 0 < len(sizes) <= min(self.max_files_per_task * tasks, rows // self.min_rows_per_file):
            return False
        loads = [0] * tasks
        for size in sorted(sizes, reverse=True):
            heapq.heapreplace(loads, loads[0] + size)
        return max(loads) * tasks <= self.max_imbalance * sum(sizes)


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
