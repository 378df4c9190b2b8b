"""Two ways to do the same work, timed in turn."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass

from pyspark.sql import DataFrame

__all__ = ["Line", "compare"]


@dataclass(frozen=True)
class Line:
    """A result: rows per second of both ways, and whether the bridge's is as fast as it is to be."""

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
    """Run both in turn, `warm` times for nothing and then `rounds` times. The shortest time of each counts: what
    disturbs a run only ever makes it longer."""
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(-warm, rounds):
        for found, frame in zip(times, (baseline, bridge), strict=True):
            started = time.perf_counter()
            frame.write.format("noop").mode("overwrite").save()
            if turn >= 0:
                found.append(time.perf_counter() - started)
    first, second = (min(found) for found in times)
    ratio = first / second
    return Line(name, _speed(rows, first), _speed(rows, second), round(ratio, 3), goal, ratio >= goal)


def _speed(rows: int, seconds: float) -> float:
    return float(round(rows / seconds))
