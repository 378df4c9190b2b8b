"""Each kind of kill for each delivery, on a few lanes at once.

Slow: `make faults-short`, which CI runs too, plays more lanes; the default run kills runs in test_short.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.embedded.broker import Broker
from tests.faults.episode_checks import check_appends, check_lane, find_leaks
from tests.faults.ground import World, ground
from tests.faults.lane import APPENDS, DELIVERIES, Lane
from tests.faults.plan import Blow
from tests.faults.rounds import PATIENCE, Player
from tests.faults.zygote import Zygote

LANES = tuple(
    Lane(f"kills{n}", engine, delivery, key, format, extras)
    for n, (engine, delivery, key, format, extras) in enumerate(
        (
            ("driver (copies)", "at-least-once", "STRING", "json", ("quarantine",)),
            ("driver (copies)", "exactly-once by key", "DECIMAL(38,0)", "debezium-json", ()),
            ("spark", "exactly-once by file", "BIGINT", "json", ("deletion vectors", APPENDS)),
        )
    )
)
BLOWS = (
    ("kill Python", "ingest"),
    ("kill JVM", "publish"),
    ("kill all", "publish"),
    ("broker", "ingest"),
    ("zombie", "publish"),
)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_each_kind_of_kill_for_each_delivery(spark: SparkSession, tmp_path: Path) -> None:
    """A process, its JVM, the whole group, the broker, and a process that is stopped, taken over, and resumed."""
    assert {lane.delivery for lane in LANES} == set(DELIVERIES)
    with Zygote() as zygote, Broker(tmp_path / "broker") as broker:
        world = World(tmp_path, broker, "", spark, zygote)
        with ground(world, tmp_path / "episode", LANES, seed=7) as here:
            here.begin(PATIENCE)
            player = Player(here, print)
            for kind, verb in BLOWS:
                player.play(Blow(kind, verb, seconds=0.3, length=2, place="shard.sent", passes=0, user=""))
            player.finish()
            here.drain(PATIENCE)
            for job in here.jobs.values():
                job.stop()
            played = {hit for job in here.jobs.values() for hit, count in job.rounds.items() if count}
            verdicts = {lane.name: check_lane(here, lane) for lane in LANES}
            appended, history = check_appends(here, LANES[2])
            left: list[str] = []
            find_leaks(here, left.append)
    assert appended.clean and appended.records_out and history.by_consumers == appended.commits, appended
    assert {kind for name, kind in played if name == LANES[2].pipeline("rows")} >= {"kill Python", "broker"}
    for lane in LANES:
        assert verdicts[lane.name].clean and verdicts[lane.name].records_out, (lane, verdicts[lane.name])
        assert {kind for name, kind in played if name == lane.name} == {kind for kind, _ in BLOWS}
    assert left == []
