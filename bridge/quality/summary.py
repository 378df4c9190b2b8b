"""The verdict in sentences that need no knowledge of the suite. Plain Python; every report says the same."""

from __future__ import annotations

from datetime import datetime

from bridge.quality.history import History, PastRun
from bridge.quality.verdict import Cost, Outcome, Verdict
from bridge.quality.wording import counted, moment, size

__all__ = ["first_failed", "headline", "in_order", "scope", "sentences", "state_of", "trend_note"]

_STATES = {"passed": "Passed", "warned": "Passed with warnings", "failed": "Failed"}
_SEVERITIES = ("critical", "warning", "info")


def headline(verdict: Verdict) -> str:
    """`Failed: 2 of 8 expectations are not met`."""
    total, failed = len(verdict.expectations), len(verdict.failed)
    word = _STATES[verdict.state]
    if not failed:
        return f"{word}: " + (
            "the one expectation is met" if total == 1 else f"all {total} expectations are met"
        )
    return f"{word}: {failed} of {counted(total, 'expectation')} {'is' if failed == 1 else 'are'} not met"


def sentences(verdict: Verdict, history: History, now: PastRun) -> list[str]:
    """What a reader should know who reads no further: what failed first, whether that is new, and of how much."""
    texts = []
    worst = first_failed(verdict)
    if worst is not None:
        what = "it could not be evaluated" if worst.reason else worst.observed or "it is not so"
        texts.append(f"“{worst.title.rstrip('.')}” is not met: {what}.")
        new = sum(history.regressed(o) for o in verdict.failed)
        if new:
            one = "It was" if len(verdict.failed) == 1 else "One of these was"
            texts.append(f"{one if new == 1 else f'{new} of these were'} still met in the last run.")
    return [*texts, *scope(verdict, now)]


def scope(verdict: Verdict, now: PastRun) -> list[str]:
    """How much was looked at, and how near the table is to its topic where that is known."""
    texts = [f"Looked at: {counted(verdict.row_count, 'row')}."]
    if verdict.changed_rows is not None:
        changed = counted(verdict.changed_rows, "row")
        texts = [
            f"Looked at: {changed} changed since version {verdict.subject.since}, and all "
            f"{counted(verdict.row_count, 'row')} where only the whole table can tell."
        ]
    if now.lag is not None:
        behind = (
            f"is {counted(now.lag, 'record')} behind its topic"
            if now.lag
            else "has everything its topic holds"
        )
        texts.append(f"The table {behind}.")
    if verdict.cost is not None and verdict.cost.scans:
        texts.append(_cost_sentence(verdict.cost))
    return texts


def _cost_sentence(cost: Cost) -> str:
    """`One scan of 3 files, 1.5 MB, 0.8 s.`; `4 scans, of 12 files in all, 6.0 MB, 3.1 s.`"""
    what = "One scan of" if cost.scans == 1 else f"{cost.scans:,} scans, in all of"
    return f"{what} {counted(cost.files, 'file')}, {size(cost.bytes)}, {cost.seconds:.1f} s."


def in_order(verdict: Verdict) -> list[Outcome]:
    """All outcomes, those that failed first, the most severe of them before the others."""
    return sorted(verdict.expectations, key=lambda o: (o.success, _SEVERITIES.index(o.severity)))


def first_failed(verdict: Verdict) -> Outcome | None:
    """The one to look at first; None where none failed."""
    first = in_order(verdict)[0]
    return None if first.success else first


def state_of(outcome: Outcome) -> str:
    """`met`, `unknown` (it could not be evaluated), `failed`, or `warned` where that is not critical."""
    if outcome.success:
        return "met"
    if outcome.reason is not None:
        return "unknown"
    return "failed" if outcome.severity == "critical" else "warned"


def trend_note(outcome: Outcome, history: History, started: datetime) -> str | None:
    """Of a failed one: whether that is new. None where no run before was asked."""
    course = history.trend(outcome)
    if outcome.success or not course.results:
        return None
    if course.results[-1][1]:
        return f"New: met in the last run, {moment(course.results[-1][0])}"
    since = course.failing_since or course.results[0][0]
    runs = sum(at >= since for at, _ in course.results) + 1
    text = f"Failing since {moment(since)} ({counted(runs, 'run')})"
    return text if course.last_passed else f"{text}; never met before, as far as results are kept"
