"""How long a batch takes from a topic of many partitions, beside one of the same size from a few."""

from __future__ import annotations

from benchmarks.goals import Outcome, at_most
from benchmarks.ground import Ground
from benchmarks.results import Entry
from benchmarks.rounds import compared, in_turn
from benchmarks.scale import SEED
from benchmarks.topics import PARTITIONS, Load

_BATCHES = 6


def outcomes(ground: Ground, batch: int, partitions: int, rounds: int) -> list[Outcome]:
    """Warm batches of the same records, planned over `partitions` partitions and over a few."""
    load = Load.random(_BATCHES * batch, batch, SEED)
    topics = {
        count: ground.topic(f"width-{count}", load, partitions=count) for count in (PARTITIONS, partitions)
    }

    def played(count: int) -> Entry:
        return ground.bridge(f"{batch:,} records a batch, {count:,} partitions", topics[count], batch=batch)

    few, many = in_turn(rounds, [lambda: played(PARTITIONS), lambda: played(partitions)])
    assert many is not None
    name = f"width: a batch of {batch:,} records, a topic of {partitions:,} partitions / of {PARTITIONS}"
    return [compared(name, "s a batch", lambda e: e.warm, 0.0, few, many, by=at_most)]
