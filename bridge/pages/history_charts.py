"""Draws the commits of a table over time: the charts of `bridge report`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bridge.history.commits import Commit
from bridge.history.quality_runs import QualityRun
from bridge.pages.time_axis import TimeAxis
from bridge.quality.charts import Chart, stacked
from bridge.quality.wording import age, counted, size

__all__ = ["history_charts", "median"]

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
