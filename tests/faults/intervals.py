"""Defines the history of each key that an ingest keeps (`history: scd2`), and checks it. No code of the bridge.

A change begins a row of its key, and the one with the next greater number ends it. So the rows are determined by the
records that were applied, whatever order they came in and however batches were cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tests.faults.checker import Verdict, check_batches
from tests.faults.history import Acked, Commit, Record, Row

Interval = tuple[int, Row, int, int | None]
"""(key, row, the number that began it, the number that ended it or none)."""


@dataclass
class IntervalHistory:
    """A complete history. Parts that were read later may be further ahead."""

    ledger: list[Acked] = field(default_factory=list)
    topic: list[Record] = field(default_factory=list)
    """Records that a read_committed consumer sees."""
    commits: list[Commit] = field(default_factory=list)
    """In version order."""
    table: list[Interval] = field(default_factory=list)
    """The rows at the version of the last commit; one may occur twice."""


def judge_intervals(history: IntervalHistory, *, drained: bool) -> Verdict:
    """Checks a whole history. `drained`: all writers have finished, so each record counts; otherwise those before the
    offsets of the last commit do. The history must be read from its end: the log, then the topic."""
    verdict = Verdict(
        records_in=len(history.topic), records_out=len(history.table), commits=len(history.commits)
    )
    check_batches(history.commits, verdict)
    ends = history.commits[-1].offsets if history.commits else {}
    counted = [r for r in history.topic if drained or r.offset < ends.get(r.partition, 0)]
    wanted, actual = Counter(intervals(counted)), Counter(history.table)
    aborted = {(a.key, a.seq) for a in history.ledger if a.fate == "aborted"}
    for interval, count in (actual - wanted).items():
        key, row, *_ = interval
        fault = "aborted read" if (key, row[0]) in aborted else "table differs from topic"
        verdict.add(
            "duplicated" if interval in wanted else fault, f"history: {interval} {count} times too often"
        )
    for interval in wanted - actual:
        verdict.add("lost", f"history: {interval} is not in the table")
    return verdict


def intervals(records: Iterable[Record]) -> Iterator[Interval]:
    """Yields the rows of each key. Of changes with the same number the last one counts."""
    of_keys: dict[int, dict[int, Row | None]] = {}
    for record in records:
        of_keys.setdefault(record.key, {})[record.order] = record.row
    for key, by_number in of_keys.items():
        numbers = sorted(by_number)
        for number, end in zip(numbers, [*numbers[1:], None], strict=True):
            if (row := by_number[number]) is not None:
                yield key, row, number, end
