"""All results of a run, which its parts add to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isnan

from benchmarks.goals import Outcome, at_most, void
from benchmarks.plots import Plot
from benchmarks.results import Entry

Curves = dict[str, list[tuple[float, float]]]
_FLAT = 1.25
"""Memory is flat when it grows no more than this."""


@dataclass
class Found:
    """All results of a run."""

    outcomes: list[Outcome] = field(default_factory=list)
    plots: dict[str, Plot] = field(default_factory=dict)
    profiled: list[Entry] = field(default_factory=list)
    minutes: dict[str, float] = field(default_factory=dict)
    """How long each part took."""
    by_table_size: Curves = field(default_factory=dict)
    """Seconds of a small batch by the rows of its table, of each system."""

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

    def add_memory(self, name: str, less: Entry, more: Entry) -> None:
        """Adds a comparison of peaks, where they were measured."""
        if not isnan(less.peak_mb) and not isnan(more.peak_mb):
            self.add(at_most, name, "MB", less.peak_mb, more.peak_mb, _FLAT, of=(less, more))
