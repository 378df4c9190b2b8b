"""Other writers at the same time: conflicts are tried again, a second run of the pipeline is refused."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.columns import KIND
from bridge.delta.ingest_progress import read_progress
from bridge.delta.merge_contract import MergeResult
from bridge.delta.table import Table
from bridge.errors import ConcurrentRunError
from tests.delta.tables import at, by_spark, content, frame, made

pytestmark = pytest.mark.slow


def gated(changes: DataFrame, gate: Path) -> DataFrame:
    """`changes`, where reading a row writes a line to a file and then waits until `gate` exists.

    In one partition: the other core is for the other writer.
    """

    def wait(kind: str) -> str:
        with gate.with_suffix(".reached").open("a") as out:
            out.write(f"{kind}\n")
        deadline = time.monotonic() + 240
        while not gate.exists():
            assert time.monotonic() < deadline, "nobody opened the gate"
            time.sleep(0.05)
        return kind

    return changes.coalesce(1).withColumn(KIND, F.udf(wait, T.StringType(), useArrow=False)(KIND))


@contextmanager
def merging(table: Table, changes: DataFrame, gate: Path, run: str) -> Iterator[Future[MergeResult]]:
    """A MERGE of batch 0 that has begun its transaction and goes on after the block."""
    with ThreadPoolExecutor(1) as pool:
        own_session = table.on(table.spark.newSession())
        running = pool.submit(
            lambda: by_spark(own_session, gated(changes, gate), key=["id"], progress=at(0, run=run))
        )
        try:
            while not gate.with_suffix(".reached").exists():
                assert not running.done(), running.result()
                time.sleep(0.05)
            yield running
        finally:
            gate.touch()


def test_a_users_update_in_between_is_kept_and_the_batch_is_applied(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a"), (2, "b")])
    changes = frame(table, [("+U", 1, "x"), ("+U", 3, "n")])
    with merging(table, changes, lake / "gate", "run-1") as running:
        spark.sql(f"UPDATE delta.`{lake}/t` SET v = 'user' WHERE id = 2")
    assert running.result() == MergeResult(version=3, inserted=1, updated=1)
    assert len((lake / "gate.reached").read_text().splitlines()) >= 4  # two rows, two attempts
    assert content(table) == {(1, "x"), (2, "user"), (3, "n")}
    assert read_progress(table, "p") == (at(0, run="run-1"), 3)


def test_a_second_run_of_the_pipeline_loses(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")])
    with merging(table, frame(table, [("+U", 1, "slow")]), lake / "gate", "run-1") as running:
        by_spark(table, frame(table, [("+U", 1, "fast")]), key=["id"], progress=at(0, run="run-2"))
    with pytest.raises(ConcurrentRunError, match="run 'run-2' has committed batch 0, this is run 'run-1'"):
        running.result()
    assert content(table) == {(1, "fast")}
    assert read_progress(table, "p") == (at(0, run="run-2"), 2)
