"""Renders the history of a table from its commits as one HTML page: no scripts, no network, no values of rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from bridge.definition import Definition
from bridge.errors import TableError
from bridge.history.commits import Commit, CommitLog
from bridge.history.quality_runs import QualityRun, quality_runs
from bridge.pages.history_charts import history_charts
from bridge.pages.time_axis import TimeAxis, utc
from bridge.quality.report import templates
from bridge.quality.wording import age, counted, moment, size
from bridge.version import own_version
from bridge.ways import NotThisWay

__all__ = ["history_page", "known_quality"]

_SHOWN = 12
_LAST = 30


def history_page(
    definition: Definition, log: CommitLog, runs: Sequence[QualityRun] | None, quality: str, most: int
) -> str:
    """Return the page as one HTML document. All text is escaped.

    `log` was followed with its files, at most `most` commits. `runs` is None where no results of checks are known, and
    `quality` says why.
    """
    commits = list(log.commits)
    times = [*(c.at_ms for c in commits), *(run.at_ms for run in runs or ())]
    axis = TimeAxis.of(min(times), max(times)) if commits else None
    gaps = sorted(pairwise(commits), key=lambda pair: pair[0].at_ms - pair[1].at_ms)
    return (
        templates("bridge.pages", "bridge.quality")
        .get_template("history.html.j2")
        .render(
            definition=definition,
            version=own_version(),
            read=_read(log, most),
            numbers=_numbers(commits, gaps),
            axis=axis,
            span=" to ".join(dict.fromkeys(moment(utc(at)) for at in (min(times), max(times))))
            if times
            else "",
            charts=history_charts(commits, runs, axis) if axis else [],
            quality=quality if runs is None else "" if runs else "no check ran in this time",
            engines=_engines(commits),
            gaps=[(old, new, age((new.at_ms - old.at_ms) / 1000)) for old, new in gaps[:5]],
            maintenance=_grouped([c for c in commits if c.pipeline is None and not c.is_other_writers]),
            others=_grouped([c for c in commits if c.is_other_writers]),
            last=commits[: -_LAST - 1 : -1],
            utc=utc,
            size=size,
        )
    )


def known_quality(definition: Definition, log: CommitLog) -> tuple[list[QualityRun] | None, str]:
    """Return the checks since the oldest commit of `log`; None, and why they are not known."""
    try:
        runs = quality_runs(definition, log.commits[0].at_ms if log.commits else 0)
    except (TableError, NotThisWay) as failed:
        return None, str(failed)
    return runs, "no results of checks are stored" if runs is None else ""


def _read(log: CommitLog, most: int) -> str:
    """What of the history the page shows, in a sentence."""
    if not log.commits:
        return "There is no table yet, or its log is empty."
    first = log.commits[0].version
    text = f"Versions {first:,} to {log.newest:,}: {counted(len(log.commits), 'commit')}"
    if first == 0:
        return f"{text}, all that the table has."
    if len(log.commits) == most:
        return f"{text}. Older ones were not read; --commits reads more."
    return f"{text}. The log does not have older ones any more."


def _numbers(commits: Sequence[Commit], gaps: Sequence[tuple[Commit, Commit]]) -> dict[str, str]:
    records = sum(c.records or 0 for c in commits)
    return {
        "Records read": f"{records:,}",
        "Rows changed": f"{sum(c.rows for c in commits):,}",
        "Commits": f"{len(commits):,}",
        "Longest gap": age((gaps[0][1].at_ms - gaps[0][0].at_ms) / 1000) if gaps else "–",
    }


def _engines(commits: Sequence[Commit]) -> list[dict[str, Any]]:
    """The ways taken, the most frequent first: numbers within a reason vary from batch to batch, and are left out."""
    batches: Counter[tuple[str, str]] = Counter()
    records: Counter[tuple[str, str]] = Counter()
    for commit in commits:
        if commit.pipeline is None:
            continue
        engine, _, reason = commit.engine.removesuffix(")").partition(" (")
        way = engine or "no merge: rows are appended", re.sub(r"\b\d[\d,.]*", "…", reason)
        batches[way] += 1
        records[way] += commit.records or 0
    return [
        {"engine": engine, "reason": reason, "batches": count, "records": records[engine, reason]}
        for (engine, reason), count in batches.most_common(_SHOWN)
    ]


def _grouped(commits: Sequence[Commit]) -> list[dict[str, Any]]:
    """Commits by operation and writer, the most frequent first, each with the newest one."""
    groups: dict[tuple[str, str], list[Commit]] = {}
    for commit in commits:
        groups.setdefault((commit.operation or "not said", commit.writer or "not said"), []).append(commit)
    found = [
        {"operation": op, "writer": by, "count": len(of), "rows": sum(c.rows for c in of), "newest": of[-1]}
        for (op, by), of in groups.items()
    ]
    return sorted(found, key=lambda group: -int(str(group["count"])))[:_SHOWN]
