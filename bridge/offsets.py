"""Offset vectors: the positions of a reader in the partitions of one or more topics.

An offset is always that of the *next* record to read, as in Kafka's own committed offsets.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

TopicPartition = tuple[str, int]
MovedOffsets = tuple[tuple[str, int, "int | None", int], ...]
"""Topic, partition, offset from which and to which, exclusive."""


@dataclass(frozen=True)
class Offsets:
    """An immutable map (topic, partition) -> next offset, comparable by value and hashable by text."""

    by_partition: Mapping[TopicPartition, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        keys = list(self.by_partition)
        in_order = sorted(keys)
        # Most are in order already. Copied as a whole they make no object for each partition, of which ten thousand
        # would have Python look for garbage in all its memory.
        ordered = self.by_partition if keys == in_order else {key: self.by_partition[key] for key in in_order}
        object.__setattr__(self, "by_partition", dict(ordered))

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __iter__(self) -> Iterator[tuple[str, int, int]]:
        """Yield (topic, partition, offset) in order of topic and partition."""
        return iter((t, p, o) for (t, p), o in self.by_partition.items())

    def __len__(self) -> int:
        return len(self.by_partition)

    def get(self, topic: str, partition: int) -> int | None:
        """Return the offset of a partition, None for a partition without one."""
        return self.by_partition.get((topic, partition))

    def advanced(self, other: Offsets) -> Offsets:
        """Return both vectors' partitions, each at the larger offset: progress never goes back."""
        merged = dict(self.by_partition)
        for key, offset in other.by_partition.items():
            merged[key] = max(offset, merged.get(key, offset))
        return Offsets(merged)

    def capped(self, limit: Offsets) -> Offsets:
        """Return the same partitions, each at most at its offset in `limit`, if it has one there."""
        return Offsets({k: min(o, limit.by_partition.get(k, o)) for k, o in self.by_partition.items()})

    def reaches(self, other: Offsets) -> bool:
        """Return True when this vector has every partition of `other`, at its offset or a later one."""
        return all(self.by_partition.get(k, -1) >= o for k, o in other.by_partition.items())

    def lag(self, end: Offsets) -> int:
        """Return the number of offsets between this vector and `end`; a missing partition counts from 0.

        Offsets are not dense (transaction markers, compaction), so this is an upper bound of the number of records.
        """
        return sum(max(0, o - self.by_partition.get(k, 0)) for k, o in end.by_partition.items())

    def moved_since(self, before: Offsets) -> MovedOffsets:
        """Return each partition whose offset is another one than in `before`, from there to here; from None where
        `before` lacks it."""
        found = ((t, p, before.get(t, p), end) for t, p, end in self)
        return tuple(moved for moved in found if (moved[2] or 0) != moved[3])

    def to_json(self) -> str:
        """Return the form of Spark's Kafka source: {"topic": {"0": 23, ...}}, partitions in numeric order."""
        return json.dumps(self.tree())

    def tree(self) -> dict[str, dict[str, int]]:
        """Return what `to_json` is the text of, for a part of a larger document."""
        tree: dict[str, dict[str, int]] = {}
        for (topic, partition), offset in self.by_partition.items():
            tree.setdefault(topic, {})[str(partition)] = offset
        return tree

    @classmethod
    def from_json(cls, text: str) -> Offsets:
        """Parse the result of `to_json`. Raises ValueError for other texts."""
        return cls.from_tree(json.loads(text))

    @classmethod
    def from_tree(cls, tree: object) -> Offsets:
        """Return the vector of a `tree`. Raises ValueError for other values."""
        if not isinstance(tree, dict):
            raise ValueError("an offset vector is a JSON object {topic: {partition: offset}}")
        return cls({(t, int(p)): int(o) for t, parts in tree.items() for p, o in parts.items()})

    @classmethod
    def of(cls, items: Iterable[tuple[str, int, int]]) -> Offsets:
        """Build from (topic, partition, offset) triples."""
        return cls({(t, p): o for t, p, o in items})
