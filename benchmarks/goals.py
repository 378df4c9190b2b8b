"""Compares the ratios of a run with their goals: met or missed, void where a table was incorrect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isnan

from rich.table import Table


@dataclass(frozen=True)
class Outcome:
    """One comparison. `ratio` is the bridge's number divided by the baseline's, or of `faster` the other way round;
    None when the row is void."""

    name: str
    unit: str
    baseline: float
    bridge: float
    ratio: float | None
    goal: float
    held: bool
    most: bool = False
    """`goal` is an upper bound of the ratio, not a lower bound."""
    wrong: str | None = None
    """What was wrong with a table; the row is void then."""
    disturbed: str | None = None
    """Whose jobs others have disturbed, in each round; the row is void then, too."""
    absent: str | None = None
    """Why there is no baseline on this machine; the row counts neither as met nor as missed."""
    spread: str = ""
    """Lowest and highest of the rounds, baseline / bridge, where there were several."""

    def json(self) -> dict[str, object]:
        """{name, baseline, bridge, ratio, goal, held}; a void row has no ratio and is not held."""
        values = {key: getattr(self, key) for key in ("name", "baseline", "bridge", "ratio", "goal", "held")}
        return values if self.absent is None else {**values, "baseline": None, "bridge": None}

    @property
    def goal_text(self) -> str:
        """The goal as text; empty where there is none."""
        return f"{'≤' if self.most else '≥'} {self.goal:g}" if self.goal else ""

    @property
    def verdict(self) -> str:
        if self.absent is not None:
            return f"not measured: {self.absent}"
        if self.wrong or self.disturbed:
            return f"VOID: {self.wrong or self.disturbed}"
        return "" if not self.goal else "met" if self.held else "missed"


def at_least(name: str, unit: str, baseline: float, bridge: float, goal: float) -> Outcome:
    """Returns a comparison in which more is better: the ratio must be at least `goal`. A goal of 0 only shows both."""
    ratio = bridge / baseline
    return Outcome(name, unit, round(baseline, 3), round(bridge, 3), round(ratio, 3), goal, ratio >= goal)


def faster(name: str, unit: str, baseline: float, bridge: float, goal: float) -> Outcome:
    """Returns a comparison of times: the baseline's divided by the bridge's must be at least `goal`."""
    ratio = baseline / bridge
    return Outcome(name, unit, round(baseline, 3), round(bridge, 3), round(ratio, 3), goal, ratio >= goal)


def at_most(name: str, unit: str, baseline: float, bridge: float, goal: float) -> Outcome:
    """Returns a comparison in which less is better: the ratio must be at most `goal`. A goal of 0 only shows both."""
    ratio = bridge / baseline
    held = ratio <= goal or not goal
    return Outcome(name, unit, round(baseline, 3), round(bridge, 3), round(ratio, 3), goal, held, most=True)


def void(outcome: Outcome, wrong: str | None, disturbed: str | None = None) -> Outcome:
    """The row without its ratio, because one of its tables was not what it had to be, or others used the machine."""
    return replace(outcome, ratio=None, held=False, wrong=wrong, disturbed=disturbed)


def not_measured(name: str, unit: str, goal: float, why: str) -> Outcome:
    """A row whose baseline cannot be had on this machine."""
    return Outcome(name, unit, float("nan"), float("nan"), None, goal, False, absent=why)


def exit_code(outcomes: Sequence[Outcome]) -> int:
    """Returns 2 when a table was incorrect, 1 when a goal was missed, otherwise 0."""
    if any(outcome.wrong is not None for outcome in outcomes):
        return 2
    return 0 if all(outcome.held or outcome.absent is not None for outcome in outcomes) else 1


def number(value: float) -> str:
    """Large numbers without a fraction, small ones with two digits that tell."""
    if isnan(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(outcomes: Sequence[Outcome]) -> Table:
    """Returns the outcomes as a table for a terminal."""
    shown = Table(box=None)
    shown.add_column("bridge / baseline")
    for title in ("baseline", "bridge", "unit", "ratio", "goal"):
        shown.add_column(title, justify="right" if title != "unit" else "left")
    shown.add_column("rounds")
    shown.add_column("")
    for o in outcomes:
        ratio = "" if o.ratio is None else f"{o.ratio:.2f}"
        verdict = o.verdict if o.held else f"[red]{o.verdict}[/red]"
        shown.add_row(
            o.name, number(o.baseline), number(o.bridge), o.unit, ratio, o.goal_text, o.spread, verdict
        )
    return shown
