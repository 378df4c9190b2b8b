"""Another writer restores the table around a replay: no quarantined record is lost, and none is applied to rows that
the replay does not know."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from bridge.delta import quarantine
from bridge.delta.rows_taken_back import RowsTakenBack
from bridge.pipelines.ingest.replay import Replay, replay
from bridge.pipelines.ingest.run import ingest
from tests.pipelines.world import ONE, ROWS, Make, World, key, upsert, value

KEYED: dict[str, Any] = {}
APPENDED: dict[str, Any] = {
    "columns": "id BIGINT, name STRING, amount DECIMAL(10, 2)",
    "options": ROWS,
}


@pytest.fixture
def make(make: Make) -> Make:
    def made(**more: Any) -> World:
        """Two batches; a record of the first one is in the quarantine, and corrected there."""
        world = make(partitions=1, cleanup="delete", sections="ingest: {bad-records: quarantine}\n", **more)
        for batch in ([upsert(1, "a"), (key(2), "{")], [upsert(3, "c")]):
            world.send(batch)
            world.batches()
        world.spark.sql(
            f"UPDATE delta.`{world.folder}/table_quarantine` SET value = CAST('{value(2, 'b')}' AS BINARY) "
            "WHERE offset = 1"
        )
        return world

    return made


def restore(world: World, version: int) -> None:
    DeltaTable(str(world.folder / "table")).restore(version, protocol_downgrade_allowed=True)


def quarantined(world: World) -> int:
    return world.spark.read.format("delta").load(f"{world.folder}/table_quarantine").count()


@pytest.mark.slow
def test_a_replay_that_was_taken_back_is_done_again(make: Make, arm: Callable[[str, str], Path]) -> None:
    """It died after its commit, and before it had removed its records from the quarantine."""
    world = make()
    before = world.history()[0]["version"]
    arm("replay.committed", "raise")
    with pytest.raises(RuntimeError, match=r"failpoint replay\.committed"):
        replay(world.spark, world.definition())
    assert world.rows() == [(1, "a", ONE), (2, "b", ONE), (3, "c", ONE)]
    restore(world, before)
    assert world.rows() == [(1, "a", ONE), (3, "c", ONE)]
    assert replay(world.spark, world.definition()).replayed == 1
    assert (world.rows(), quarantined(world)) == ([(1, "a", ONE), (2, "b", ONE), (3, "c", ONE)], 0)


@pytest.mark.slow
@pytest.mark.parametrize("more", [KEYED, APPENDED], ids=["keyed", "appended"])
def test_nothing_is_replayed_into_restored_rows(
    make: Make, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any]
) -> None:
    world, mark = make(**more), quarantine.mark_replay
    first = world.history()[1]["version"]

    def marked(*given: Any) -> None:
        mark(*given)
        restore(world, first)

    with monkeypatch.context() as patched:
        patched.setattr(quarantine, "mark_replay", marked)
        with pytest.raises(
            RowsTakenBack,
            match=r"\(RESTORE\) took rows back or .* while this run was at work; start it again: it continues",
        ):
            replay(world.spark, world.definition())
    assert (world.rows(), quarantined(world)) == ([(1, "a", ONE)], 1)
    done = replay(world.spark, world.definition())
    assert (done.replayed, quarantined(world)) == (1, 0)
    assert world.rows() == [(1, "a", ONE), (2, "b", ONE)]
    ingest(world.spark, world.definition())
    assert world.rows() == [(1, "a", ONE), (2, "b", ONE), (3, "c", ONE)]
    assert replay(world.spark, world.definition()) == Replay("orders")
