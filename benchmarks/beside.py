"""Ingests of a whole topic beside the tuned recipe and Flink → Paimon, in turn, on the same topics and broker."""

from __future__ import annotations

import os

from benchmarks.goals import Outcome, at_most, faster
from benchmarks.ground import Ground
from benchmarks.results import PAIMON, Entry
from benchmarks.rounds import Rounds, compared, in_turn
from benchmarks.topics import Load

CHECKPOINT = "10 s"
"""Flink's checkpoints in an ingest. Shorter ones cost it more than it waits for the last one."""
_BESIDE = f"beside {PAIMON}"
_TRIED = 2
"""Batches of a trial."""
_OWN = f"spark.sql.shuffle.partitions={os.cpu_count() or 1}"


def tuned(ground: Ground, what: str, topic: str, *, batch: int | None = None, rows: int = 0) -> str:
    """The faster of two settings of the recipe, by a job of each: as many shuffle partitions as cores, or Spark's
    200 (the text is empty then)."""
    tried = {conf: ground.recipe(what, topic, batch=batch, rows=rows, conf=conf) for conf in (_OWN, "")}
    return min(tried, key=lambda conf: tried[conf].seconds)


def batches(ground: Ground, load: Load, batch: int, rounds: int) -> tuple[list[Outcome], Rounds, Rounds, str]:
    """The topic in batches of one size: whole processes and warm batches; also the rounds of the recipe and of the
    bridge, and the recipe's setting."""
    topic = ground.topic("changes", load)
    trial = ground.topic("trial", load.first(_TRIED * batch))
    conf = tuned(ground, f"trial of the recipe: {_TRIED} batches of {batch:,} records", trial, batch=batch)
    what = f"{len(load):,} records, {batch:,} a batch"
    recipe, bridge, flink = _in_turn(ground, what, topic, rounds, conf, batch)
    tail = "beside the tuned recipe"
    outcomes = [
        compared(f"{what}, whole process, {tail}", "records/s", _rate, 4.0, recipe, bridge),
        compared(f"{what}, whole process, {_BESIDE}", "records/s", _rate, 1.0, flink, bridge),
        compared(
            f"{what}, warm batches, {tail}", "s a batch", lambda e: e.warm, 5.0, recipe, bridge, by=faster
        ),
        *_cpu(what, recipe, flink, bridge),
    ]
    return outcomes, recipe, bridge, conf


def backlog(ground: Ground, load: Load, rounds: int) -> tuple[list[Outcome], Rounds, Rounds]:
    """The whole topic at once on every side. The recipe's setting is tried on a fifth of it."""
    topic = ground.topic("backlog", load)
    trial = ground.topic("backlog-trial", load.first(len(load) // 5))
    conf = tuned(ground, f"trial of the recipe: {len(load) // 5:,} records in one batch", trial)
    what = f"backlog of {len(load):,} records"
    recipe, bridge, flink = _in_turn(ground, what, topic, rounds, conf)
    outcomes = [
        compared(f"{what}, {_BESIDE}", "records/s", _rate, 1.5, flink, bridge),
        compared(f"{what}, beside the tuned recipe in one batch", "records/s", _rate, 1.7, recipe, bridge),
        compared(f"memory: {what}, {_BESIDE}", "MB", lambda e: e.peak_mb, 1.0, flink, bridge, by=at_most),
        *_cpu(what, recipe, flink, bridge),
    ]
    return outcomes, recipe, bridge


def _in_turn(
    ground: Ground, what: str, topic: str, rounds: int, conf: str, batch: int | None = None
) -> tuple[Rounds, Rounds, Rounds | None]:
    """The tuned recipe, the bridge, and Flink where it is there."""
    recipe, bridge, flink = in_turn(
        rounds,
        [
            lambda: ground.recipe(what, topic, batch=batch, conf=conf),
            lambda: ground.bridge(what, topic, batch=batch),
            lambda: ground.paimon(what, topic, checkpoint=CHECKPOINT),
        ],
    )
    assert recipe is not None and bridge is not None
    return recipe, bridge, flink


def _cpu(what: str, recipe: Rounds, flink: Rounds | None, bridge: Rounds) -> list[Outcome]:
    unit = "CPU s per million records"
    peers = (("the tuned recipe", recipe), (PAIMON, flink))
    return [
        compared(f"CPU: {what}, beside {name}", unit, lambda e: e.cpu, 0.0, peer, bridge, by=faster)
        for name, peer in peers
    ]


def _rate(entry: Entry) -> float:
    return entry.rate
