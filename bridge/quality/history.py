"""Defines the history of a suite: earlier runs, and the trend of each expectation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from bridge.quality.verdict import Outcome


@dataclass(frozen=True)
class PastRun:
    """One run of a suite. Numbers are None where they are unknown. Times have a time zone."""

    run: str
    started: datetime
    version: int | None
    rows: int | None
    lag: int | None
    critical: int
    """Failed expectations of severity critical; the next two fields count the other severities."""
    warnings: int
    infos: int
    total: int
    inserted: int | None
    updated: int | None
    deleted: int | None
    event_time: datetime | None = None
    """The newest event time in the table."""
    arrival: datetime | None = None
    """When rows last arrived in the table."""

    @property
    def failed(self) -> int:
        return self.critical + self.warnings + self.infos

    @property
    def changes(self) -> int | None:
        """Rows that changed since the previous run."""
        if self.inserted is None or self.updated is None or self.deleted is None:
            return None
        return self.inserted + self.updated + self.deleted


@dataclass(frozen=True)
class ExpectationTrend:
    """The results of one expectation in earlier runs."""

    results: tuple[tuple[datetime, bool], ...]
    """Start and success of the newest runs that evaluated it, oldest first."""
    last_passed: datetime | None
    """None where it never passed in the stored results."""
    failing_since: datetime | None
    """The first failure after `last_passed`; None where the last run passed."""


_UNKNOWN = ExpectationTrend((), None, None)


@dataclass(frozen=True)
class History:
    """Earlier checks of the whole table, oldest first, without runs with --since and results of gates."""

    runs: tuple[PastRun, ...] = ()
    trends: Mapping[tuple[str, str], ExpectationTrend] = field(default_factory=dict)

    def trend(self, outcome: Outcome) -> ExpectationTrend:
        """Returns the trend of the expectation of `outcome`, an empty one where the expectation is new."""
        return self.trends.get(outcome.identity, _UNKNOWN)

    def regressed(self, outcome: Outcome) -> bool:
        """Whether the expectation fails now and passed in the last run that evaluated it."""
        results = self.trend(outcome).results
        return not outcome.success and bool(results) and results[-1][1]
