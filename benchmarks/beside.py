"""Ingests of a whole topic beside the tuned recipe and Flink → Paimon, in turn, on the same topics and broker."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

from benchmarks.goals import Outcome, at_least, at_most, not_measured, void
from benchmarks.ground import PAIMON, Entry, Ground
from benchmarks.rounds import Rounds, in_turn
from benchmarks.topics import Load

__all__ = ["backlog", "batches", "tuned"]

_BESIDE = f"beside {PAIMON}"
_NO_FLINK = "no Flink here; `make bench-peers` fetches it"


def tuned() -> str:
    """The recipe's setting that fits this machine: as many shuffle partitions as cores."""
    return f"spark.sql.shuffle.partitions={os.cpu_count() or 1}"


def _compared(
    name: str,
    unit: str,
    number: Callable[[Entry], float],
    goal: float,
    baseline: Rounds | None,
    bridge: Rounds,
    *,
    most: bool = False,
) -> Outcome:
    """A row of medians. With `most` the bridge's number is to be at most `goal` times the baseline's."""
    if baseline is None:
        return not_measured(name, unit, goal, _NO_FLINK)
    made = (at_most if most else at_least)(name, unit, baseline.median(number), bridge.median(number), goal)
    made = replace(made, spread=f"{baseline.spread(number)} / {bridge.spread(number)}")
    wrong = baseline.wrong or bridge.wrong
    return made if wrong is None else void(made, wrong)


def batches(ground: Ground, load: Load, batch: int, rounds: int) -> tuple[list[Outcome], Rounds, Rounds]:
    """The topic in batches of one size: whole processes and warm batches; also the recipe's and the bridge's rounds."""
    topic = ground.topic("changes", load)
    what = f"{len(load):,} records, {batch:,} a batch"
    untuned = ground.recipe(what, topic, batch=batch)
    recipe, bridge, flink = _in_turn(ground, what, topic, rounds, batch)
    best = max(recipe, Rounds((untuned,)), key=lambda system: system.median(_rate))
    outcomes = [
        _compared(f"{what}, whole process, beside the tuned recipe", "records/s", _rate, 4.0, best, bridge),
        _compared(f"{what}, whole process, {_BESIDE}", "records/s", _rate, 1.0, flink, bridge),
        _compared(
            f"{what}, warm batches, beside the tuned recipe",
            "batches/s",
            lambda e: 1 / e.warm,
            5.0,
            best,
            bridge,
        ),
        _compared(
            f"{what}, whole process, beside the recipe with Spark's 200 shuffle partitions",
            *("records/s", _rate, 0.0, Rounds((untuned,)), bridge),
        ),
        _cpu(what, best, bridge),
    ]
    return outcomes, best, bridge


def backlog(ground: Ground, load: Load, rounds: int) -> tuple[list[Outcome], Rounds, Rounds]:
    """The whole topic at once on every side."""
    topic = ground.topic("backlog", load)
    what = f"backlog of {len(load):,} records"
    recipe, bridge, flink = _in_turn(ground, what, topic, rounds)
    outcomes = [
        _compared(f"{what}, {_BESIDE}", "records/s", _rate, 1.5, flink, bridge),
        _compared(f"{what}, beside the tuned recipe in one batch", "records/s", _rate, 1.7, recipe, bridge),
        _compared(f"memory: {what}, {_BESIDE}", "MB", lambda e: e.peak_mb, 1.0, flink, bridge, most=True),
        _cpu(what, recipe, bridge),
    ]
    return outcomes, recipe, bridge


def _in_turn(
    ground: Ground, what: str, topic: str, rounds: int, batch: int | None = None
) -> tuple[Rounds, Rounds, Rounds | None]:
    """The tuned recipe, the bridge, and Flink where it is there."""
    recipe, bridge, flink = in_turn(
        rounds,
        [
            lambda: ground.recipe(what, topic, batch=batch, conf=tuned()),
            lambda: ground.bridge(what, topic, batch=batch),
            lambda: ground.paimon(what, topic),
        ],
    )
    assert recipe is not None and bridge is not None
    return recipe, bridge, flink


def _cpu(what: str, baseline: Rounds, bridge: Rounds) -> Outcome:
    name = f"CPU: {what}, the tuned recipe / the bridge"
    return _compared(name, "CPU s per million", lambda e: e.cpu, 0.0, baseline, bridge)


def _rate(entry: Entry) -> float:
    return entry.rate
