"""Rounds of faults drawn by a seed, one ledger at the end. ROUNDS and SEED in the environment choose others."""

from __future__ import annotations

import os
import random

import pytest
from pyspark.sql import SparkSession

from bridge.embedded.broker import Broker
from bridge.pipelines.publish.run import publish
from tests.ledger import Ledger
from tests.pipelines.processes import Arm, Prepare

ROUNDS = int(os.environ.get("ROUNDS", "6"))
SEED = int(os.environ.get("SEED", "0")) or random.SystemRandom().randrange(1, 2**31)
FAULTS = [
    ("shard.before-commit", "kill"),
    ("shard.after-commit", "kill"),
    ("shard.before-commit", "raise"),
    ("shard.after-commit", "raise"),
    ("publish.opened", "raise"),
    ("publish.sent", "raise"),
]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(120 + 60 * ROUNDS),
    pytest.mark.usefixtures("small_arrow_batches"),
]


def change(ledger: Ledger, draw: random.Random, number: int) -> str:
    """One commit of any kind to the table."""
    kind = draw.choice(("insert", "update", "update", "delete", "move"))
    start = draw.randrange(0, 160)
    ids = range(start, start + draw.randrange(1, 60))
    if kind == "insert":  # ids that no other commit gives
        ledger.insert(range(10_000 * number, 10_000 * number + len(ids)), f"i{number}")
    elif kind == "update":
        ledger.update(ids, f"u{number}")
    elif kind == "delete":
        ledger.delete(ids)
    else:
        ledger.move(ids, 1_000_000 * number)
    return f"{kind} {ids.start}-{ids.stop}"


def test_rounds_of_faults(prepare: Prepare, spark: SparkSession, broker: Broker, arm: Arm) -> None:
    print(f"SEED={SEED} ROUNDS={ROUNDS}")
    draw = random.Random(SEED)
    world, ledger = prepare()
    ledger.insert(range(200), "a")
    commits, fired = 0, 0
    for _ in range(ROUNDS):
        shards = draw.choice((1, 2, 3, 5, 8))
        world.options = {**world.options, "sink.parallelism": str(shards)}
        place, action = draw.choice(FAULTS)
        hit = arm(place, f"{action} after {draw.randrange(4)}")
        try:
            publish(spark, world.definition())
            ended = "well"
        except Exception:
            if not hit.exists():
                raise
            ended = "by the fault"
        fired += hit.exists()
        (hit if hit.exists() else hit.with_suffix("")).unlink()
        done = []
        for _ in range(draw.randrange(3)):
            commits += 1
            done.append(change(ledger, draw, commits))
        print(f"{shards} shards, {place} {action}: ended {ended}; then {', '.join(done) or 'nothing'}")
    publish(spark, world.definition())
    ledger.check(broker.bootstrap, world.topic)
    assert fired, "no fault fired in any round: nothing was proven"
