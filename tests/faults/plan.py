"""Derives a plan from a seed: the lanes, the faults, their victims and their timing."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from tests.faults.lane import Lane, draw_lanes

PLACES = {
    "ingest": ("ingest.before-merge", "ingest.after-merge", "script.before-commit", "script.after-commit"),
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
"""The failpoints that a running job of a verb passes."""

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
"""The weight of each kind of fault; they sum up to about a hundred.

kill all        the session: Python, JVM and workers, like a power cut
kill both jobs  the same, ingests and publishes at the same moment
failpoint: ...  an error in one pipeline, or the end of Python or the session, at a named place in the code
... checkpoint  the session, and run.checkpoint is deleted, or reset to its state of some rounds ago
broker          kill -9, and a restart some seconds later
pause           SIGSTOP and SIGCONT
zombie          SIGSTOP, another run takes over, SIGCONT
started twice   another run while the first one is running
"""

ON_CLUSTER = {"kill executor": 15, "kill node": 10}
"""The kinds that a cluster has in addition.

kill executor   one of the two executors of a job
kill node       a worker with all executors on it, of both jobs; another worker comes in its place
"""

USERS = {"OPTIMIZE": 7, "UPDATE": 7, "WRITE": 7, "ADD COLUMN": 5, "RESTORE": 6}
"""The weights of what users do to the tables of a lane, out of a hundred.

OPTIMIZE    rewrites files
UPDATE      rewrites rows to what they were: nothing of it may be published
WRITE       changes rows between two batches of the ingest; published, and overwritten by the next change of the key
ADD COLUMN  that the pipelines do not know
RESTORE     takes the table back to a version of a minute ago: the ingest begins there once more
"""

_ALONE = {"kill worker": "publish", "old checkpoint": "ingest"}
"""Ingest has no workers; the log of a publish is not a cache, see docs/adr/001 and 009."""


@dataclass(frozen=True)
class Blow:
    """One fault; it hits the pipelines of all lanes of an episode, or of one."""

    kind: str
    verb: str
    """The verb that it hits, unless it hits both."""
    seconds: float
    """How long the job runs before the fault."""
    length: float
    """The duration of a stop."""
    place: str
    passes: int
    """How often the failpoint is passed before it fires."""
    user: str
    """What a user does to a table meanwhile, one of USERS, or nothing."""


@dataclass(frozen=True)
class Episode:
    """A set of lanes, and their faults in order."""

    number: int
    lanes: tuple[Lane, ...]
    blows: tuple[Blow, ...]


def plan(
    seed: int,
    lanes: int,
    blows: int,
    *,
    all_of_them: bool = False,
    cluster: bool = False,
    plain: bool = False,
) -> Iterator[Episode]:
    """Yields episodes endlessly, the same for the same seed. `all_of_them`: no fault that hits a single lane, and a
    user at each, as there are few. `cluster`: also the kinds that only a cluster has. `plain`: no scripts, no jobs, and
    users who change nothing."""
    weights = {**KINDS, **(ON_CLUSTER if cluster else {})}
    if all_of_them:
        del weights["failpoint: raise"]
    users = {**USERS, "": 0 if all_of_them else 68}
    if plain:
        users = {"OPTIMIZE": 8, "UPDATE": 8, "": 84}
    draw, configurations, number = random.Random(seed), draw_lanes(seed, plain=plain), 0
    while True:
        number += 1
        chosen = tuple(islice(configurations, lanes))
        yield Episode(number, chosen, tuple(_blow(draw, number + n, weights, users) for n in range(blows)))


def _blow(draw: random.Random, number: int, weights: Mapping[str, int], users: Mapping[str, int]) -> Blow:
    (kind,) = draw.choices(list(weights), list(weights.values()))
    # Alternately: while one recovers the other is hit.
    verb = _ALONE.get(kind, ("ingest", "publish")[number % 2])
    return Blow(
        kind=kind,
        verb=verb,
        seconds=draw.uniform(0.3, 2),
        length=draw.uniform(1, 4),
        place=draw.choice(PLACES[verb]),
        passes=draw.randrange(4),
        user=draw.choices(list(users), list(users.values()))[0],
    )
