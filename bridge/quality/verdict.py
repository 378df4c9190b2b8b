"""What a check found, as a value: what reports, exit codes and tables of results are made from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from bridge.offsets import Offsets

__all__ = ["Cost", "Outcome", "Subject", "Verdict"]


@dataclass(frozen=True)
class Subject:
    """What was checked. Nothing here changes the outcome; it is what the report calls things by."""

    pipeline: str = ""
    topic: str = ""
    table: str = ""
    version: int | None = None
    """The Delta version that was read."""
    offsets: Offsets | None = None
    """Next offsets up to which the table holds the topic."""
    since: int | None = None
    """Only rows that changed after this version were judged, where `Outcome.judged` says `changes`."""
    suite_file: str = ""
    run: str = ""
    """Names this run of the suite."""
    trigger: str = "check"
    """Who asked: `check` (a person or a script), `schedule`, `gate` (an ingest or publish)."""
    bridge: str = ""
    """The bridge's own version."""


@dataclass(frozen=True)
class Cost:
    """What judging has read of Delta tables, as Spark counted it. `files` and `bytes` add up over all scans; a file
    counts with its whole size, though only the columns that are asked for are read from it."""

    scans: int
    files: int
    bytes: int
    seconds: float
    """How long the queries took that scanned."""


@dataclass(frozen=True)
class Outcome:
    """One expectation and how the table did."""

    type: str
    title: str
    """One sentence that says what is expected."""
    columns: tuple[str, ...]
    success: bool
    observed: str
    expected: str
    unexpected_count: int | None = None
    """Values (for key uniqueness: rows) that are not as expected; None for expectations about aggregates."""
    unexpected_percent: float | None = None
    """The same in percent of the values that were looked at: 0 to 100."""
    example_keys: tuple[Mapping[str, Any], ...] = ()
    """Key columns of at most five of the rows concerned, JSON-ready. No other column is ever here."""
    severity: str = "critical"
    reason: str | None = None
    """Why the expectation could not be evaluated; then `success` is False."""
    evaluated_on: str = "table"
    """`table`: all of its rows. `changes`: those that changed after `Subject.since`."""

    @property
    def identity(self) -> tuple[str, str]:
        """What makes it the same expectation in another run: its type and its sentence, which holds its arguments."""
        return self.type, self.title


@dataclass(frozen=True)
class Verdict:
    """The outcome of a suite on one state of a table. `success` means: every expectation was met."""

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
    """How many rows had changed after `Subject.since`; None where the whole table was judged."""
    event_time: datetime | None = None
    """The newest value of the WATERMARK column; None where there is none."""
    cost: Cost | None = None
    """None where it is not known."""

    @property
    def state(self) -> str:
        """`passed`, `warned` (nothing critical failed) or `failed`."""
        worst = {o.severity for o in self.failed}
        return "failed" if "critical" in worst else "warned" if worst else "passed"

    def fatal(self, fail_on: str) -> tuple[Outcome, ...]:
        """The failed expectations that matter: under `error` the critical ones, under `warn` warnings, too. Those of
        severity `info` never do."""
        severities = ("critical",) if fail_on == "error" else ("critical", "warning")
        return tuple(o for o in self.failed if o.severity in severities)

    @property
    def failed(self) -> tuple[Outcome, ...]:
        """The expectations that were not met, those that could not be evaluated included."""
        return tuple(o for o in self.expectations if not o.success)

    def as_dict(self) -> dict[str, Any]:
        """All fields, JSON-ready; offsets as {topic: {partition: offset}}."""
        made = asdict(self)
        made["started_at"] = self.started_at.isoformat()
        made["event_time"] = self.event_time and self.event_time.isoformat()
        for outcome in made["expectations"]:
            outcome["judged"] = outcome.pop("evaluated_on")  # the name that readers of `--json` know
        offsets = self.subject.offsets
        made["subject"]["offsets"] = None if offsets is None else json.loads(offsets.to_json())
        return made
