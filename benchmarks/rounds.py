"""Ways to do the same work, played in turn several times: medians, and how far the rounds lie apart."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.ground import Entry

__all__ = ["Rounds", "in_turn"]


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
        """What voids them: a wrong table, or a machine that others used in every round."""
        wrong = next((f"{e.system}: {e.wrong}" for e in self.entries if e.wrong), None)
        if wrong is None and all(entry.disturbed for entry in self.entries):
            return f"{self.entries[0].system}: others used the machine in each round"
        return wrong

    def median(self, number: Callable[[Entry], float]) -> float:
        return statistics.median(number(entry) for entry in self.counted)

    def spread(self, number: Callable[[Entry], float]) -> str:
        """Lowest and highest; one number where there was one round."""
        numbers = sorted(number(entry) for entry in self.counted)
        low, high = f"{numbers[0]:,.3g}", f"{numbers[-1]:,.3g}"
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
