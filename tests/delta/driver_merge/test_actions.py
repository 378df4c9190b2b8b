"""The files that a batch writes."""

from __future__ import annotations

import json
from pathlib import Path

from pyspark.sql import SparkSession

from bridge.delta.driver_merge.actions import ChooseRewrites
from bridge.delta.merge_contract import MergeResult
from bridge.delta.merge_driver import DriverEngine
from tests.delta.tables import actions, append, at, content, frame, made


def none(*_: object) -> list[str]:
    return []


NO_REWRITES: ChooseRewrites = none


def test_files_are_copied_at_once(spark: SparkSession, lake: Path) -> None:
    """Two threads, each with a file of its own; a copy has the rows of one file, so files keep their ranges of keys."""
    table = made(spark, lake / "t")
    for n in range(6):
        append(table, [(k, "a") for k in range(10 * n, 10 * n + 10)])
    changes = frame(table, [("+U" if k % 2 else "-D", k, "b") for k in range(0, 60, 5)])
    engine = DriverEngine(min_rows_a_change=1 << 60, choose_rewrites=NO_REWRITES)
    assert engine.merge(table, changes, key=["id"], progress=at(0)) == MergeResult(7, 0, 6, 6)
    gone, new = set(range(0, 60, 10)), set(range(5, 60, 10))
    assert content(table) == {(k, "b" if k in new else "a") for k in range(60) if k not in gone}
    bounds = [json.loads(a["add"]["stats"]) for a in actions(table, 7) if "add" in a]
    ranges = sorted((b["minValues"]["id"], b["maxValues"]["id"]) for b in bounds)
    assert ranges == [(10 * n + 1, 10 * n + 9) for n in range(6)]
