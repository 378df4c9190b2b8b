"""What earlier runs of a suite found, as values: trends, and what has become worse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from bridge.quality.verdict import Outcome

__all__ = ["ExpectationTrend", "History", "PastRun"]


@dataclass(frozen=True)
class PastRun:
    """One run. Numbers are None where they were not known. Times have their zone."""

    run: str
    started: datetime
    version: int | None
    rows: int | None
    lag: int | None
    critical: int
    """Expectations of that severity that failed; the next two are the other severities."""
    warnings: int
    infos: int
    total: int
    inserted: int | None
    updated: int | None
    deleted: int | None
    event_time: datetime | None = None
    """The newest one in the table."""
    arrival: datetime | None = None
    """When rows last came to the table."""

    @property
    def failed(self) -> int:
        return self.critical + self.warnings + self.infos

    @property
    def changes(self) -> int | None:
        """All rows that changed since the run before."""
        if self.inserted is None or self.updated is None or self.deleted is None:
            return None
        return self.inserted + self.updated + self.deleted


@dataclass(frozen=True)
class ExpectationTrend:
    """How one expectation did in earlier runs."""

    results: tuple[tuple[datetime, bool], ...]
    """The newest runs it was part of, oldest first."""
    last_passed: datetime | None
    """None: never, as far as results are kept."""
    failing_since: datetime | None
    """The first failure after `last_passed`; None where the last run passed."""


_UNKNOWN = ExpectationTrend((), None, None)


@dataclass(frozen=True)
class History:
    """Runs before this one, oldest first, of the whole table; those by --since and by gates are no part of it."""

    runs: tuple[PastRun, ...] = ()
    trends: Mapping[tuple[str, str], ExpectationTrend] = field(default_factory=dict)

    def trend(self, outcome: Outcome) -> ExpectationTrend:
        """Of the expectation of that name; an empty one where it is new."""
        return self.trends.get(outcome.identity, _UNKNOWN)

    def regressed(self, outcome: Outcome) -> bool:
        """True when it fails now and passed in the last run that it was part of."""
        results = self.trend(outcome).results
        return not outcome.success and bool(results) and results[-1][1]
