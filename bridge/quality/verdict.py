"""Defines the result of a check, and the history of a suite: earlier runs, and the trend of each expectation.

Reports, exit codes and stored results derive from the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from bridge.offsets import Offsets


@dataclass(frozen=True)
class Subject:
    """What was checked, for the report. It does not influence the outcome."""

    pipeline: str = ""
    topic: str = ""
    table: str = ""
    version: int | None = None
    """The Delta version that was read."""
    offsets: Offsets | None = None
    """The next offset of each partition: the table contains the topic up to these."""
    since: int | None = None
    """The version after which rows changed that outcomes with `evaluated_on` = `changes` cover; None for all rows."""
    suite_file: str = ""
    run: str = ""
    """The id of this run."""
    trigger: str = "check"
    """What triggered the run: `check` (a person or script), `schedule`, or `gate` (an ingest or publish)."""
    bridge: str = ""
    """The version of the bridge."""


@dataclass(frozen=True)
class Cost:
    """What the check read from Delta tables, by Spark's metrics. `files` and `bytes` are sums over all scans; a file
    counts with its whole size, although only the required columns are read."""

    scans: int
    files: int
    bytes: int
    seconds: float
    """The duration of the queries with scans."""


@dataclass(frozen=True)
class Outcome:
    """The result of one expectation."""

    type: str
    title: str
    """The expectation as one sentence."""
    columns: tuple[str, ...]
    success: bool
    observed: str
    expected: str
    unexpected_count: int | None = None
    """Unexpected values (for key uniqueness: rows); None for expectations about aggregates."""
    unexpected_percent: float | None = None
    """Unexpected values in percent of the evaluated values: 0 to 100."""
    example_keys: tuple[Mapping[str, Any], ...] = ()
    """Key columns, and no others, of at most five unexpected rows, ready for JSON."""
    severity: str = "critical"
    reason: str | None = None
    """Why the expectation could not be evaluated; then `success` is False."""
    evaluated_on: str = "table"
    """`table`: all of its rows. `changes`: those that changed after `Subject.since`."""

    @property
    def identity(self) -> tuple[str, str]:
        """The identity of the expectation across runs: its type, and its sentence, which contains its arguments."""
        return self.type, self.title


@dataclass(frozen=True)
class Verdict:
    """The result of a suite on one table version. `success` means that every expectation was met."""

    suite: str
    success: bool
    expectations: tuple[Outcome, ...]
    """In the order of the suite."""
    row_count: int
    started_at: datetime
    """UTC, with its zone."""
    seconds: float
    subject: Subject = Subject()
    changed_rows: int | None = None
    """The number of rows that changed after `Subject.since`; None where the whole table was checked."""
    event_time: datetime | None = None
    """The newest value of the WATERMARK column; None where there is none."""
    cost: Cost | None = None
    """None where it is unknown."""

    @property
    def state(self) -> str:
        """`passed`, `warned` (nothing critical failed) or `failed`."""
        worst = {o.severity for o in self.failed}
        return "failed" if "critical" in worst else "warned" if worst else "passed"

    def fatal(self, fail_on: str) -> tuple[Outcome, ...]:
        """Returns the failures that fail the check: the critical ones, and with `fail_on` = `warn` also those
        of severity warning. Those of severity info never do."""
        severities = ("critical",) if fail_on == "error" else ("critical", "warning")
        return tuple(o for o in self.failed if o.severity in severities)

    @property
    def failed(self) -> tuple[Outcome, ...]:
        """The expectations that were not met, including those that could not be evaluated."""
        return tuple(o for o in self.expectations if not o.success)

    def as_dict(self) -> dict[str, Any]:
        """Returns all fields, ready for JSON; offsets as {topic: {partition: offset}}."""
        fields = asdict(self)
        fields["started_at"] = self.started_at.isoformat()
        fields["event_time"] = self.event_time and self.event_time.isoformat()
        for outcome in fields["expectations"]:
            outcome["judged"] = outcome.pop("evaluated_on")  # the name that readers of `--json` know
        offsets = self.subject.offsets
        fields["subject"]["offsets"] = None if offsets is None else offsets.tree()
        return fields


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
