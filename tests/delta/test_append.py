"""Each batch is one append: rows, progress, and a number that Delta accepts once."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.definition import DeltaTarget
from bridge.delta.append import append_batch
from bridge.delta.ingest_progress import read_progress
from bridge.delta.merge_contract import MergeResult
from bridge.delta.table import claim, create_table, open_table
from bridge.errors import ConcurrentRunError, TableError
from tests.delta.tables import FIELDS, actions, at, content, frame, log_file, made

OURS = (
    "spark.databricks.delta.write.txnAppId",
    "spark.databricks.delta.write.txnVersion",
    "spark.databricks.delta.commitInfo.userMetadata",
)


def test_rows_and_progress_are_one_commit_and_settings_are_put_back(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t")
    changes = frame(table, [("+I", 1, "a"), ("+I", 1, "a"), ("+I", None, None)])
    assert append_batch(table, changes, rows=3, progress=at(0)) == MergeResult(version=1, inserted=3)
    assert table.delta().toDF().count() == 3
    assert read_progress(table, "p") == (at(0), 1)
    assert [a["txn"]["version"] for a in actions(table, 1) if "txn" in a] == [0]
    assert not log_file(table, 2).exists()
    assert [spark.conf.get(key, None) for key in OURS] == [None] * 3


def test_a_batch_that_is_there_already_adds_nothing(spark: SparkSession, lake: Path) -> None:
    """Also when another table's commit has the same version number: Delta keeps the last one per session."""
    table, other = made(spark, lake / "t"), made(spark, lake / "other")
    changes = frame(table, [("+I", 1, "a")])
    append_batch(table, changes, rows=1, progress=at(0))
    append_batch(other, changes, rows=1, progress=at(0))
    again = append_batch(table, changes, rows=1, progress=at(0))
    assert again == MergeResult(version=1, skipped=True)
    assert content(table) == {(1, "a")}
    assert not log_file(table, 2).exists()


def test_another_run_s_batch_of_the_same_number_is_not_taken_for_ours(
    spark: SparkSession, lake: Path
) -> None:
    table = made(spark, lake / "t")
    append_batch(table, frame(table, [("+I", 1, "theirs")]), rows=1, progress=at(0, run="run-1"))
    with pytest.raises(ConcurrentRunError, match="run 'run-1' has committed batch 0, this is run 'run-2'"):
        append_batch(table, frame(table, [("+I", 1, "ours")]), rows=1, progress=at(0, run="run-2"))
    assert content(table) == {(1, "theirs")}


def test_an_empty_batch_commits_its_progress(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t")
    assert append_batch(table, frame(table, []), rows=0, progress=at(0)) == MergeResult(version=1)
    assert read_progress(table, "p") == (at(0), 1)


def test_an_append_only_table_is_fine_for_appends_alone(spark: SparkSession, lake: Path) -> None:
    target = DeltaTarget(path=str(lake / "t"), properties={"delta.appendOnly": "true"})
    table = create_table(spark, target, FIELDS, pipeline="p", appends=True)
    append_batch(table, frame(table, [("+I", 1, "a")]), rows=1, progress=at(0))
    assert content(table) == {(1, "a")}
    with pytest.raises(TableError, match=r"delta\.appendOnly = true, but an ingest updates and deletes rows"):
        claim(open_table(spark, target, FIELDS), "p")
