"""Example verdicts with their history, for the tests of reports."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from bridge.offsets import Offsets
from bridge.quality.verdict import ExpectationTrend, History, Outcome, PastRun, Subject, Verdict
from tests.quality.pages import HOSTILE

STARTED = datetime(2024, 5, 6, 7, 8, 9, tzinfo=timezone.utc)
OFFSETS = Offsets({("orders", 0): 12_345, ("orders", 1): 7})
SUBJECT = Subject(
    "orders",
    "orders",
    "lake/orders",
    1_042,
    OFFSETS,
    None,
    "suites/orders.json",
    "run-7",
    "schedule",
    "0.1.0",
)
MET = Outcome("t1", "id values must never be null.", ("id",), True, "all 9 values pass", "no nulls", 0, 0.0)
FAILED = Outcome(
    "t2",
    "id is unique: each key occurs once.",
    ("id", "region"),
    False,
    "1 key occurs more than once (2 rows)",
    "each key once",
    2,
    22.2222,
    ({"id": 5, "region": None}, {"id": 6, "region": HOSTILE}),
    "warning",
)
RAISED = Outcome("t3", "The newest at is fresh.", (), False, "", "", reason="column 'at' is not in the table")


def verdict(*outcomes: Outcome, subject: Subject = SUBJECT) -> Verdict:
    success = all(o.success for o in outcomes)
    return Verdict("orders", success, outcomes, 1_234_567, STARTED, 3.14159, subject)


PASSED = verdict(MET)
BROKEN = verdict(MET, FAILED, RAISED)


def run(
    number: int, *, rows: int | None = 1_000, lag: int | None = 0, critical: int = 0, changes: int | None = 5
) -> PastRun:
    """The run `8 - number` hours before STARTED."""
    at = STARTED - timedelta(hours=8 - number)
    return PastRun(f"run-{number}", at, number, rows, lag, critical, 0, 0, 3, changes, changes, changes)


def at(number: int) -> datetime:
    return run(number).started


RUNS = (run(1, changes=None), run(2), run(3, lag=None), run(4, critical=1), run(5, rows=1_234_000, lag=12))
NOW = PastRun(
    "run-7", STARTED, 1_042, 1_234_567, 3, 1, 1, 0, 3, 40, 50, 60, STARTED - timedelta(minutes=90), STARTED
)
HISTORY = History(
    RUNS,
    {
        MET.identity: ExpectationTrend(tuple((at(n), n != 4) for n in range(1, 6)), at(5), None),
        FAILED.identity: ExpectationTrend(tuple((at(n), n < 3) for n in range(1, 6)), at(2), at(3)),
        RAISED.identity: ExpectationTrend(((at(4), False), (at(5), True)), at(5), None),
    },
)
