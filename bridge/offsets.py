"""Offset vectors: where a reader stands in the partitions of one or more topics.

An offset is always that of the *next* record to be read, as in Kafka's own committed offsets.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

__all__ = ["Offsets", "TopicPartition"]

TopicPartition = tuple[str, int]


@dataclass(frozen=True)
class Offsets:
    """An immutable map (topic, partition) -> next offset, comparable by value and hashable by text."""

    by_partition: Mapping[TopicPartition, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_partition", dict(sorted(self.by_partition.items())))

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __iter__(self) -> Iterator[tuple[str, int, int]]:
        """Yield (topic, partition, offset) in order of topic and partition."""
        return iter((t, p, o) for (t, p), o in self.by_partition.items())

    def __len__(self) -> int:
        return len(self.by_partition)

    def get(self, topic: str, partition: int) -> int | None:
        """The offset of a partition, or None where the vector does not name it."""
        return self.by_partition.get((topic, partition))

    def advanced(self, other: Offsets) -> Offsets:
        """Both vectors' partitions, each at the larger offset: progress never goes back."""
        merged = dict(self.by_partition)
        for key, offset in other.by_partition.items():
            merged[key] = max(offset, merged.get(key, offset))
        return Offsets(merged)

    def capped(self, limit: Offsets) -> Offsets:
        """The same partitions, each at most at `limit`'s offset where `limit` names it."""
        return Offsets({k: min(o, limit.by_partition.get(k, o)) for k, o in self.by_partition.items()})

    def reaches(self, other: Offsets) -> bool:
        """True when every partition of `other` is here, at its offset or beyond."""
        return all(self.by_partition.get(k, -1) >= o for k, o in other.by_partition.items())

    def lag(self, end: Offsets) -> int:
        """How many offsets lie between this vector and `end` (a partition not named here counts from 0).

        Offsets are not dense (transaction markers, compaction), so this is an upper bound of records.
        """
        return sum(max(0, o - self.by_partition.get(k, 0)) for k, o in end.by_partition.items())

    def to_json(self) -> str:
        """Spark's Kafka-source form: {"topic": {"0": 23, ...}}, partitions in numeric order."""
        tree: dict[str, dict[str, int]] = {}
        for topic, partition, offset in self:
            tree.setdefault(topic, {})[str(partition)] = offset
        return json.dumps(tree)

    @classmethod
    def from_json(cls, text: str) -> Offsets:
        """Read what `to_json` wrote; raises ValueError on anything else."""
        tree = json.loads(text)
        if not isinstance(tree, dict):
            raise ValueError("an offset vector is a JSON object {topic: {partition: offset}}")
        return cls({(t, int(p)): int(o) for t, parts in tree.items() for p, o in parts.items()})

    @classmethod
    def of(cls, items: Iterable[tuple[str, int, int]]) -> Offsets:
        """Build from (topic, partition, offset) triples."""
        return cls({(t, p): o for t, p, o in items})
