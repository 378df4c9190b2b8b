"""Defines the values that an ingest combines for each key (`aggregate`), and checks them. No code of the bridge.

A sum tells each record that counts twice or not at all, the other rules each that does not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.faults.checker import Verdict, check_batches
from tests.faults.history import Commit, Record, Row

RULES = {"seq": "sum", "writer": "first", "low": "min", "high": "max", "tags": "collect-set"}
"""The rules of the columns; `seed` has none."""
Combined = tuple[int, str, int, int, int, tuple[int, ...]]
"""(sum of the numbers, first writer, last seed, least and greatest value, set of tags)."""


def more_values(row: Row) -> tuple[int, int, list[int]]:
    """Returns what the document of a row has for `low`, `high` and `tags`."""
    mixed = row[0] * 7919 % 1009
    return mixed, mixed, [row[0] % 11, row[0] % 5]


@dataclass
class CombinedHistory:
    """A complete history. Parts that were read later may be further ahead."""

    topic: list[Record] = field(default_factory=list)
    """Records that a read_committed consumer sees, those of a key in one partition."""
    commits: list[Commit] = field(default_factory=list)
    """In version order."""
    table: list[tuple[int, Combined]] = field(default_factory=list)
    """(key, row) at the version of the last commit; a key may occur twice."""


def judge_sums(history: CombinedHistory, *, drained: bool) -> Verdict:
    """Checks a whole history. `drained`: all writers have finished, so each record counts; otherwise those before the
    offsets of the last commit do. The history must be read from its end: the log, then the topic."""
    verdict = Verdict(
        records_in=len(history.topic), records_out=len(history.table), commits=len(history.commits)
    )
    check_batches(history.commits, verdict)
    ends = history.commits[-1].offsets if history.commits else {}
    wanted = combined(r for r in history.topic if drained or r.offset < ends.get(r.partition, 0))
    for key, count in Counter(key for key, _ in history.table).items():
        if count > 1:
            verdict.add("duplicated", f"sums: key {key} is there {count} times")
    actual = dict(history.table)
    for key in sorted(wanted.keys() | actual.keys()):
        if wanted.get(key) != actual.get(key):
            text = f"sums: key {key}: expected {wanted.get(key)}, got {actual.get(key)}"
            verdict.add("table differs from topic", text)
    return verdict


def combined(records: Iterable[Record]) -> dict[int, Combined]:
    """Returns the row of each key. A tombstone ends all of its values."""
    rows: dict[int, Combined] = {}
    for record in sorted(records, key=lambda r: r.offset):
        if record.row is None:
            rows.pop(record.key, None)
            continue
        low, high, tags = more_values(record.row)
        before = rows.get(record.key, (0, record.row[1], 0, low, high, ()))
        total, first, _, least, greatest, seen = before
        rows[record.key] = (
            total + record.row[0],
            first,
            record.row[2],
            min(least, low),
            max(greatest, high),
            tuple(sorted({*seen, *tags})),
        )
    return rows
