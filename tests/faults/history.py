"""What an observer can know of a topic, a table made from it, and a topic made from that; plain values, no bridge.

A row is (seq, writer, seed); None stands for none: a tombstone, or a key that is absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["Acked", "Commit", "History", "Record", "Row", "changes", "fold", "last_of"]

Row = tuple[int, str, int]
Vector = Mapping[int, int]
"""The next offset of each partition."""


class Acked(NamedTuple):
    """A line of the writer's ledger: the broker has said that it holds this."""

    key: int
    seq: int
    partition: int
    offset: int
    fate: str
    """plain, committed, aborted, bad (a value that nobody can decode); or unknown, where the answer got lost."""
    tombstone: bool = False


class Record(NamedTuple):
    partition: int
    offset: int
    key: int
    row: Row | None
    timestamp: int = 0


class Commit(NamedTuple):
    """One version of the table's log that carries an ingest's progress."""

    version: int
    batch: int
    """As Delta's own txn action says it; -1 where the commit has none."""
    named: int
    """As the progress beside it says it."""
    offsets: Vector


@dataclass
class History:
    """All of it, as read at one moment; whatever was read later may be further."""

    ledger: list[Acked] = field(default_factory=list)
    topic_in: list[Record] = field(default_factory=list)
    """Records that a reader of committed records finds, in the order of offsets per partition."""
    commits: list[Commit] = field(default_factory=list)
    """In the order of versions."""
    table: list[tuple[int, Row]] = field(default_factory=list)
    """(key, row) of the version of the last commit; a key may be there twice."""
    topic_out: list[Record] = field(default_factory=list)
    bad: list[tuple[int, int]] = field(default_factory=list)
    """(partition, offset) of the records in the topic that nobody can decode; they are not in `topic_in`."""
    quarantine: list[tuple[int, int]] = field(default_factory=list)
    """(partition, offset) of each row of the quarantine table."""


def fold(records: Iterable[Record]) -> dict[int, Row]:
    """The last row of each key; none for a key whose last record is a tombstone."""
    return {key: row for key, row in last_of(records).items() if row is not None}


def last_of(records: Iterable[Record]) -> dict[int, Row | None]:
    """What the last record of each key says.

    The last one of each partition by offset. Where a key is in several partitions, as they were added, the newest
    timestamp decides between these, then the partition: the rule by which an ingest folds a batch.
    """
    places: dict[int, dict[int, Record]] = {}
    for record in records:
        there = places.setdefault(record.key, {})
        if record.partition not in there or there[record.partition].offset < record.offset:
            there[record.partition] = record
    return {
        key: max(there.values(), key=lambda r: (r.timestamp, r.partition)).row
        for key, there in places.items()
    }


def changes(history: History) -> tuple[dict[int, list[Row | None]], dict[int, Row]]:
    """What each key became with every commit, and the fold at the last one's offsets.

    A commit holds the records between its offsets and those of the one before: a key that ends as it began has not
    changed. That is what the topic of the table's changes must hold, and all of it.
    """
    by_partition: dict[int, list[Record]] = {}
    for record in history.topic_in:
        by_partition.setdefault(record.partition, []).append(record)
    taken = dict.fromkeys(by_partition, 0)
    rows: dict[int, Row] = {}
    expected: dict[int, list[Row | None]] = {}
    for commit in history.commits:
        batch: list[Record] = []
        for partition, records in by_partition.items():
            end, at = commit.offsets.get(partition, 0), taken[partition]
            while at < len(records) and records[at].offset < end:
                batch.append(records[at])
                at += 1
            taken[partition] = at
        for key, row in last_of(batch).items():
            if rows.get(key) != row:
                expected.setdefault(key, []).append(row)
            if row is None:
                rows.pop(key, None)
            else:
                rows[key] = row
    return expected, rows
