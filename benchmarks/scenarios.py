"""Plays scenarios of an ingest: each function runs jobs and adds their comparisons to the table of goals."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks import beside
from benchmarks.found import Curves, Found
from benchmarks.goals import at_least, at_most
from benchmarks.ground import Ground
from benchmarks.plots import Plot, short
from benchmarks.results import Entry
from benchmarks.scale import SEED, Scale
from benchmarks.topics import Load, load_together

_PLAIN = 5.0
"""How much longer Spark may take where a pipeline needs what the driver and the consumers lack."""
_MORE = 3
"""The factor for the number of batches where these are short."""


def batches(ground: Ground, scale: Scale, found: Found) -> None:
    """The topic in batches of one size beside the peers, and a curve over further sizes."""
    load = Load.random(scale.records, scale.keys, SEED)
    outcomes, recipe, bridge, conf = beside.batches(ground, load, scale.batch, scale.rounds)
    found.outcomes += outcomes
    found.profiled += (recipe.typical, bridge.typical)
    for ways, engine in (("reader spark", None), ("reader and engine spark", "spark")):
        what = f"{scale.records:,} records, {scale.batch:,} a batch"
        plain = ground.bridge(what, "changes", batch=scale.batch, engine=engine, reader="spark")
        name = f"a warm batch of {scale.batch:,} records: {ways} / the default"
        found.add(at_most, name, "s", bridge.typical.warm, plain.warm, _PLAIN, of=(bridge.typical, plain))
        found.profiled.append(plain)
    if scale.batches:
        found.plots["batch-size"] = _by_batch_size(ground, scale, conf, recipe.typical, bridge.typical)


def _by_batch_size(ground: Ground, scale: Scale, conf: str, recipe: Entry, bridge: Entry) -> Plot:
    curves: Curves = {"recipe": [(scale.batch, recipe.rate)], "bridge": [(scale.batch, bridge.rate)]}
    for batch in scale.batches:
        label = f"{scale.records:,} records, {batch:,} a batch"
        curves["recipe"].append((batch, ground.recipe(label, "changes", batch=batch, conf=conf).rate))
        curves["bridge"].append((batch, ground.bridge(label, "changes", batch=batch).rate))
    default = ground.bridge(f"{scale.records:,} records, default settings", "changes")
    curves["bridge"].append((scale.records, default.rate))
    title = f"{scale.records:,} records, job time including cold start"
    return Plot(title, "records per batch (last: the default of the bridge)", "records/s", curves, log_x=True)


def backlog(ground: Ground, scale: Scale, found: Found) -> None:
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
        found.add_memory(f"memory: a {what} / of {scale.backlog:,}", bridge.typical, deep)
        shown[f"bridge, {short(scale.deep_backlog)}"] = deep
    found.plots["memory-backlog"] = _over_time("Memory of all processes while a backlog is read", shown)


def together(ground: Ground, scale: Scale, found: Found) -> None:
    """Merges batches of adjacent keys into existing tables. They are short, so the bridge gets more of them than the
    recipe: differences are tenths of a second."""
    small, played, curves = scale.records // 1000, {}, found.by_table_size

    def topic(rows: int, batches: int) -> str:
        return ground.topic(f"together-{batches}-{rows}", load_together(small * batches, small, rows, SEED))

    for rows in scale.tables:
        what = f"{small:,} adjacent keys into {rows:,} rows"
        more = topic(rows, _MORE * scale.small_batches)
        played[rows] = bridge = ground.bridge(what, more, batch=small, rows=rows)
        curves.setdefault("bridge, adjacent", []).append((rows, bridge.warm))
        large = rows == scale.random_tables[-1]
        if large and scale.thorough:
            few = topic(rows, scale.small_batches)
            trial = ground.topic(f"together-trial-{rows}", load_together(2 * small, small, rows, SEED))
            conf = beside.tuned(ground, f"trial of the recipe: {what}", trial, batch=small, rows=rows)
            recipe = ground.recipe(what, few, batch=small, rows=rows, conf=conf)
            curves.setdefault("recipe, adjacent", []).append((rows, recipe.warm))
            given = ("records/s", small / recipe.warm, small / bridge.warm, 10.0)
            found.add(at_least, what, *given, of=(recipe, bridge))
            found.profiled.append(recipe)
        found.profiled += [bridge] if large else []
    first, last = played[scale.tables[0]], played[scale.tables[-1]]
    name = f"a batch of {small:,} adjacent keys: {scale.tables[-1]:,} rows / {scale.tables[0]:,}"
    found.add(at_most, name, "s", first.warm, last.warm, 1.3, of=(first, last))
    found.add_memory(f"memory: a table of {scale.tables[-1]:,} rows / of {scale.tables[0]:,}", first, last)
    found.plots["memory-table"] = _over_time(
        "Memory of all processes by the size of the table",
        {f"bridge, {short(rows)} rows": entry for rows, entry in played.items()},
    )


def _over_time(title: str, entries: Mapping[str, Entry]) -> Plot:
    lines = {label: entry.ran.memory for label, entry in entries.items() if entry.ran}
    return Plot(title, "seconds since the start", "MB", lines, dots=False)
