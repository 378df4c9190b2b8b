"""Computes charts: positions of lines, bars and ticks in percent of width and height. Plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from bridge.quality.verdict import PastRun
from bridge.quality.wording import counted, moment

_MAX_BAR_WIDTH = 9.0
_BAR_WIDTH_RATIO = 0.62
"""The width of a bar in relation to the space of its run."""


@dataclass(frozen=True)
class Tick:
    """A horizontal grid line with its label."""

    label: str
    y: float


@dataclass(frozen=True)
class Bar:
    """A segment of the bar of a run; `y` is its upper edge."""

    x: float
    y: float
    width: float
    height: float
    series: str


@dataclass(frozen=True)
class Chart:
    """The chart of one number over runs. `summary` describes it; `known` is False where no run has the number."""

    id: str
    title: str
    now: str
    note: str
    summary: str
    ticks: tuple[Tick, ...] = ()
    lines: tuple[str, ...] = ()
    """SVG paths; a path ends where a run lacks the number."""
    areas: tuple[str, ...] = ()
    dots: tuple[tuple[float, float], ...] = ()
    bars: tuple[Bar, ...] = ()
    zeros: tuple[float, ...] = ()
    """Positions of runs whose bar has no height."""
    legend: tuple[tuple[str, str, str], ...] = ()
    """(series, label, current value)"""
    known: bool = True


def charts(runs: Sequence[PastRun]) -> list[Chart]:
    """Returns the charts of row count, lag, failures and changes over `runs`, oldest first, ending with this run."""
    return [_rows(runs), _lag(runs), _failures(runs), _changes(runs)]


def short_number(number: float) -> str:
    """Formats a number for an axis: 950, 150,000, 1.25M."""
    for size, letter in ((1e9, "B"), (1e6, "M")):
        if abs(number) >= size:
            return f"{number / size:,.4f}".rstrip("0").rstrip(".") + letter
    return f"{number:,.0f}"


def _rows(runs: Sequence[PastRun]) -> Chart:
    values = [run.rows for run in runs]
    now, before = values[-1], values[-2] if len(values) > 1 else None
    note = "the first run"
    if now is not None and before is not None:
        note = f"{now - before:+,} since the previous run" if now != before else "as in the previous run"
    note = note.replace("-", "−")
    return _line("rows", "Rows in the table", "row", runs, values, note, from_zero=False)


def _lag(runs: Sequence[PastRun]) -> Chart:
    values = [run.lag for run in runs]
    if values[-1] is None:
        note = "not known: the table follows no topic, or no broker answered"
    else:
        note = "records of the topic that the table lacks" if values[-1] else "up to date with the topic"
    return _line("lag", "Behind the topic", "record", runs, values, note, from_zero=True)


def _line(
    id: str,
    title: str,
    noun: str,
    runs: Sequence[PastRun],
    values: Sequence[int | None],
    note: str,
    *,
    from_zero: bool,
) -> Chart:
    present = [v for v in values if v is not None]
    if not present:
        return Chart(id, title, "not known", note, f"{title}: not known in any run.", known=False)
    low, high = min(present), max(present)
    ticks, floor_, top = _scale(0 if from_zero or low < high / 2 else low, high)
    points = [None if v is None else (_x(i, len(values)), _y(v, floor_, top)) for i, v in enumerate(values)]
    lines, areas = _paths(points)
    last = values[-1]
    return Chart(
        id,
        title,
        "not known" if last is None else f"{last:,}",
        note,
        f"{title} over {counted(len(runs), 'run')} from {moment(runs[0].started)} to {moment(runs[-1].started)}: "
        f"between {low:,} and {counted(high, noun)}" + ("." if last is None else f", now {last:,}."),
        ticks,
        lines,
        areas if floor_ == 0 else (),
        tuple(p for p in points if p is not None),
    )


def _failures(runs: Sequence[PastRun]) -> Chart:
    series = [
        ("critical", "critical", [r.critical for r in runs]),
        ("warning", "warning", [r.warnings for r in runs]),
    ]
    if any(r.infos for r in runs):
        series.append(("info", "info", [r.infos for r in runs]))
    bad = sum(r.failed > 0 for r in runs)
    now = runs[-1]
    return stacked(
        "failures",
        "Expectations not met",
        f"{now.failed} of {now.total}",
        "in this run",
        f"Expectations not met, by severity: some in {bad} of {counted(len(runs), 'run')}; in this run {now.failed} of "
        f"{now.total}.",
        series,
    )


def _changes(runs: Sequence[PastRun]) -> Chart:
    if all(run.changes is None for run in runs):
        note = "available from the next run on" if len(runs) == 1 else "not recorded in the table's log"
        return Chart("mix", "Changes between runs", "not known", note, f"Changes: {note}.", known=False)
    now = runs[-1]
    counts = f"{now.inserted or 0:,} inserted, {now.updated or 0:,} updated, {now.deleted or 0:,} deleted"
    series = [
        ("inserted", "inserted", [r.inserted or 0 for r in runs]),
        ("updated", "updated", [r.updated or 0 for r in runs]),
        ("deleted", "deleted", [r.deleted or 0 for r in runs]),
    ]
    shown = "not known" if now.changes is None else f"{now.changes:,}"
    return stacked(
        "mix",
        "Changes between runs",
        shown,
        "rows changed since the previous run",
        f"Rows inserted, updated and deleted before each of {counted(len(runs), 'run')}; before this one: "
        f"{shown if now.changes is None else counts}.",
        series,
        missing=[run.changes is None for run in runs],
    )


def stacked(
    id: str,
    title: str,
    now: str,
    note: str,
    summary: str,
    series: Sequence[tuple[str, str, Sequence[int]]],
    missing: Sequence[bool] = (),
) -> Chart:
    """Returns bars of several series on each other, each (class, label, values), with the last values in the legend.
    `missing` says of which bars nothing is known."""
    totals = [sum(column) for column in zip(*(values for _, _, values in series), strict=True)]
    ticks, floor_, top = _scale(0, max(totals))
    count = len(totals)
    width = min(_MAX_BAR_WIDTH, 100 / count * _BAR_WIDTH_RATIO)
    bars, zeros = [], []
    for i, total in enumerate(totals):
        if not total:
            if not (missing and missing[i]):
                zeros.append(_x(i, count))
            continue
        base = 0
        for name, _, values in series:
            if values[i]:
                upper = _y(base + values[i], floor_, top)
                bars.append(Bar(_x(i, count) - width / 2, upper, width, _y(base, floor_, top) - upper, name))
                base += values[i]
    unknown = bool(missing) and missing[-1]
    legend = tuple(
        (name, label, "not known" if unknown else f"{values[-1]:,}") for name, label, values in series
    )
    return Chart(id, title, now, note, summary, ticks, bars=tuple(bars), zeros=tuple(zeros), legend=legend)


def _scale(low: float, high: float) -> tuple[tuple[Tick, ...], float, float]:
    """Returns two to five ticks at round numbers that enclose low to high, and the ends of the axis."""
    span = max(high - low, abs(high) * 0.02, 2 if low else 1)
    step = 10 ** floor(log10(span / 2))
    step = next(step * f for f in (1, 2, 5, 10) if span / (step * f) <= 3)
    step = max(1, step)
    first, last = floor(low / step), ceil(high / step)
    last = last if last > first else first + 1
    if low and first > 0 and low == high:
        first -= 1
    ends = (first * step, last * step)
    return tuple(Tick(short_number(n * step), _y(n * step, *ends)) for n in range(first, last + 1)), *ends


def _x(position: int, count: int) -> float:
    return round((position + 0.5) / count * 100, 2)


def _y(value: float, low: float, high: float) -> float:
    return round(100 - (value - low) / (high - low) * 100, 2)


def _paths(points: Sequence[tuple[float, float] | None]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns lines through neighbouring points, and the areas under them."""
    segments: list[list[tuple[float, float]]] = [[]]
    for point in points:
        if point is None:
            segments.append([])
        else:
            segments[-1].append(point)
    drawn = [s for s in segments if len(s) > 1]
    lines = tuple("M" + "L".join(f"{x} {y}" for x, y in s) for s in drawn)
    return lines, tuple(f"{d}V100H{s[0][0]}Z" for d, s in zip(lines, drawn, strict=True))
