"""A MERGE whose session takes no settings: its progress is in commits before and after it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge import failpoints
from bridge.backend import Feature
from bridge.backend.classic import ClassicBackend
from bridge.delta.append import append_batch
from bridge.delta.ingest_progress import read_progress
from bridge.delta.merge_contract import MergeResult
from bridge.delta.merge_spark import SparkEngine
from bridge.delta.table import Table
from bridge.errors import ConcurrentRunError
from bridge.ingest_progress import IngestProgress
from bridge.offsets import Offsets
from tests.delta.tables import actions, at, content, frame, made


@pytest.fixture
def table(spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch) -> Table:
    table = made(spark, lake / "t", rows=[(1, "a")])
    monkeypatch.setattr(ClassicBackend, "can", lambda _, f: "no settings" if f is Feature.SETTINGS else None)
    return table


def batch(number: int, run: str = "run-1") -> IngestProgress:
    return replace(at(number, run), start=Offsets({("t", 0): number * 10 - 10}))


def merge(table: Table, value: str, progress: IngestProgress) -> MergeResult:
    return SparkEngine().merge(table, frame(table, [("+U", 1, value)]), key=["id"], progress=progress)


def test_a_merge_is_between_two_commits_without_rows(table: Table) -> None:
    assert merge(table, "b", batch(1)) == MergeResult(version=4, updated=1)
    assert content(table) == {(1, "b")}
    found = read_progress(table, "p")
    assert found == (at(1), 4) and found[0].reaches is None
    begun, merged, done = (actions(table, version) for version in (2, 3, 4))
    for commit in (begun, done):
        assert not [action for action in commit if "add" in action or "cdc" in action]
    assert not [action for action in merged if "txn" in action]
    assert merge(table, "b", batch(2)).version == 6  # no row changes, so Delta has nothing to commit
    assert append_batch(table, frame(table, [("+I", 2, "c")]), rows=1, progress=at(3)) == MergeResult(
        7, inserted=1
    )


@pytest.mark.parametrize("step", ["ingest.begun", "ingest.merged"])
def test_after_a_kill_the_batch_is_known_and_not_done(
    table: Table, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def hit(name: str) -> None:
        if name == step:
            raise KeyboardInterrupt

    monkeypatch.setattr(failpoints, "hit", hit)
    with pytest.raises(KeyboardInterrupt):
        merge(table, "b", batch(1))
    monkeypatch.setattr(failpoints, "hit", failpoints.ignore)
    found = read_progress(table, "p")
    assert found is not None and found[0].reaches == at(1).offsets
    assert (found[0].batch, found[0].offsets) == (1, Offsets({("t", 0): 0}))
    assert merge(table, "b", replace(batch(2, "run-2"), start=found[0].offsets)).updated == (
        step == "ingest.begun"
    )
    found = read_progress(table, "p")
    assert found is not None and (found[0].offsets, found[0].reaches) == (at(2).offsets, None)


def test_a_run_that_another_one_has_overtaken_merges_nothing(table: Table) -> None:
    merge(table, "theirs", batch(1, "run-2"))
    with pytest.raises(ConcurrentRunError, match="run 'run-2' has committed batch 1"):
        merge(table, "ours", batch(1))
    assert content(table) == {(1, "theirs")}
