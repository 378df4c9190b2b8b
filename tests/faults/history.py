"""Defines the history of an input topic, its table and the output topic as plain values, without code of the bridge.

A row is (seq, writer, seed); None is a tombstone, or an absent key.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

Row = tuple[int, str, int]
TRUNCATE = -2
"""The number of the key of a record that deletes all rows."""
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
    order: int = 0
    """The number of the change, where changes are ordered by it."""


class Commit(NamedTuple):
    """A version of the table's log with the progress of an ingest."""

    version: int
    batch: int
    """The number in Delta's txn action; -1 where the commit has none."""
    named: int
    """The number in the bridge's progress."""
    offsets: Vector


class UserCommit(NamedTuple):
    """A version of the table's log by which a user changed rows."""

    version: int
    restored: int | None = None
    """The version that a RESTORE went back to; None for the UPDATE that `written_by_a_user` describes."""


USERS_SHARE, USERS_NAME = 5, "user"
"""A user's UPDATE gives this name to the rows whose number can be divided by the share."""


def written_by_a_user(row: Row) -> Row:
    """What the UPDATE of a user makes of a row."""
    return (row[0], USERS_NAME, row[2]) if row[0] % USERS_SHARE == 0 else row


@dataclass
class History:
    """A complete history. Parts that were read later may be further ahead."""

    ledger: list[Acked] = field(default_factory=list)
    topic_in: list[Record] = field(default_factory=list)
    """Records that a read_committed consumer sees, in offset order per partition."""
    commits: list[Commit] = field(default_factory=list)
    """In version order."""
    user_commits: list[UserCommit] = field(default_factory=list)
    table: list[tuple[int, Row]] = field(default_factory=list)
    """(key, row) at the version of the last commit; a key may occur twice."""
    topic_out: list[Record] = field(default_factory=list)
    bad: list[tuple[int, int]] = field(default_factory=list)
    """(partition, offset) of the undecodable records of the topic, which are not in `topic_in`."""
    quarantine: list[tuple[int, int]] = field(default_factory=list)
    """(partition, offset) of each row of the quarantine table."""
    by_sequence: bool = False
    """Whether the change with the greatest `Record.order` counts."""


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


def greatest_of(records: Iterable[Record]) -> dict[int, Row | None]:
    """Returns the row of each key's change with the greatest number; of equal ones the last one counts."""
    found: dict[int, Record] = {}
    for record in records:
        before = found.get(record.key)
        if before is None or (record.order, record.offset) >= (before.order, before.offset):
            found[record.key] = record
    return {key: record.row for key, record in found.items()}


def applied(history: History) -> Iterator[Record]:
    """Yields the records before the offsets of the last commit."""
    ends = history.commits[-1].offsets if history.commits else {}
    return (record for record in history.topic_in if record.offset < ends.get(record.partition, 0))


def changes(history: History) -> tuple[dict[int, list[Row | None]], dict[int, Row]]:
    """Returns the changes of each key by commit, and the rows of the table at the last commit.

    A key whose row is the same before and after a commit has not changed. The output topic must contain exactly these
    changes.
    """
    rows: dict[int, Row] = {}
    expected: dict[int, list[Row | None]] = {}
    for now in states(history.topic_in, history.commits, history.user_commits):
        for key in rows.keys() | now.keys():
            if rows.get(key) != now.get(key):
                expected.setdefault(key, []).append(now.get(key))
        rows = now
    return expected, rows


def states(
    topic: Iterable[Record], commits: Sequence[Commit], user_commits: Sequence[UserCommit] = ()
) -> Iterator[dict[int, Row]]:
    """Yields the rows of a table after each commit.

    A commit of an ingest applies the records between the offsets of the commit before it and its own. A RESTORE takes
    back rows and offsets: the next batch begins where the restored version ended.
    """
    by_partition: dict[int, list[Record]] = {}
    for record in topic:
        by_partition.setdefault(record.partition, []).append(record)
    rows: dict[int, Row] = {}
    begins: Vector = {}
    past: dict[int, tuple[dict[int, Row], Vector]] = {}
    everything: list[Commit | UserCommit] = [*commits, *user_commits]
    for commit in sorted(everything, key=lambda c: c.version):
        if isinstance(commit, UserCommit):
            if commit.restored is None:
                rows = {key: written_by_a_user(row) for key, row in rows.items()}
            else:
                at = max((v for v in past if v <= commit.restored), default=None)
                rows, begins = past[at] if at is not None else ({}, {})
        else:
            rows = {**rows}
            fresh = [*_between(by_partition, begins, commit.offsets)]
            if truncates := [place for place, record in enumerate(fresh) if record.key == TRUNCATE]:
                rows, fresh = {}, fresh[truncates[-1] + 1 :]
            for key, row in last_of(fresh).items():
                if row is None:
                    rows.pop(key, None)
                else:
                    rows[key] = row
            begins = commit.offsets
        past[commit.version] = rows, begins
        yield rows


def _between(topic: Mapping[int, Sequence[Record]], begins: Vector, ends: Vector) -> Iterator[Record]:
    for partition, end in ends.items():
        records = topic.get(partition, ())
        first = bisect_left(records, begins.get(partition, 0), key=lambda r: r.offset)
        yield from records[first : bisect_left(records, end, key=lambda r: r.offset)]
