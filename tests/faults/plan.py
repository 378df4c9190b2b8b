"""What a seed says: which fault each round is, whom it hits, and when."""

from __future__ import annotations

import random
from dataclasses import dataclass

__all__ = ["KINDS", "PLACES", "Round", "plan"]

PLACES = {
    "ingest": ("ingest.before-merge", "ingest.after-merge"),
    "publish": (
        "publish.opened",
        "publish.sent",
        "publish.closed",
        "slot.opened",
        "slot.sent",
        "slot.before-commit",
        "slot.after-commit",
    ),
}
"""The failpoints that a running job of the verb passes."""

KINDS = {
    "kill all": 20,
    "kill Python": 14,
    "kill JVM": 14,
    "kill worker": 6,
    "kill both jobs": 8,
    "failpoint: kill": 14,
    "failpoint: kill all": 14,
    "lost checkpoint": 4,
    "old checkpoint": 2,
    "broker": 5,
    "pause": 3,
    "zombie": 3,
    "started twice": 3,
}
"""How often each kind is drawn, of about a hundred.

kill all        the session: Python, JVM and workers, as a power cut
kill both jobs  the same, ingest and publish at one moment
failpoint: ...  Python, or the session, at a named place in the code
... checkpoint  the session, and run.checkpoint is gone, or is as it was some rounds ago
broker          kill -9, and a start some seconds later
pause           SIGSTOP and SIGCONT
zombie          SIGSTOP, another run takes over, SIGCONT
started twice   another run while the first one is well
"""

_ALONE = {"kill worker": "publish", "old checkpoint": "ingest"}
"""Ingest has no workers; a publish log is no cache, see docs/adr/001 and 009."""


@dataclass(frozen=True)
class Round:
    number: int
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
    """What a user does to the table meanwhile: OPTIMIZE, UPDATE, or nothing."""


def plan(seed: int, rounds: int) -> list[Round]:
    """The same rounds for the same seed; more of them begin like fewer."""
    draw = random.Random(seed)
    found = []
    for number in range(1, rounds + 1):
        (kind,) = draw.choices(list(KINDS), list(KINDS.values()))
        verb = draw.choice(("ingest", "publish"))
        verb = _ALONE.get(kind, verb)
        found.append(
            Round(
                number=number,
                kind=kind,
                verb=verb,
                seconds=draw.uniform(1, 5),
                length=draw.uniform(1, 5),
                place=draw.choice(PLACES[verb]),
                passes=draw.randrange(2),
                user=draw.choices(("OPTIMIZE", "UPDATE", ""), (5, 5, 90))[0],
            )
        )
    return found
