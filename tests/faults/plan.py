"""What a seed says: which lanes there are, which faults hit them, whom, and when."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from tests.faults.lane import Lane, drawn

__all__ = ["KINDS", "PLACES", "Blow", "Episode", "plan"]

PLACES = {
    "ingest": ("ingest.before-merge", "ingest.after-merge"),
    "publish": (
        "publish.opened",
        "publish.sent",
        "publish.closed",
        "shard.opened",
        "shard.sent",
        "shard.before-commit",
        "shard.after-commit",
    ),
}
"""The failpoints that a running job of the verb passes."""

KINDS = {
    "kill all": 18,
    "kill Python": 12,
    "kill JVM": 12,
    "kill worker": 6,
    "kill both jobs": 8,
    "failpoint: raise": 20,
    "failpoint: kill": 10,
    "failpoint: kill all": 10,
    "lost checkpoint": 4,
    "old checkpoint": 2,
    "broker": 5,
    "pause": 3,
    "zombie": 4,
    "started twice": 3,
}
"""How often each kind is drawn, of about a hundred.

kill all        the session: Python, JVM and workers, as a power cut
kill both jobs  the same, ingests and publishes at one moment
failpoint: ...  an error in one pipeline, an end of Python, or of the session, at a named place in the code
... checkpoint  the session, and run.checkpoint is gone, or is as it was some rounds ago
broker          kill -9, and a start some seconds later
pause           SIGSTOP and SIGCONT
zombie          SIGSTOP, another run takes over, SIGCONT
started twice   another run while the first one is well
"""

_ALONE = {"kill worker": "publish", "old checkpoint": "ingest"}
"""Ingest has no workers; a publish's log is no cache, see docs/adr/001 and 009."""


@dataclass(frozen=True)
class Blow:
    """One fault; it hits the pipelines of all lanes of an episode, or of one."""

    kind: str
    verb: str
    """Whom it hits, if not both."""
    seconds: float
    """How long the job is left in peace before."""
    length: float
    """How long what is stopped is stopped."""
    place: str
    passes: int
    """How often the failpoint is passed before it fires."""
    user: str
    """What a user does to a table meanwhile: OPTIMIZE, UPDATE, or nothing."""


@dataclass(frozen=True)
class Episode:
    """Some lanes, and what is done to them, in this order."""

    number: int
    lanes: tuple[Lane, ...]
    blows: tuple[Blow, ...]


def plan(seed: int, lanes: int, blows: int, *, all_of_them: bool = False) -> Iterator[Episode]:
    """Episodes without end, the same for the same seed. `all_of_them`: no fault that hits a single lane."""
    draw, configurations, number = random.Random(seed), drawn(seed), 0
    while True:
        number += 1
        chosen = tuple(islice(configurations, lanes))
        yield Episode(number, chosen, tuple(_blow(draw, n, all_of_them) for n in range(blows)))


def _blow(draw: random.Random, number: int, all_of_them: bool) -> Blow:
    kinds = {
        kind: weight for kind, weight in KINDS.items() if not (all_of_them and kind == "failpoint: raise")
    }
    (kind,) = draw.choices(list(kinds), list(kinds.values()))
    # In turn: while the one comes back the other is hit.
    verb = _ALONE.get(kind, ("ingest", "publish")[number % 2])
    return Blow(
        kind=kind,
        verb=verb,
        seconds=draw.uniform(0.3, 2),
        length=draw.uniform(1, 4),
        place=draw.choice(PLACES[verb]),
        passes=draw.randrange(4),
        user=draw.choices(("OPTIMIZE", "UPDATE", ""), (8, 8, 84))[0],
    )
