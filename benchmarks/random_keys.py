"""Small batches of random keys into large tables that are there, beside the tuned recipe and Flink → Paimon."""

from __future__ import annotations

import re
import statistics

from benchmarks import beside
from benchmarks.found import Curves, Found
from benchmarks.goals import Outcome, at_most, faster
from benchmarks.ground import Ground, engines
from benchmarks.results import PAIMON, Entry
from benchmarks.rounds import Rounds, compared, in_turn
from benchmarks.scale import SEED, Scale
from benchmarks.topics import Load

_FEW = 8
_MORE = 3
"""The factor for the number of batches where these are short."""
_TRIED = 2
_COLD = 3
"""The number of Flink's first jobs that are not warm, as of the others' batches."""
_INSERT = re.compile(r"^INSERT ([\d.]+)$", re.MULTILINE)


def play(ground: Ground, scale: Scale, found: Found) -> None:
    """Adds the rows of the largest table, and the jobs to profile; the others are for the curve."""
    size, curves = scale.records // 1000, found.by_table_size
    for rows in scale.random_tables[:-1]:
        load = Load.random(size * scale.small_batches, rows, SEED + size)
        topic, what = ground.topic(f"random-{size}-{rows}", load), _what(size, rows)
        shown = [ground.bridge(what, topic, batch=size, rows=rows)]
        if scale.thorough:
            shown.append(ground.recipe(what, topic, batch=size, rows=rows))
        _draw(curves, rows, shown)
    rows = scale.random_tables[-1]
    goals = (8.0, 1.0) if scale.thorough else (0.0, 0.0)
    outcomes, bridge, profiled = _large(ground, scale, rows, size, goals)
    _draw(curves, rows, profiled)
    outcomes.append(_few(ground, scale, rows, bridge))
    found.outcomes += outcomes
    found.profiled += profiled


def play_large(ground: Ground, scale: Scale, found: Found) -> None:
    """Adds the rows of large batches into the largest table; they have no goal."""
    outcomes, _, profiled = _large(ground, scale, scale.random_tables[-1], scale.batch, goals=(0.0, 0.0))
    found.outcomes += outcomes
    found.profiled += profiled


def _large(
    ground: Ground, scale: Scale, rows: int, size: int, goals: tuple[float, float]
) -> tuple[list[Outcome], Rounds, list[Entry]]:
    """Batches of one size in turn: the rows of goals, the bridge's rounds, and a typical job of each system."""
    count = scale.small_batches
    load = Load.random(size * count, rows, SEED + size)
    topic, what = ground.topic(f"random-{size}-{rows}", load), _what(size, rows)
    trial = ground.topic(f"trial-{size}-{rows}", load.first(_TRIED * size))
    conf = beside.tuned(ground, f"trial of the recipe: {what}", trial, batch=size, rows=rows)
    steps = [ground.topic(f"{topic}-{n}", load, part=range(n * size, (n + 1) * size)) for n in range(count)]
    recipe, bridge, flink = in_turn(
        scale.rounds,
        [
            lambda: ground.recipe(what, topic, batch=size, rows=rows, conf=conf),
            lambda: ground.bridge(what, topic, batch=size, rows=rows),
            lambda: ground.paimon_steps(what, steps, rows=rows),
        ],
    )
    assert recipe is not None and bridge is not None
    typical = [recipe.typical, bridge.typical]
    unit, mean = "s a batch", lambda e: e.ran.warm_mean if e.ran else float("nan")
    found = [
        compared(f"{what}, beside the tuned recipe", unit, _warm, goals[0], recipe, bridge, by=faster),
        compared(
            f"{what}, mean, beside {PAIMON}",
            unit,
            _insert,
            goals[1],
            flink,
            bridge,
            by=faster,
            bridge_number=mean,
        ),
    ]
    for engine in engines():
        if engine not in (bridge.typical.ran.engines if bridge.typical.ran else ""):
            typical.append(ground.bridge(what, topic, batch=size, rows=rows, engine=engine))
    return found, bridge, typical


def _few(ground: Ground, scale: Scale, rows: int, more: Rounds) -> Outcome:
    """A batch of eight random keys, by the time of a batch of many."""
    load = Load.random(_FEW * _MORE * scale.small_batches, rows, SEED)
    what = _what(_FEW, rows)
    topic = ground.topic(f"random-{_FEW}-{rows}", load)
    (few,) = in_turn(scale.rounds, [lambda: ground.bridge(what, topic, batch=_FEW, rows=rows)])
    assert few is not None
    return compared(f"{what} / {more.typical.what}", "s a batch", _warm, 0.5, more, few, by=at_most)


def _draw(curves: Curves, rows: int, shown: list[Entry]) -> None:
    for entry in shown:
        curves.setdefault(f"{entry.system}, random", []).append((rows, entry.warm))


def _what(size: int, rows: int) -> str:
    return f"{size:,} random keys into {rows:,} rows"


def _warm(entry: Entry) -> float:
    return entry.warm


def _insert(entry: Entry) -> float:
    """The mean seconds of Flink's warm jobs, each of one batch."""
    seconds = [float(text) for text in _INSERT.findall(entry.ran.said)] if entry.ran else []
    return statistics.mean(seconds[_COLD:] or [float("nan")])
