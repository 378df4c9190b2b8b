"""Attributes the time of a batch to steps, by the job descriptions in Spark's event log and the commit metrics."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.jobs import Commit, Ran

READ = "read, decode keys"
FOLD = "fold, decode values, count"
STATE = "table state"
FIND = "merge: find touched files"
WRITE = "merge: write"
OUTSIDE = "merge in the driver"
REST = "plan, commit, pauses"
STEPS = (READ, FOLD, STATE, FIND, WRITE, OUTSIDE, REST)

_SAID = (
    ("Compute snapshot", STATE),
    ("checkpoint", STATE),
    ("Writing", WRITE),
    ("Rewriting", WRITE),
    ("writing", WRITE),
    ("scanning files", FIND),
    ("Filtering files", FIND),
    ("materialize source", None),
    ("Delta:", STATE),
)
"""Parts of Delta's job descriptions, the first match wins; None: the job computes the batch."""

_MERGE_TIME = "executionTimeMs"
"""The name of a merge's time in the metrics of a commit."""

_RELEVANT_EVENTS = re.compile(r'\{"Event":"SparkListener(JobStart|JobEnd|StageCompleted)"')


@dataclass(frozen=True)
class Span:
    """A part of a job, in epoch seconds."""

    step: str
    start: float
    end: float


def profile(ran: Ran) -> dict[str, float]:
    """Returns the mean seconds of each of STEPS in a warm batch, whose sum is the mean time between two commits. Empty
    for a job of one batch or without an event log."""
    warm = ran.warm_batches
    if ran.events is None or not warm:
        return {}
    found = list(spans(ran.events))
    totals = dict.fromkeys(STEPS, 0.0)
    for before, after in warm:
        for step, seconds in _shares(found, before, after).items():
            totals[step] += seconds / len(warm)
    return totals


def spans(events: Path) -> Iterator[Span]:
    """Returns the parts of the jobs in an event log: jobs that Delta describes as a whole, the others by stage."""
    described: dict[int, str | None] = {}
    jobs: dict[int, tuple[str | None, float]] = {}
    for event in _events(events):
        kind = event["Event"]
        if kind == "SparkListenerJobStart":
            description = str(event.get("Properties", {}).get("spark.job.description") or "")
            step = next((step for sign, step in _SAID if sign in description), None)
            jobs[event["Job ID"]] = step, event["Submission Time"] / 1000
            described |= dict.fromkeys(event["Stage IDs"], step)
        elif kind == "SparkListenerJobEnd":
            step, start = jobs[event["Job ID"]]
            if step:
                yield Span(step, start, event["Completion Time"] / 1000)
        elif kind == "SparkListenerStageCompleted":
            stage = event["Stage Info"]
            if described.get(stage["Stage ID"]) is None and "Completion Time" in stage:
                step = FOLD if stage["Parent IDs"] else READ
                yield Span(step, stage["Submission Time"] / 1000, stage["Completion Time"] / 1000)


def _shares(found: Iterable[Span], before: Commit, after: Commit) -> dict[str, float]:
    """Returns the seconds between two commits by step. Overlaps count once, for the span that started first."""
    shares = dict.fromkeys(STEPS, 0.0)
    at = before.at
    for span in sorted(found, key=lambda span: span.start):
        start, end = max(span.start, at), min(span.end, after.at)
        if end > start:
            shares[span.step] += end - start
            at = end
    shares[REST] = max(0.0, after.at - before.at - sum(shares.values()))
    in_driver = after.metrics.get(_MERGE_TIME, 0.0) / 1000 if after.engine == "driver" else 0.0
    outside = min(shares[REST], in_driver)
    shares[OUTSIDE], shares[REST] = outside, shares[REST] - outside
    return shares


def _events(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            if _RELEVANT_EVENTS.match(line):
                yield json.loads(line)
