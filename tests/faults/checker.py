"""Checks a history for faults. Shares no code with the bridge.

It computes the exact changes that the output topic must contain: the differences between the folds of the input topic
at the offsets of successive commits. So it finds each record that is additional, missing or misplaced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.faults.history import (
    Commit,
    History,
    Record,
    Row,
    UserCommit,
    applied,
    changes,
    fold,
    greatest_of,
    written_by_a_user,
)

FAULTS = (
    "lost",
    "duplicated",
    "reordered",
    "aborted read",
    "table differs from topic",
    "topic differs from table",
    "stale",
    "ghosts",
    "batches not once",
    "quarantine differs",
)
_EXAMPLES = 5


@dataclass
class Verdict:
    """The number of findings per fault, with a few examples as text."""

    counts: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(FAULTS, 0)))
    examples: list[str] = field(default_factory=list)
    records_in: int = 0
    records_out: int = 0
    commits: int = 0

    @property
    def clean(self) -> bool:
        return not any(self.counts.values())

    def add(self, fault: str, what: str) -> None:
        self.counts[fault] += 1
        if self.counts[fault] <= _EXAMPLES:
            self.examples.append(f"{fault}: {what}")


def judge(history: History, *, drained: bool, exactly_once: bool = True, grown: bool = False) -> Verdict:
    """Checks a whole history.

    `drained`: all writers have finished, so the output topic must contain all changes of the table; otherwise the last
    ones may be missing. `exactly_once`: the output topic contains each change once. Otherwise the changes of a key may
    go back to an earlier one and repeat from there, but must not skip a change that was not sent before, and the last
    record is the newest change. `grown`: partitions were added, so the order of a key is required within each partition
    only.

    The history must be read from its end: the output topic first, then the table's log, then the input topic.
    """
    verdict = Verdict(
        records_in=len(history.topic_in), records_out=len(history.topic_out), commits=len(history.commits)
    )
    _check_sends(history, verdict)
    check_batches(history.commits, verdict, history.user_commits)
    _check_quarantine(history, verdict)
    out = _check_output(history, verdict, grown=grown)
    if history.by_sequence:
        _check_by_sequence(history, out, verdict, drained=drained, once=exactly_once and not grown)
        return verdict
    expected, rows = changes(history)
    _check_table(history, rows, verdict)
    for key in sorted(expected.keys() | out.keys()):
        wanted, actual = expected.get(key, []), out.get(key, [])
        if not exactly_once:
            _check_at_least_once(key, wanted, actual, verdict, drained=drained, grown=grown)
        elif grown:
            _check_several_partitions(key, wanted, actual, verdict, drained=drained)
        else:
            had = [record.row for record in actual]
            if had != (wanted if drained else wanted[: len(had)]):
                _report_difference(key, wanted, had, verdict, drained=drained)
    if drained:
        _check_output_fold(history, expected, verdict)
    return verdict


def _check_sends(history: History, verdict: Verdict) -> None:
    """Acknowledged records are in the topic, at their offset, once, and in the order of sending."""
    committed = {(r.partition, r.offset): r for r in history.topic_in}
    seen: dict[tuple[int, int], int] = {}
    for record in history.topic_in:
        if record.row is None:
            continue
        at = record.key, record.partition
        seq, before = record.row[0], seen.get(at, -1)
        if seq == before:
            verdict.add("duplicated", f"topic in: key {record.key} seq {seq} at {record[:2]}")
        elif seq < before and not history.by_sequence:
            verdict.add("reordered", f"topic in: key {record.key} seq {seq} after {before} at {record[:2]}")
        seen[at] = seq
    bad = set(history.bad)
    for sent in history.ledger:
        place = sent.partition, sent.offset
        actual = committed.get(place)
        if sent.fate in ("plain", "committed"):
            there = actual is not None and actual.key == sent.key and (actual.row is None) == sent.tombstone
            if not there or (actual is not None and actual.row is not None and actual.row[0] != sent.seq):
                verdict.add("lost", f"topic in: acked key {sent.key} seq {sent.seq} is not at {place}")
        elif sent.fate == "bad" and place not in bad:
            verdict.add("lost", f"topic in: the acked record {place} that nobody can decode is not there")
        elif sent.fate == "aborted" and actual is not None:
            verdict.add("aborted read", f"topic in: aborted key {sent.key} seq {sent.seq} at {place}")


def check_batches(commits: list[Commit], verdict: Verdict, user_commits: Sequence[UserCommit] = ()) -> None:
    """Each batch is one version; batch numbers increase by one, and no offset decreases but by a RESTORE. It takes back
    offsets and no batch numbers: Delta skips a number that it has seen."""
    before: Commit | None = None
    batch = -1
    restores = [user for user in user_commits if user.restored is not None]
    for commit in commits:
        while restores and restores[0].version < commit.version:
            back = restores.pop(0).restored or 0
            before = next((c for c in reversed(commits) if c.version <= back), None)
        if commit.batch != commit.named:
            verdict.add(
                "batches not once", f"version {commit.version}: txn {commit.batch}, progress {commit.named}"
            )
        if commit.named != batch + 1:
            verdict.add(
                "batches not once", f"version {commit.version} holds batch {commit.named} after {batch}"
            )
        for partition, offset in (before.offsets if before else {}).items():
            if commit.offsets.get(partition, -1) < offset:
                verdict.add(
                    "batches not once",
                    f"version {commit.version}: partition {partition} goes back from {offset}",
                )
        before, batch = commit, commit.named


def _check_table(history: History, rows: dict[int, Row], verdict: Verdict) -> None:
    for key, count in Counter(key for key, _ in history.table).items():
        if count > 1:
            verdict.add("duplicated", f"table: key {key} is there {count} times")
    aborted = {(a.key, a.seq) for a in history.ledger if a.fate == "aborted"}
    for key, row in history.table:
        if (key, row[0]) in aborted:
            verdict.add("aborted read", f"table: key {key} seq {row[0]}")
    _check_equal(rows, dict(history.table), "table differs from topic", verdict)


def _check_by_sequence(
    history: History, out: dict[int, list[Record]], verdict: Verdict, *, drained: bool, once: bool
) -> None:
    """Where the change with the greatest number counts.

    The table has these changes. What it had after each commit is not determined: a batch remembers its deletions before
    it commits, and the batch after a kill, which may end earlier, knows them. So the output topic must have rows of the
    key that were sent, whose numbers do not go back unless a user has taken the table back, and the table's row at the
    end; `once`: no row twice in succession.
    """
    written = any(user.restored is None for user in history.user_commits)
    restored = any(user.restored is not None for user in history.user_commits)
    rows = {key: row for key, row in greatest_of(applied(history)).items() if row is not None}
    for key, there in history.table if written else ():
        if key in rows and there == written_by_a_user(rows[key]):
            rows[key] = there
    _check_table(history, rows, verdict)
    sent: dict[int, set[Row | None]] = {}
    for record in history.topic_in:
        if record.row is not None:
            sent.setdefault(record.key, {None}).update([record.row, written_by_a_user(record.row)])
    for key, records in out.items():
        newest = -1
        for before, record in zip([None, *records], records, strict=False):
            row = record.row
            if row not in sent.get(key, {None}):
                verdict.add(
                    "topic differs from table", f"topic out: key {key} {row} at {record[:2]} never was"
                )
            if once and before is not None and before.row == row:
                verdict.add("duplicated", f"topic out: key {key} {row} at {record[:2]} is there twice")
            if once and row is not None and not restored:
                if row[0] < newest:
                    verdict.add(
                        "reordered", f"topic out: key {key} {row} at {record[:2]} comes after {newest}"
                    )
                newest = max(newest, row[0])
    if drained:
        _check_output_fold(history, {}, verdict)


def _check_equal(wanted: dict[int, Row], actual: dict[int, Row], fault: str, verdict: Verdict) -> None:
    for key in sorted(wanted.keys() | actual.keys()):
        if wanted.get(key) != actual.get(key):
            verdict.add(fault, f"key {key}: expected {wanted.get(key)}, got {actual.get(key)}")


def _check_quarantine(history: History, verdict: Verdict) -> None:
    """Undecodable records up to the offsets of the last commit are in the quarantine once, and no other records are."""
    reached = history.commits[-1].offsets if history.commits else {}
    kept = Counter(history.quarantine)
    for place in history.bad:
        if place[1] < reached.get(place[0], 0) and not kept[place]:
            verdict.add("quarantine differs", f"the bad record {place} is not in it")
    for place, count in kept.items():
        if place not in set(history.bad):
            verdict.add("quarantine differs", f"the record {place} is in it, and is no bad one")
        elif count > 1:
            verdict.add("quarantine differs", f"the record {place} is in it {count} times")


def _check_output(history: History, verdict: Verdict, *, grown: bool) -> dict[int, list[Record]]:
    """The output topic has the expected records of each key."""
    aborted = {(a.key, a.seq) for a in history.ledger if a.fate == "aborted"}
    out: dict[int, list[Record]] = {}
    partitions: dict[int, int] = {}
    for record in history.topic_out:
        out.setdefault(record.key, []).append(record)
        if not grown and partitions.setdefault(record.key, record.partition) != record.partition:
            verdict.add("reordered", f"topic out: key {record.key} is in two partitions")
        if record.row is not None and (record.key, record.row[0]) in aborted:
            verdict.add("aborted read", f"topic out: key {record.key} seq {record.row[0]}")
    return out


def _check_output_fold(history: History, expected: dict[int, list[Row | None]], verdict: Verdict) -> None:
    """The fold of the output topic equals the table."""
    table, topic = dict(history.table), fold(history.topic_out)
    for key in sorted(table.keys() | topic.keys()):
        wanted, actual = table.get(key), topic.get(key)
        if wanted == actual:
            continue
        fault = "topic differs from table"
        if wanted is None:
            fault = "ghosts"
        elif actual in expected.get(key, []):
            fault = "stale"
        verdict.add(fault, f"topic out: key {key}: expected {wanted}, got {actual}")


def _check_at_least_once(
    key: int, wanted: list[Row | None], actual: list[Record], verdict: Verdict, *, drained: bool, grown: bool
) -> None:
    """At-least-once: see `judge`. Where partitions were added, all of them together contain the changes of a key."""
    sent = 0
    for record in actual:
        row = record.row
        if sent < len(wanted) and row == wanted[sent]:
            sent += 1
        elif row not in wanted:
            verdict.add("topic differs from table", f"topic out: key {key} {row} at {record[:2]} never was")
        elif row not in wanted[:sent] and not grown:
            verdict.add(
                "reordered", f"topic out: key {key} {row} at {record[:2]} comes before {wanted[sent]}"
            )
            sent = wanted.index(row) + 1
    if grown:
        missing = Counter(wanted) - Counter([record.row for record in actual])
        rows = [row for row in missing if row is not None and row not in {record.row for record in actual}]
        for row in rows if drained else []:
            verdict.add("lost", f"topic out: key {key} {row} is not in any partition")
        _check_newer_than_all(key, wanted, actual, verdict)
    elif drained and sent < len(wanted):
        verdict.add("lost", f"topic out: key {key} lacks {wanted[sent:][:5]}")


def _check_newer_than_all(key: int, wanted: list[Row | None], actual: list[Record], verdict: Verdict) -> None:
    """Within a partition, a change that occurs for the first time is newer than all before it. A RESTORE repeats a row
    of before, which counts where it was first."""
    newest: dict[int, int] = {}
    places = {row: n for n, row in reversed([*enumerate(wanted)]) if row is not None}
    seen: set[tuple[int, Row]] = set()
    for record in actual:
        if record.row is None or record.row not in places:
            continue
        at = places[record.row]
        is_late = (record.partition, record.row) not in seen and at < newest.get(record.partition, -1)
        if is_late and not any(r.row == record.row for r in actual if r.partition != record.partition):
            verdict.add("reordered", f"topic out: key {key} {record.row} at {record[:2]} comes late")
        seen.add((record.partition, record.row))
        newest[record.partition] = max(at, newest.get(record.partition, -1))


def _check_several_partitions(
    key: int, wanted: list[Row | None], actual: list[Record], verdict: Verdict, *, drained: bool
) -> None:
    """Exactly-once in several partitions: all changes, each once, in order within each partition."""
    had = [record.row for record in actual]
    if drained and Counter(had) != Counter(wanted):
        _report_difference(key, wanted, had, verdict, drained=True)
    elif not drained and (Counter(had) - Counter(wanted)):
        _report_difference(key, wanted, had, verdict, drained=False)
    for partition in {record.partition for record in actual}:
        left = iter(wanted)
        rows = [record.row for record in actual if record.partition == partition]
        if not all(any(row == w for w in left) for row in rows):
            verdict.add("reordered", f"topic out: key {key} has {rows[-6:]} in partition {partition}")


def _report_difference(
    key: int, wanted: list[Row | None], actual: list[Row | None], verdict: Verdict, *, drained: bool
) -> None:
    """Reports the fault in the records of a key: additional, missing or reordered ones."""
    too_many = Counter(actual) - Counter(wanted)
    # Records still to be sent may be missing, but none before the last one that is present.
    upto = len(wanted)
    if not drained:
        upto = max((n for n, row in enumerate(wanted, 1) if row is not None and row in actual), default=0)
    too_few = Counter(wanted[:upto]) - Counter(actual)
    for row, count in too_many.items():
        fault = "duplicated" if row in wanted else "topic differs from table"
        verdict.add(fault, f"topic out: key {key} {row} {count} times too often in {actual[-6:]}")
    for row, count in too_few.items():
        verdict.add("lost", f"topic out: key {key} {row} {count} times too seldom in {actual[-6:]}")
    if not too_many and not too_few:
        verdict.add("reordered", f"topic out: key {key} has {actual[-6:]}, expected {wanted[-6:]}")
