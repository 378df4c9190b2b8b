"""Renders the history of a table (`bridge report`) as one HTML page: no scripts, no network, no values of rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from itertools import pairwise
from typing import Any, TypeVar

from bridge.definition import Definition
from bridge.errors import TableError
from bridge.history.commits import Commit, CommitLog
from bridge.history.quality_runs import QualityRun, quality_runs
from bridge.quality.charts import Chart, stacked
from bridge.quality.report import templates
from bridge.quality.wording import age, counted, moment, size
from bridge.version import own_version
from bridge.ways import NotThisWay

_TIMES = (
    (1, "ms", 3_000),
    (1000, "seconds", 600_000),
    (60_000, "minutes", 36_000_000),
    (3_600_000, "hours", 0),
)
_SIZES = ((1, "bytes", 10_000), (10**3, "kB", 10**7), (10**6, "MB", 10**10), (10**9, "GB", 0))
_Series = Sequence[tuple[str, str, Sequence[int]]]


def history_charts(
    commits: Sequence[Commit], runs: Sequence[QualityRun] | None, axis: TimeAxis
) -> list[Chart]:
    """Return the charts, of which each bar is a part of `axis`. There is at least one commit; `runs` is None where no
    results of checks are known."""

    def sums(field: str) -> list[int]:
        return axis.sums(commits, lambda c: c.at_ms, lambda c: getattr(c, field) or 0)

    kinds = ("inserted", "updated", "deleted")
    return [
        _throughput(sums("records"), axis),
        _bars("changes", "Rows changed", "rows", [(kind, kind, sums(kind)) for kind in kinds], axis),
        _freshness(commits, axis),
        _bars("commits", "Commits", "commits", _writers(commits, axis), axis),
        _sizes(sums("bytes"), axis),
        *([_quality(runs, axis)] if runs else []),
    ]


def median(values: Sequence[int]) -> int:
    """Return the lower one of those in the middle. Raises IndexError without any."""
    return sorted(values)[(len(values) - 1) // 2]


def _bars(
    id: str, title: str, noun: str, series: _Series, axis: TimeAxis, *, note: str = "", now: str | None = None
) -> Chart:
    """A chart whose legend has the sums of its series."""
    total = sum(sum(values) for _, _, values in series)
    shown = f"{total:,}" if now is None else now
    note = note or f"{noun} per {axis.each}"
    highest = max(map(sum, zip(*(values for _, _, values in series), strict=True)))
    summary = f"{title}: {shown} in all; {note}; at most {highest:,}."
    legend = (
        tuple((key, label, f"{sum(values):,}") for key, label, values in series) if len(series) > 1 else ()
    )
    return replace(stacked(id, title, shown, note, summary, series), legend=legend)


def _throughput(records: Sequence[int], axis: TimeAxis) -> Chart:
    a_minute = [round(count * 60 / axis.seconds) for count in records]
    now, note = f"{sum(records):,}", f"records per minute, mean of each {axis.each}"
    return _bars(
        "throughput", "Records read", "records", [("plain", "records", a_minute)], axis, note=note, now=now
    )


def _writers(commits: Sequence[Commit], axis: TimeAxis) -> _Series:
    def count(wanted: str) -> list[int]:
        return axis.sums(commits, lambda c: c.at_ms, lambda c: _writer(c) == wanted)

    named = (("plain", "batches"), ("maintenance", "maintenance, properties"), ("others", "other writers"))
    return [(key, label, count(key)) for key, label in named]


def _writer(commit: Commit) -> str:
    if commit.pipeline is not None:
        return "plain"
    return "others" if commit.is_other_writers else "maintenance"


def _freshness(commits: Sequence[Commit], axis: TimeAxis) -> Chart:
    known = [(c.at_ms, max(0, c.at_ms - c.newest_ms)) for c in commits if c.newest_ms is not None]
    title = "Freshness"
    if not known:
        note = "the commits do not say how old their records were"
        return Chart("freshness", title, "not known", note, f"{title}: {note}.", known=False)
    worst = [-1] * axis.parts
    for at_ms, behind in known:
        worst[axis.place(at_ms)] = max(worst[axis.place(at_ms)], behind)
    by, unit = _unit(_TIMES, max(worst))
    now = f"{age(median([behind for _, behind in known]) / 1000)}"
    note = f"median, from newest record to commit; bars: the worst of each {axis.each}, in {unit}"
    summary = f"{title}: {now}, {note}; at most {age(max(worst) / 1000)}."
    series = [("plain", unit, [max(0, behind) // by for behind in worst])]
    missing = [behind < 0 for behind in worst]
    return replace(stacked("freshness", title, now, note, summary, series, missing), legend=())


def _sizes(written: Sequence[int], axis: TimeAxis) -> Chart:
    by, unit = _unit(_SIZES, max(written))
    series = [("plain", unit, [count // by for count in written])]
    note = f"size of data files added, {unit} per {axis.each}"
    return _bars("size", "Data written", unit, series, axis, note=note, now=size(sum(written)))


def _quality(runs: Sequence[QualityRun], axis: TimeAxis) -> Chart:
    kinds = ("critical", "warning", "info")
    series = [(k, k, axis.sums(runs, lambda r: r.at_ms, lambda r, k=k: getattr(r, k))) for k in kinds]  # type: ignore[misc]
    note = f"in {counted(len(runs), 'check')} of {sum(r.expectations for r in runs):,} expectations, per {axis.each}"
    return _bars("quality", "Expectations not met", "expectations", series, axis, note=note)


def _unit(units: Sequence[tuple[int, str, int]], highest: int) -> tuple[int, str]:
    """What to divide by, and its name, so that numbers are neither long nor all 0."""
    return next((by, name) for by, name, below in units if highest < below or not below)


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


_T = TypeVar("_T")
_MOST = 60
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_WIDTHS = (
    *(1, 2, 5, 10, 15, 30),
    *(n * _MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * _HOUR for n in (1, 2, 3, 6, 12)),
    *(n * _DAY for n in (1, 2, 7, 14, 28, 91, 364)),
)


def utc(at_ms: float) -> datetime:
    """Return epoch milliseconds as a time with its zone, UTC."""
    return datetime.fromtimestamp(at_ms / 1000, timezone.utc)


@dataclass(frozen=True)
class TimeAxis:
    """Parts of `seconds` each, the first of which begins at `begin` (epoch seconds)."""

    begin: int
    seconds: int
    parts: int

    @classmethod
    def of(cls, first_ms: int, last_ms: int) -> TimeAxis:
        """Return the narrowest one that has both times and at most sixty parts."""
        for seconds in _WIDTHS:
            begin = first_ms // 1000 // seconds * seconds
            parts = (last_ms // 1000 - begin) // seconds + 1
            if parts <= _MOST:
                return cls(begin, seconds, parts)
        return cls(begin, -(-(last_ms // 1000 - begin + 1) // _MOST), _MOST)

    @property
    def width(self) -> str:
        """How long a part is: `10 minutes`."""
        return age(self.seconds)

    @property
    def each(self) -> str:
        """The same after `per` and `each`: `hour`, `10 minutes`."""
        return self.width.removeprefix("1 ")

    def place(self, at_ms: int) -> int:
        """Return the part of a time; the nearest one for others."""
        return max(0, min(self.parts - 1, (at_ms // 1000 - self.begin) // self.seconds))

    def sums(self, items: Iterable[_T], at_ms: Callable[[_T], int], value: Callable[[_T], int]) -> list[int]:
        """Return the sum of the values in each part."""
        found = [0] * self.parts
        for item in items:
            found[self.place(at_ms(item))] += value(item)
        return found

    def labels(self) -> list[tuple[str, float]]:
        """Return five times or fewer, and where on the axis they are, in percent. Long ones are fewer."""
        span = self.parts * self.seconds
        steps = 1 if self.parts < 4 else 2 if _DAY < span <= 4 * _DAY else 4
        places = [round(self.parts * n / steps) for n in range(steps + 1)]
        return [
            (
                _label(utc(1000 * (self.begin + n * self.seconds)), self.seconds, span),
                round(100 * n / self.parts, 2),
            )
            for n in places
        ]


def _label(at: datetime, seconds: int, span: int) -> str:
    if seconds < _MINUTE:
        return f"{at:%H:%M:%S}"
    if span <= _DAY:
        return f"{at:%H:%M}"
    if span <= 4 * _DAY:
        return f"{at.day} {at:%b %H:%M}"
    return f"{at.day} {at:%b}" if span <= 300 * _DAY else f"{at:%b %Y}"
