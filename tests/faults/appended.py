"""Defines the history of a table without a key, to which an ingest appends a topic's rows, and checks it.

It shares no code with the bridge. Each record has its row once, whatever its key, so the check is by partition and
offset. It looks at each commit, too: one that lacks rows which the next commit has in excess leaves no trace in the
last version.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.faults.checker import Verdict, check_batches
from tests.faults.history import Acked, Commit, Record, Row

Place = tuple[int, int]
"""(partition, offset) of a record."""


@dataclass
class AppendHistory:
    """A complete history. Parts that were read later may be further ahead."""

    ledger: list[Acked] = field(default_factory=list)
    topic: list[Record] = field(default_factory=list)
    """Records that a read_committed consumer sees."""
    commits: list[Commit] = field(default_factory=list)
    """In version order."""
    added: Mapping[int, list[Place]] = field(default_factory=dict)
    """Of which records each commit has added the rows, by its version."""
    table: list[tuple[Place, int, Row]] = field(default_factory=list)
    """(record, key, row) at the version of the last commit or later; a record may occur twice."""
    by_consumers: int = 0
    """The number of commits that the bridge has written itself, and not Spark's writer."""


def judge_appends(history: AppendHistory, *, drained: bool) -> Verdict:
    """Checks a whole history. `drained`: all writers have finished, so each record has its row; otherwise those before
    the offsets of the last commit have theirs. The history must be read from its end: the log, then the topic."""
    verdict = Verdict(
        records_in=len(history.topic), records_out=len(history.table), commits=len(history.commits)
    )
    check_batches(history.commits, verdict)
    _check_added(history, verdict)
    reached = history.commits[-1].offsets if history.commits else {}
    topic = {(r.partition, r.offset): (r.key, r.row) for r in history.topic if r.row is not None}
    aborted = {(a.partition, a.offset) for a in history.ledger if a.fate == "aborted"}
    count = Counter(place for place, _, _ in history.table)
    for place in topic:
        if not count[place] and (drained or place[1] < reached.get(place[0], 0)):
            verdict.add("lost", f"rows: the record {place} is not in the table")
    for place, times in count.items():
        if times > 1:
            verdict.add("duplicated", f"rows: the record {place} is in the table {times} times")
    for place, key, row in history.table:
        if place in aborted:
            verdict.add("aborted read", f"rows: the record {place} is in the table")
        elif place not in topic:
            verdict.add("ghosts", f"rows: {row} is in the table, and the topic has no row at {place}")
        elif place[1] >= reached.get(place[0], 0):
            verdict.add(
                "table differs from topic", f"rows: the record {place} is beyond the last commit's offsets"
            )
        elif (key, row) != topic[place]:
            verdict.add(
                "table differs from topic", f"rows: {place}: expected {topic[place]}, got {(key, row)}"
            )
    return verdict


def _check_added(history: AppendHistory, verdict: Verdict) -> None:
    """Each commit adds the rows between the offsets of the one before and its own, and no others."""
    before: Mapping[int, int] = {}
    for commit in history.commits:
        wanted = Counter(
            (r.partition, r.offset)
            for r in history.topic
            if r.row is not None
            and before.get(r.partition, 0) <= r.offset < commit.offsets.get(r.partition, 0)
        )
        added = Counter(history.added.get(commit.version, ()))
        if added != wanted:
            verdict.add(
                "batches not once",
                f"rows: version {commit.version} lacks {sorted((wanted - added).elements())[:5]} and has "
                f"{sorted((added - wanted).elements())[:5]} in excess",
            )
        before = commit.offsets
