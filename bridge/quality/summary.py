"""Summarizes a verdict in sentences, the same in every report. Plain Python."""

from __future__ import annotations

from datetime import datetime

from bridge.quality.verdict import Cost, History, Outcome, PastRun, Verdict
from bridge.quality.wording import counted, moment, size

_STATES = {"passed": "Passed", "warned": "Passed with warnings", "failed": "Failed"}
_SEVERITIES = ("critical", "warning", "info")


def headline(verdict: Verdict) -> str:
    """Returns the headline: `Failed: 2 of 8 expectations are not met`."""
    total, failed = len(verdict.expectations), len(verdict.failed)
    word = _STATES[verdict.state]
    if not failed:
        return f"{word}: " + (
            "the one expectation is met" if total == 1 else f"all {total} expectations are met"
        )
    return f"{word}: {failed} of {counted(total, 'expectation')} {'is' if failed == 1 else 'are'} not met"


def sentences(verdict: Verdict, history: History, now: PastRun) -> list[str]:
    """Returns the summary: the first failure, how many failures are new, and the scope of the check."""
    texts = []
    first = first_failed(verdict)
    if first is not None:
        observed = "it could not be evaluated" if first.reason else first.observed or "no observed value"
        texts.append(f"“{first.title.rstrip('.')}” is not met: {observed}.")
        new = sum(history.regressed(o) for o in verdict.failed)
        if new:
            one = "It was" if len(verdict.failed) == 1 else "One of these was"
            texts.append(f"{one if new == 1 else f'{new} of these were'} met in the last run.")
    return [*texts, *scope(verdict, now)]


def scope(verdict: Verdict, now: PastRun) -> list[str]:
    """Returns how many rows were checked, the table's lag behind its topic where it is known, and the cost."""
    texts = [f"Checked {counted(verdict.row_count, 'row')}."]
    if verdict.changed_rows is not None:
        changed = counted(verdict.changed_rows, "row")
        texts = [
            f"Checked {changed} that changed since version {verdict.subject.since}, and all "
            f"{counted(verdict.row_count, 'row')} for expectations that need the whole table."
        ]
    if now.lag is not None:
        lag = (
            f"is {counted(now.lag, 'record')} behind its topic" if now.lag else "is up to date with its topic"
        )
        texts.append(f"The table {lag}.")
    if verdict.cost is not None and verdict.cost.scans:
        texts.append(_cost_sentence(verdict.cost))
    return texts


def _cost_sentence(cost: Cost) -> str:
    """Returns `One scan of 3 files, 1.5 MB, 0.8 s.` or `4 scans of 12 files in total, 6.0 MB, 3.1 s.`"""
    scans, total = ("One scan", "") if cost.scans == 1 else (f"{cost.scans:,} scans", " in total")
    return f"{scans} of {counted(cost.files, 'file')}{total}, {size(cost.bytes)}, {cost.seconds:.1f} s."


def in_order(verdict: Verdict) -> list[Outcome]:
    """Returns the outcomes with failed ones first, and by severity within both groups."""
    return sorted(verdict.expectations, key=lambda o: (o.success, _SEVERITIES.index(o.severity)))


def first_failed(verdict: Verdict) -> Outcome | None:
    """Returns the most severe failed outcome, or None."""
    first = in_order(verdict)[0]
    return None if first.success else first


STATES = ("met", "failed", "warned", "unknown")
"""What `state_of` returns."""


def state_of(outcome: Outcome) -> str:
    """Returns `met`, `unknown` (not evaluated), `failed` (critical) or `warned` (failed with a lower severity)."""
    if outcome.success:
        return "met"
    if outcome.reason is not None:
        return "unknown"
    return "failed" if outcome.severity == "critical" else "warned"


def trend_note(outcome: Outcome, history: History, started: datetime) -> str | None:
    """Returns since when a failed expectation fails. None for one that is met, and without earlier runs."""
    trend = history.trend(outcome)
    if outcome.success or not trend.results:
        return None
    if trend.results[-1][1]:
        return f"New: met in the last run, {moment(trend.results[-1][0])}"
    since = trend.failing_since or trend.results[0][0]
    runs = sum(at >= since for at, _ in trend.results) + 1
    text = f"Failing since {moment(since)} ({counted(runs, 'run')})"
    return text if trend.last_passed else f"{text}; never met in the stored results"
