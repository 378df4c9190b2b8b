"""Defines the history of an input topic, its table and the output topic as plain values, without code of the bridge.

A row is (seq, writer, seed); None is a tombstone, or an absent key.
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
    """A line of the writer's ledger: a record that the broker acknowledged."""

    key: int
    seq: int
    partition: int
    offset: int
    fate: str
    """plain, committed, aborted, bad (an undecodable value), or unknown (the response to the commit was lost)."""
    tombstone: bool = False


class Record(NamedTuple):
    partition: int
    offset: int
    key: int
    row: Row | None
    timestamp: int = 0


class Commit(NamedTuple):
    """A version of the table's log with the progress of an ingest."""

    version: int
    batch: int
    """The number in Delta's txn action; -1 where the commit has none."""
    named: int
    """The number in the bridge's progress."""
    offsets: Vector


@dataclass
class History:
    """A complete history. Parts that were read later may be further ahead."""

    ledger: list[Acked] = field(default_factory=list)
    topic_in: list[Record] = field(default_factory=list)
    """Records that a read_committed consumer sees, in offset order per partition."""
    commits: list[Commit] = field(default_factory=list)
    """In version order."""
    table: list[tuple[int, Row]] = field(default_factory=list)
    """(key, row) at the version of the last commit; a key may occur twice."""
    topic_out: list[Record] = field(default_factory=list)
    bad: list[tuple[int, int]] = field(default_factory=list)
    """(partition, offset) of the undecodable records of the topic, which are not in `topic_in`."""
    quarantine: list[tuple[int, int]] = field(default_factory=list)
    """(partition, offset) of each row of the quarantine table."""


def fold(records: Iterable[Record]) -> dict[int, Row]:
    """Returns the last row of each key, without keys whose last record is a tombstone."""
    return {key: row for key, row in last_of(records).items() if row is not None}


def last_of(records: Iterable[Record]) -> dict[int, Row | None]:
    """Returns the last record's row of each key, None for a tombstone.

    Within a partition the highest offset is the last. Where a key is in several partitions, because partitions were
    added, the newest timestamp decides between them, then the partition: the rule by which an ingest folds a batch.
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
    """Returns the changes of each key by commit, and the fold at the offsets of the last commit.

    A commit contains the records between the offsets of the previous commit and its own. A key whose row is the same
    before and after has not changed. The output topic must contain exactly these changes.
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
