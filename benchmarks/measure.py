"""Times alternative implementations of the same work alternately."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial

from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Line:
    """A result: rows per second of the baseline and the bridge, and whether the ratio meets the goal (`held`)."""

    name: str
    baseline: float
    bridge: float
    ratio: float
    goal: float
    held: bool

    def json(self) -> dict[str, object]:
        return asdict(self)


def compare(
    name: str, baseline: DataFrame, bridge: DataFrame, rows: int, goal: float, *, rounds: int, warm: int
) -> Line:
    """Computes both frames alternately; see `race`."""
    ways = tuple(partial(_compute, frame) for frame in (baseline, bridge))
    first, second = race(ways, rounds=rounds, warm=warm)
    return line(name, rows, first, second, goal)


def race(ways: Sequence[Callable[[], object]], *, rounds: int, warm: int) -> list[float]:
    """Runs all functions alternately, `warm` times without counting and then `rounds` times. Returns the shortest time
    of each in seconds, because disturbances only ever make a run longer."""
    times: list[list[float]] = [[] for _ in ways]
    for turn in range(-warm, rounds):
        for found, way in zip(times, ways, strict=True):
            started = time.perf_counter()
            way()
            if turn >= 0:
                found.append(time.perf_counter() - started)
    return [min(found) for found in times]


def line(name: str, rows: int, baseline: float, bridge: float, goal: float) -> Line:
    """Returns the result for `rows` rows from the durations in seconds."""
    ratio = baseline / bridge
    return Line(name, _speed(rows, baseline), _speed(rows, bridge), round(ratio, 3), goal, ratio >= goal)


def _compute(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _speed(rows: int, seconds: float) -> float:
    return float(round(rows / seconds))
