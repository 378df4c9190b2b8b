"""How long an ingest takes that finds nothing to do, beside a session of Spark that does nothing."""

from __future__ import annotations

import itertools
import sys

from benchmarks.goals import Outcome, faster
from benchmarks.ground import Ground
from benchmarks.jobs import run
from benchmarks.results import Entry
from benchmarks.rounds import compared, in_turn
from benchmarks.scale import SEED
from benchmarks.topics import Load

_RECORDS = 1000
_GOAL = 0.67
_BARE = "a bare session of Spark"
_BARE_SESSION = "from bridge.session import build_session; build_session('bare').stop()"
"""The same jars, Java options and settings, through the same function."""


def outcomes(ground: Ground, rounds: int) -> list[Outcome]:
    """Whole processes in turn. The table has all records of the topic from a job that is not measured, and is compared
    with them after the last one."""
    what = "start: an ingest that finds nothing to do"
    topic = ground.topic("start", Load.random(_RECORDS, _RECORDS, SEED))
    place = ground.place()
    table = place / "table"
    ingest = ground.ingest(place, topic, table)
    first = run(ingest, folder=place / "first", table=table, beside=ground.serving)
    ground.say(f"{what}: a first one of {_RECORDS:,} records took {first.seconds:.0f} s")
    numbers = itertools.count()

    def played(system: str, command: list[str]) -> Entry:
        folder = place / f"run-{next(numbers)}"
        ran = run(command, folder=folder, table=table, spark=False, beside=ground.serving)
        wrong = "it has committed something" if ran.batches else ground.wrong(table, topic)
        return ground.added(Entry(what, system, 0, ran, wrong, ground.tolerance))

    bare, bridge = in_turn(
        rounds,
        [
            lambda: played(_BARE, [sys.executable, "-c", _BARE_SESSION]),
            lambda: played("bridge", ingest),
        ],
    )
    assert bridge is not None
    return [compared(f"{what} / {_BARE}", "s", lambda e: e.seconds, _GOAL, bare, bridge, by=faster)]
