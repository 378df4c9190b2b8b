"""What becomes of a case, and how that is said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

__all__ = ["Kind", "Mismatch", "Outcome", "Unsupported", "summary", "too_many", "worst"]


class Kind(IntEnum):
    """Ordered from best to worst: the worst vector decides about its case."""

    PASS = 0
    UNSUPPORTED = 1
    DIVERGENCE = 2
    FAIL = 3


@dataclass(frozen=True)
class Outcome:
    """The verdict on a case or vector; `words` is the reason of anything but a pass."""

    kind: Kind
    words: str = ""

    def line(self, label: str) -> str:
        """One line for people: label, verdict, reason."""
        verdict = "FAIL" if self.kind is Kind.FAIL else self.kind.name.lower()
        return f"{verdict:<11} {label}" + (f": {self.words}" if self.words else "")


class Mismatch(Exception):
    """The first difference between what the case expects and what the bridge did."""


class Unsupported(Exception):
    """The case asks for something the bridge or this runner cannot do yet; the text names it."""


def worst(outcomes: Iterable[tuple[int, Outcome]]) -> Outcome:
    """The worst of numbered outcomes, with the reasons of all that did not pass; equal reasons are said once."""
    kind, reasons = Kind.PASS, dict[tuple[Kind, str], list[int]]()
    for number, outcome in outcomes:
        kind = max(kind, outcome.kind)
        if outcome.kind is not Kind.PASS:
            reasons.setdefault((outcome.kind, outcome.words), []).append(number)
    told = sorted(reasons.items(), key=lambda item: -item[0][0])
    return Outcome(kind, "; ".join(f"{_ranges(at)} {of.name.lower()}: {words}" for (of, words), at in told))


def _ranges(numbers: list[int]) -> str:
    """[0-2, 5] for 0, 1, 2, 5."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return f"[{', '.join(f'{a}' if a == b else f'{a}-{b}' for a, b in runs)}]"


def summary(outcomes: Iterable[Outcome]) -> str:
    """`71 passed, 0 failed, 9 diverging, 5 unsupported`."""
    of = Counter(outcome.kind for outcome in outcomes)
    return (
        f"{of[Kind.PASS]} passed, {of[Kind.FAIL]} failed, "
        f"{of[Kind.DIVERGENCE]} diverging, {of[Kind.UNSUPPORTED]} unsupported"
    )


def too_many(outcomes: Iterable[Outcome], most: int) -> str | None:
    """What to say when more than `most` cases are unsupported; None when they are not."""
    found = sum(outcome.kind is Kind.UNSUPPORTED for outcome in outcomes)
    if found <= most:
        return None
    return (
        f"{found} cases are unsupported, and tests/cases/unsupported.yaml allows {most}: support them, or say there "
        "why there are more"
    )
