"""Plays the scenarios: each function runs jobs and adds their comparisons to the table of goals."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import TypeAlias

from benchmarks.goals import Outcome, at_least, at_most, void
from benchmarks.ground import Entry, Ground, engines
from benchmarks.plots import Plot, short
from benchmarks.topics import Load, load_together

__all__ = ["PARTS", "SEED", "Found", "Scale", "play"]

PARTS = ("batches", "tables", "together", "cluster")
"""The parts of `play`, in order."""
FLINK_BY_RECIPE = 95 / 20
"""Flink → Paimon did 95,000 records/s where the recipe did 20,000."""
FLAT = 1.25
"""Memory counts as flat up to this growth."""
_RANDOM_GOALS = {"spark": 3.0, "delta-rs": 5.0}
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
    thorough: bool
    """Whether the slow recipe also runs on small tables and adjacent keys, and once more with a setting that suits a
    single machine; otherwise only what fits in a short run."""

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
        recipe, bridge = _batches(ground, scale, found)
        _backlog(ground, scale, found, recipe, bridge)
    curves: Curves = {}
    if {"tables", "together"} & set(parts):
        title = f"A batch of {scale.records // 1000:,} keys by the size of the table"
        found.plots["table-size"] = Plot(title, "rows in the table", "seconds", curves, True, True)
    if "tables" in parts:
        _random(ground, scale, found, curves)
    if "together" in parts:
        _together(ground, scale, found, curves)
    if "cluster" in parts:
        _cluster(ground, scale, found)
    return found


def _batches(ground: Ground, scale: Scale, found: Found) -> tuple[Entry, Entry]:
    """Ingests a topic with several batch sizes; the recipe with `scale.batch`, and the bridge with its defaults."""
    load = Load.random(scale.records, scale.keys, SEED)
    topic = ground.topic("changes", load)
    what = f"{scale.records:,} records, {scale.batch:,} per batch"
    recipe = ground.recipe(what, topic, batch=scale.batch)
    bridge = ground.bridge(what, topic, batch=scale.batch)
    both = (recipe, bridge)
    found.profiled += both
    found.add(at_least, f"{what}, including cold start", "records/s", recipe.rate, bridge.rate, 4.0, of=both)
    warm = (scale.batch / recipe.warm, scale.batch / bridge.warm)
    found.add(at_least, f"{what}, warm batches", "records/s", *warm, 5.0, of=both)
    if scale.thorough:
        tuned = ground.recipe(what, topic, batch=scale.batch, conf="spark.sql.shuffle.partitions=2")
        name = f"{what}, the recipe with 2 shuffle partitions"
        found.add(at_least, name, "records/s", tuned.rate, bridge.rate, 0.0, of=(tuned, bridge))
    curves: dict[str, list[tuple[float, float]]] = {
        "recipe": [(scale.batch, recipe.rate)],
        "bridge": [(scale.batch, bridge.rate)],
    }
    for batch in scale.batches:
        label = f"{scale.records:,} records, {batch:,} per batch"
        curves["recipe"].append((batch, ground.recipe(label, topic, batch=batch).rate))
        curves["bridge"].append((batch, ground.bridge(label, topic, batch=batch).rate))
    default = ground.bridge(f"{scale.records:,} records, default settings", topic)
    if scale.thorough:
        whole = ground.recipe(f"{scale.records:,} records, one batch", topic)
        curves["recipe"].append((scale.records, whole.rate))
    curves["bridge"].append((scale.records, default.rate))
    found.plots["batch-size"] = Plot(
        f"{scale.records:,} records, job time including cold start",
        "records per batch (last: the default of the bridge)",
        "records/s",
        curves,
        log_x=True,
    )
    return recipe, default


def _backlog(ground: Ground, scale: Scale, found: Found, calibrated: Entry, less: Entry) -> None:
    """Ingests a backlog. The recipe's rate does not depend on the size of the backlog, so a job with fewer records can
    represent it (its table is then smaller, which favors it)."""
    load = Load.random(scale.backlog, scale.backlog_keys, SEED + 1)
    topic = ground.topic("backlog", load)
    what = f"backlog of {scale.backlog:,} records, {scale.backlog_keys:,} keys"
    bridge = ground.bridge(what, topic)
    found.profiled.append(bridge)
    name = f"{what}, default settings (the recipe: {calibrated.what})"
    found.add(at_least, name, "records/s", calibrated.rate, bridge.rate, 10.0, of=(calibrated, bridge))
    flink = calibrated.rate * FLINK_BY_RECIPE
    name = f"{what}, vs. Flink → Paimon, estimated from the recipe's rate"
    found.add(at_least, name, "records/s", flink, bridge.rate, 2.5, of=(calibrated, bridge))
    name = f"memory: a backlog of {scale.backlog:,} records / of {scale.records:,}"
    _memory(found, name, less, bridge)
    shown = {f"bridge, {short(scale.records)}": less, f"bridge, {short(scale.backlog)}": bridge}
    if scale.deep_backlog:
        load = Load.random(scale.deep_backlog, scale.backlog_keys, SEED + 2)
        what = f"backlog of {scale.deep_backlog:,} records, {scale.backlog_keys:,} keys"
        deep = ground.bridge(what, ground.topic("deep-backlog", load))
        _memory(found, f"memory: a {what} / of {scale.backlog:,}", bridge, deep)
        shown[f"bridge, {short(scale.deep_backlog)}"] = deep
    found.plots["memory-backlog"] = _over_time(
        "Memory of all processes during a backlog", {**shown, "recipe": calibrated}
    )


def _random(ground: Ground, scale: Scale, found: Found, curves: Curves) -> None:
    """Merges batches of random keys into existing tables."""
    small = scale.records // 1000
    for rows in scale.random_tables:
        large = rows == scale.random_tables[-1]
        for size in (small, scale.batch) if large and scale.thorough else (small,):
            topic = ground.topic(
                f"random-{size}-{rows}", Load.random(size * scale.small_batches, rows, SEED + size)
            )
            what = f"{size:,} random keys into {rows:,} rows"
            recipe = ground.recipe(what, topic, batch=size, rows=rows) if large or scale.thorough else None
            shown = [recipe] if recipe else []
            for engine in engines() or (None,):
                bridge = ground.bridge(what, topic, batch=size, rows=rows, engine=engine)
                shown.append(bridge)
                if large and recipe:
                    goal = _RANDOM_GOALS[engine or "spark"]
                    given = ("records/s", size / recipe.warm, size / bridge.warm, goal)
                    found.add(at_least, f"{what}, {engine or 'spark'}", *given, of=(recipe, bridge))
            found.profiled += shown if large else []
            for entry in shown if size == small else ():
                curves.setdefault(f"{entry.system}, random", []).append((rows, entry.warm))


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


def _cluster(ground: Ground, scale: Scale, found: Found) -> None:
    """Compares two executors of one core each with one core, for batches that touch many files of a table."""
    rows = scale.random_tables[-1]
    load = Load.random(scale.small_batches * scale.batch, rows, SEED)
    topic, what = ground.topic("cluster", load), f"{scale.batch:,} keys from all of {rows:,} rows"
    engine = "spark" if "spark" in engines() else None
    one, two = (
        ground.bridge(what, topic, batch=scale.batch, rows=rows, engine=engine, master=master)
        for master in ("local[1]", "local-cluster[2,1,2048]")
    )
    found.profiled += [one, two]
    given = ("records/s", scale.batch / one.warm, scale.batch / two.warm, 1.5)
    found.add(at_least, f"{what}, warm: local-cluster[2,1,2048] / local[1]", *given, of=(one, two))


def _memory(found: Found, name: str, less: Entry, more: Entry) -> None:
    if not isnan(less.peak_mb) and not isnan(more.peak_mb):
        found.add(at_most, name, "MB", less.peak_mb, more.peak_mb, FLAT, of=(less, more))


def _over_time(title: str, entries: Mapping[str, Entry]) -> Plot:
    lines = {label: entry.ran.memory for label, entry in entries.items() if entry.ran}
    return Plot(title, "seconds since the start", "MB", lines, dots=False)
