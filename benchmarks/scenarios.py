"""Plays the scenarios: each function runs jobs and adds their comparisons to the table of goals."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import TypeAlias

from benchmarks import beside
from benchmarks.goals import Outcome, at_least, at_most, void
from benchmarks.ground import Entry, Ground, engines
from benchmarks.plots import Plot, short
from benchmarks.topics import Load, load_together

__all__ = ["PARTS", "SEED", "Found", "Scale", "play"]

PARTS = ("batches", "tables", "together")
"""What `play` can play, in its order."""
FLAT = 1.25
"""Memory is flat when it grows no more than this."""
_RANDOM_GOALS = {"spark": 0.0, "delta-rs": 8.0}
"""`auto` takes delta-rs here; the row of the other engine is shown beside it."""
_FEW = 8
_FEW_GOAL = 0.5
"""A batch of so few keys must not take what one of a thousand takes."""
_MORE = 3
"""The factor for the number of batches where these are short."""
SEED = 7
Curves: TypeAlias = dict[str, list[tuple[float, float]]]


@dataclass(frozen=True)
class Scale:
    """The sizes of all scenarios."""

    records: int
    keys: int
    batch: int
    backlog: int
    backlog_keys: int
    deep_backlog: int
    """More records than one batch has by default; 0 for none."""
    tables: tuple[int, ...]
    """Rows of the tables for small batches, smallest first."""
    random_tables: tuple[int, ...]
    laid_tables: tuple[int, ...]
    """Rows of the tables with different layouts."""
    batches: tuple[int, ...]
    """Further batch sizes of the curve, beside `batch` and a single batch."""
    small_batches: int
    """The number of batches of a size into an existing table."""
    published: int
    rounds: int
    """How often the jobs beside the peers are played, in turn."""
    thorough: bool
    """Whether the slow recipe also runs on small tables and adjacent keys; otherwise only what fits in a short run."""

    @staticmethod
    def of(rows: int, *, full: bool) -> Scale:
        tables = (rows, 20 * rows, 100 * rows) if full else (rows // 5, 2 * rows)
        return Scale(
            records=rows,
            keys=rows // 5,
            batch=rows // 10,
            backlog=5 * rows,
            backlog_keys=rows,
            deep_backlog=20 * rows if full else 0,
            tables=tables,
            random_tables=tables[:2] if full else tables[1:],
            laid_tables=tables[:2] if full else tables[-1:],
            batches=(rows // 3,) if full else (),
            small_batches=6 if full else 4,
            published=5 * rows if full else rows,
            rounds=3,
            thorough=full,
        )


@dataclass
class Found:
    """All results of a run."""

    outcomes: list[Outcome] = field(default_factory=list)
    plots: dict[str, Plot] = field(default_factory=dict)
    profiled: list[Entry] = field(default_factory=list)

    def add(
        self,
        outcome: Callable[..., Outcome],
        name: str,
        unit: str,
        baseline: float,
        bridge: float,
        goal: float,
        *,
        of: Sequence[Entry],
    ) -> None:
        """Adds a comparison of jobs; void when a table of one of them was incorrect, or there are too few batches."""
        wrong = next((f"{e.system}: {e.wrong}" for e in of if e.wrong), None)
        if isnan(baseline) or isnan(bridge):
            wrong, baseline, bridge = wrong or "too few batches", 1.0, 1.0
        made = outcome(name, unit, baseline, bridge, goal)
        self.outcomes.append(made if wrong is None else void(made, wrong))


def play(ground: Ground, scale: Scale, parts: Collection[str] = PARTS) -> Found:
    """Plays the scenarios of `parts`, in order."""
    found = Found()
    if "batches" in parts:
        _batches(ground, scale, found)
        _backlog(ground, scale, found)
    curves: Curves = {}
    if {"tables", "together"} & set(parts):
        title = f"A batch of {scale.records // 1000:,} keys by the size of the table"
        found.plots["table-size"] = Plot(title, "rows in the table", "seconds", curves, True, True)
    if "tables" in parts:
        _random(ground, scale, found, curves)
    if "together" in parts:
        _together(ground, scale, found, curves)
    return found


def _batches(ground: Ground, scale: Scale, found: Found) -> None:
    """The topic in batches of one size beside the peers, then the bridge's and the recipe's curve over other sizes."""
    load = Load.random(scale.records, scale.keys, SEED)
    outcomes, recipe, bridge = beside.batches(ground, load, scale.batch, scale.rounds)
    found.outcomes += outcomes
    found.profiled += (recipe.typical, bridge.typical)
    curves: dict[str, list[tuple[float, float]]] = {
        "recipe": [(scale.batch, recipe.typical.rate)],
        "bridge": [(scale.batch, bridge.typical.rate)],
    }
    for batch in scale.batches:
        label = f"{scale.records:,} records, {batch:,} a batch"
        tuned = ground.recipe(label, "changes", batch=batch, conf=beside.tuned())
        curves["recipe"].append((batch, tuned.rate))
        curves["bridge"].append((batch, ground.bridge(label, "changes", batch=batch).rate))
    default = ground.bridge(f"{scale.records:,} records, default settings", "changes")
    curves["bridge"].append((scale.records, default.rate))
    found.plots["batch-size"] = Plot(
        f"{scale.records:,} records, job time including cold start",
        "records per batch (last: the default of the bridge)",
        "records/s",
        curves,
        log_x=True,
    )


def _backlog(ground: Ground, scale: Scale, found: Found) -> None:
    """The whole topic at once on every side; memory beside Flink, and flat from there to four times as many records."""
    load = Load.random(scale.backlog, scale.backlog_keys, SEED + 1)
    outcomes, recipe, bridge = beside.backlog(ground, load, scale.rounds)
    found.outcomes += outcomes
    found.profiled.append(bridge.typical)
    shown = {f"bridge, {short(scale.backlog)}": bridge.typical, "recipe": recipe.typical}
    if scale.deep_backlog:
        load = Load.random(scale.deep_backlog, scale.backlog_keys, SEED + 2)
        what = f"backlog of {scale.deep_backlog:,} records, {scale.backlog_keys:,} keys"
        deep = ground.bridge(what, ground.topic("deep-backlog", load))
        _memory(found, f"memory: a {what} / of {scale.backlog:,}", bridge.typical, deep)
        shown[f"bridge, {short(scale.deep_backlog)}"] = deep
    found.plots["memory-backlog"] = _over_time("Memory of all processes while a backlog is read", shown)


def _random(ground: Ground, scale: Scale, found: Found, curves: Curves) -> None:
    """Batches of random keys into tables that are there, beside the tuned recipe; and of eight keys alone."""
    small = scale.records // 1000
    for rows in scale.random_tables:
        large = rows == scale.random_tables[-1]
        for size in (small, scale.batch) if large and scale.thorough else (small,):
            topic = ground.topic(
                f"random-{size}-{rows}", Load.random(size * scale.small_batches, rows, SEED + size)
            )
            what = f"{size:,} random keys into {rows:,} rows"
            recipe = (
                ground.recipe(what, topic, batch=size, rows=rows, conf=beside.tuned())
                if large or scale.thorough
                else None
            )
            shown = [recipe] if recipe else []
            for engine in engines() or (None,):
                bridge = ground.bridge(what, topic, batch=size, rows=rows, engine=engine)
                shown.append(bridge)
                if large and recipe:
                    name = f"{what}, {engine or 'spark'}, beside the tuned recipe"
                    given = ("records/s", size / recipe.warm, size / bridge.warm)
                    found.add(at_least, name, *given, _RANDOM_GOALS[engine or "spark"], of=(recipe, bridge))
            found.profiled += shown if large else []
            for entry in shown if size == small else ():
                curves.setdefault(f"{entry.system}, random", []).append((rows, entry.warm))
            if large and size == small:
                _few(ground, scale, found, rows, shown[-1])


def _few(ground: Ground, scale: Scale, found: Found, rows: int, more: Entry) -> None:
    """A batch of eight random keys, by the time of `more`, a batch of many."""
    load = Load.random(_FEW * _MORE * scale.small_batches, rows, SEED)
    what = f"{_FEW} random keys into {rows:,} rows"
    few = ground.bridge(what, ground.topic(f"random-{_FEW}-{rows}", load), batch=_FEW, rows=rows)
    found.add(at_most, f"{what} / {more.what}", "s", more.warm, few.warm, _FEW_GOAL, of=(more, few))


def _together(ground: Ground, scale: Scale, found: Found, curves: Curves) -> None:
    """Merges batches of adjacent keys into existing tables. They are short, so the bridge gets more of them than the
    recipe: differences are tenths of a second."""
    small, together = scale.records // 1000, {}

    def topic(rows: int, batches: int) -> str:
        return ground.topic(f"together-{batches}-{rows}", load_together(small * batches, small, rows, SEED))

    for rows in scale.tables:
        what = f"{small:,} adjacent keys into {rows:,} rows"
        more = topic(rows, _MORE * scale.small_batches)
        together[rows] = bridge = ground.bridge(what, more, batch=small, rows=rows)
        curves.setdefault("bridge, adjacent", []).append((rows, bridge.warm))
        large = rows == scale.random_tables[-1]
        if large and scale.thorough:
            few = topic(rows, scale.small_batches)
            recipe = ground.recipe(what, few, batch=small, rows=rows)
            curves.setdefault("recipe, adjacent", []).append((rows, recipe.warm))
            given = ("records/s", small / recipe.warm, small / bridge.warm, 10.0)
            found.add(at_least, what, *given, of=(recipe, bridge))
            found.profiled.append(recipe)
        found.profiled += [bridge] if large else []
    first, last = together[scale.tables[0]], together[scale.tables[-1]]
    name = f"a batch of {small:,} adjacent keys: {scale.tables[-1]:,} rows / {scale.tables[0]:,}"
    found.add(at_most, name, "s", first.warm, last.warm, 1.3, of=(first, last))
    _memory(found, f"memory: a table of {scale.tables[-1]:,} rows / of {scale.tables[0]:,}", first, last)
    found.plots["memory-table"] = _over_time(
        "Memory of all processes by the size of the table",
        {f"bridge, {short(rows)} rows": entry for rows, entry in together.items()},
    )


def _memory(found: Found, name: str, less: Entry, more: Entry) -> None:
    if not isnan(less.peak_mb) and not isnan(more.peak_mb):
        found.add(at_most, name, "MB", less.peak_mb, more.peak_mb, FLAT, of=(less, more))


def _over_time(title: str, entries: Mapping[str, Entry]) -> Plot:
    lines = {label: entry.ran.memory for label, entry in entries.items() if entry.ran}
    return Plot(title, "seconds since the start", "MB", lines, dots=False)
