"""Compares the ratios of a run with their goals: met or missed, void where a table was incorrect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table

__all__ = ["Outcome", "at_least", "at_most", "exit_code", "table", "void"]


@dataclass(frozen=True)
class Outcome:
    """One comparison. `ratio` is the bridge's number divided by the baseline's; None when the row is void."""

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
    """Why a table was incorrect; the row is void then."""

    def json(self) -> dict[str, object]:
        """{name, baseline, bridge, ratio, goal, held}; a void row has no ratio and does not meet its goal."""
        return {key: getattr(self, key) for key in ("name", "baseline", "bridge", "ratio", "goal", "held")}

    @property
    def goal_text(self) -> str:
        """The goal as text; empty where there is none."""
        return f"{'≤' if self.most else '≥'} {self.goal:g}" if self.goal else ""

    @property
    def verdict(self) -> str:
        if self.wrong is not None:
            return f"VOID: {self.wrong}"
        return "" if not self.goal else "met" if self.held else "missed"


def at_least(name: str, unit: str, baseline: float, bridge: float, goal: float) -> Outcome:
    """Returns a comparison in which more is better: the ratio must be at least `goal`. A goal of 0 only shows both."""
    ratio = bridge / baseline
    return Outcome(name, unit, round(baseline, 3), round(bridge, 3), round(ratio, 3), goal, ratio >= goal)


def at_most(name: str, unit: str, baseline: float, bridge: float, goal: float) -> Outcome:
    """Returns a comparison in which less is better: the ratio must be at most `goal`."""
    ratio = bridge / baseline
    return Outcome(
        name, unit, round(baseline, 3), round(bridge, 3), round(ratio, 3), goal, ratio <= goal, most=True
    )


def void(outcome: Outcome, wrong: str) -> Outcome:
    """Returns the row without its ratio, because one of its tables was incorrect."""
    return Outcome(
        outcome.name,
        outcome.unit,
        outcome.baseline,
        outcome.bridge,
        None,
        outcome.goal,
        False,
        outcome.most,
        wrong,
    )


def exit_code(outcomes: Sequence[Outcome]) -> int:
    """Returns 2 when a table was incorrect, 1 when a goal was missed, otherwise 0."""
    if any(outcome.wrong is not None for outcome in outcomes):
        return 2
    return 0 if all(outcome.held for outcome in outcomes) else 1


def number(value: float) -> str:
    """Formats large numbers without a fraction, small ones with three significant digits."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(outcomes: Sequence[Outcome]) -> Table:
    """Returns the outcomes as a table for a terminal."""
    shown = Table(box=None)
    shown.add_column("bridge / baseline")
    for title in ("baseline", "bridge", "unit", "ratio", "goal"):
        shown.add_column(title, justify="right" if title != "unit" else "left")
    shown.add_column("")
    for o in outcomes:
        ratio = "" if o.ratio is None else f"{o.ratio:.2f}"
        verdict = o.verdict if o.held else f"[red]{o.verdict}[/red]"
        shown.add_row(o.name, number(o.baseline), number(o.bridge), o.unit, ratio, o.goal_text, verdict)
    return shown
