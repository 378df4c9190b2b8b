"""A lease in a table (`run.state`): of two runs that start at once one works; what a second run is told."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge import config
from bridge.backend import backend_of
from bridge.definition import Definition
from bridge.delta.state_choice import state_of
from bridge.errors import BridgeError, ConcurrentRunError
from bridge.lease_owner import LeaseOwner
from bridge.pipelines.runtime.lease import LeaseTiming, acquire_lease
from tests.pipelines.leases import FILE

FAST = LeaseTiming(table_heartbeat_seconds=0.3, table_poll_seconds=0.1)


@pytest.fixture
def definition(lake: Path) -> Definition:
    (lake / "p.yaml").write_text(FILE.replace("checkpoint: checkpoint", "state: ./state"))
    return config.load(lake / "p.yaml")


@pytest.fixture(autouse=True)
def two_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runs of these tests are threads, and see each other as processes that are at work."""
    monkeypatch.setattr(LeaseOwner, "is_running", lambda owner: not owner.released)


def test_of_two_runs_at_once_one_works(spark: SparkSession, definition: Definition) -> None:
    race(spark, definition, rounds=1)


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_200_races_of_two_runs(spark: SparkSession, definition: Definition) -> None:
    race(spark, definition, rounds=200)


def race(spark: SparkSession, definition: Definition, *, rounds: int) -> None:
    sessions = [backend_of(spark).child() for _ in range(2)]
    together = threading.Barrier(2)

    def run(session: SparkSession, refused: threading.Event) -> str:
        together.wait(60)
        try:
            with acquire_lease(session, definition, "ingest", timing=FAST) as lease:
                assert refused.wait(120) and lease.warning is None
                lease.check()
            return "worked"
        except ConcurrentRunError as error:
            refused.set()
            return str(error)

    with ThreadPoolExecutor(2) as pool:
        for _ in range(rounds):
            refused = threading.Event()
            ended = sorted(
                run.result(180) for run in [pool.submit(run, session, refused) for session in sessions]
            )
            assert ended[1] == "worked"
            assert ended[0].startswith(
                f"run.state: {definition.run.state} (orders/ingest.lease.json): another run is"
            )
    owner = LeaseOwner.from_json(state_of(spark, definition).read("ingest.lease.json"))
    assert owner is not None and owner.released


def test_a_table_that_cannot_be_read_is_an_error_at_once(spark: SparkSession, definition: Definition) -> None:
    assert definition.run.state is not None and definition.run.state.path is not None
    spark.range(1).write.format("delta").save(definition.run.state.path)
    slow = replace(FAST, table_heartbeat_seconds=600.0)
    with (
        pytest.raises(BridgeError, match=r"^run\.state: \S+ is no table of states"),
        acquire_lease(spark, definition, "ingest", timing=slow),
    ):
        pass
