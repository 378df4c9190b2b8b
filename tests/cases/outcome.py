"""Defines the outcomes of cases and their text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum


class Kind(IntEnum):
    """Ordered from best to worst: the worst vector determines the outcome of its case."""

    PASS = 0
    UNSUPPORTED = 1
    DIVERGENCE = 2
    FAIL = 3


@dataclass(frozen=True)
class Outcome:
    """The outcome of a case or vector; `words` is the reason, unless it passed."""

    kind: Kind
    words: str = ""

    def line(self, label: str) -> str:
        """Returns the outcome as a line: kind, label, reason."""
        verdict = "FAIL" if self.kind is Kind.FAIL else self.kind.name.lower()
        return f"{verdict:<11} {label}" + (f": {self.words}" if self.words else "")


class Mismatch(Exception):
    """The first difference between the expectation of a case and the result."""


class Unsupported(Exception):
    """The case needs something that the bridge or this runner does not support; the message names it."""


def worst(outcomes: Iterable[tuple[int, Outcome]]) -> Outcome:
    """Returns the worst of numbered outcomes, with the distinct reasons of all that did not pass."""
    kind, reasons = Kind.PASS, dict[tuple[Kind, str], list[int]]()
    for number, outcome in outcomes:
        kind = max(kind, outcome.kind)
        if outcome.kind is not Kind.PASS:
            reasons.setdefault((outcome.kind, outcome.words), []).append(number)
    told = sorted(reasons.items(), key=lambda item: -item[0][0])
    return Outcome(kind, "; ".join(f"{_ranges(at)} {of.name.lower()}: {words}" for (of, words), at in told))


def _ranges(numbers: list[int]) -> str:
    """Formats 0, 1, 2, 5 as [0-2, 5]."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return f"[{', '.join(f'{a}' if a == b else f'{a}-{b}' for a, b in runs)}]"


def summary(outcomes: Iterable[Outcome]) -> str:
    """Returns the counts: `71 passed, 0 failed, 9 diverging, 5 unsupported`."""
    of = Counter(outcome.kind for outcome in outcomes)
    return (
        f"{of[Kind.PASS]} passed, {of[Kind.FAIL]} failed, "
        f"{of[Kind.DIVERGENCE]} diverging, {of[Kind.UNSUPPORTED]} unsupported"
    )


def too_many(outcomes: Iterable[Outcome], most: int) -> str | None:
    """Returns an error message when more than `most` cases are unsupported, else None."""
    found = sum(outcome.kind is Kind.UNSUPPORTED for outcome in outcomes)
    if found <= most:
        return None
    return (
        f"{found} cases are unsupported, and tests/cases/unsupported.yaml allows {most}: support them, or say there "
        "why there are more"
    )
