"""Ways to do the same work, played in turn several times: medians, and how far the rounds lie apart."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import isnan

from benchmarks.goals import Outcome, at_least, not_measured, void
from benchmarks.goals import number as shown
from benchmarks.results import Entry

NO_FLINK = "no Flink here; `make bench-peers` fetches it"
Number = Callable[[Entry], float]
Comparison = Callable[[str, str, float, float, float], Outcome]


@dataclass(frozen=True)
class Rounds:
    """The jobs of one way."""

    entries: tuple[Entry, ...]

    @property
    def counted(self) -> tuple[Entry, ...]:
        """Those that had the machine to themselves; all where none had."""
        return tuple(entry for entry in self.entries if not entry.disturbed) or self.entries

    @property
    def wrong(self) -> str | None:
        """What is wrong with a table of theirs, or why a job has failed."""
        return next((f"{e.system}: {e.wrong}" for e in self.entries if e.wrong), None)

    @property
    def disturbed(self) -> str | None:
        """Says so where others used the machine in every round."""
        if not all(entry.disturbed for entry in self.entries):
            return None
        return f"{self.entries[0].system}: others used the machine in each round"

    def median(self, number: Number) -> float:
        return statistics.median(number(entry) for entry in self.counted)

    def spread(self, number: Number) -> str:
        """Lowest and highest; one number where there was one round."""
        numbers = sorted(number(entry) for entry in self.counted)
        low, high = shown(numbers[0]), shown(numbers[-1])
        return low if low == high else f"{low}–{high}"

    @property
    def typical(self) -> Entry:
        """The job with the median time, for profiles and curves."""
        ordered = sorted(self.counted, key=lambda entry: entry.ran.seconds if entry.ran else 0.0)
        return ordered[len(ordered) // 2]


def in_turn(count: int, ways: Sequence[Callable[[], Entry | None]]) -> list[Rounds | None]:
    """Play all ways, `count` times in turn; a job that others disturbed is played once more. A way that gives None
    cannot be had on this machine."""
    played: list[list[Entry]] = [[] for _ in ways]
    for _ in range(count):
        for entries, way in zip(played, ways, strict=True):
            entry = way()
            if entry is not None and entry.disturbed:
                entries.append(entry)
                entry = way()
            if entry is not None:
                entries.append(entry)
    return [Rounds(tuple(entries)) if entries else None for entries in played]


def compared(
    name: str,
    unit: str,
    number: Number,
    goal: float,
    baseline: Rounds | None,
    bridge: Rounds,
    *,
    by: Comparison = at_least,
    bridge_number: Number | None = None,
) -> Outcome:
    """A row of medians of a `number` of each job; `bridge_number` where the bridge's is another."""
    if baseline is None:
        return not_measured(name, unit, goal, NO_FLINK)
    own = bridge_number or number
    numbers = baseline.median(number), bridge.median(own)
    wrong, disturbed = baseline.wrong or bridge.wrong, baseline.disturbed or bridge.disturbed
    if any(isnan(n) for n in numbers):
        wrong, numbers = wrong or "too few batches", (1.0, 1.0)
    made = by(name, unit, *numbers, goal)
    made = replace(made, spread=f"{baseline.spread(number)} / {bridge.spread(own)}")
    return void(made, wrong, disturbed) if wrong or disturbed else made
