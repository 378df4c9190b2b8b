"""What a commit does to data files is counted from its actions, in every engine the same."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from bridge.definition import DeltaTarget
from bridge.delta.commit_files import (
    FileChanges,
    commits_since_checkpoint,
    file_changes,
    read_file_changes,
)
from bridge.delta.table import open_table
from bridge.lake.snapshot import Action


def test_a_file_that_gets_a_vector_is_neither_written_nor_rewritten() -> None:
    actions: list[Action] = [
        {"commitInfo": {}},
        {"remove": {"path": "marked", "size": 10}},
        {"add": {"path": "marked", "size": 10}},
        {"add": {"path": "new", "size": 3}},
        {"remove": {"path": "old", "size": 7}},
        {"remove": {"path": "without a size"}},
    ]
    assert file_changes(actions) == FileChanges(1, 3, 2, 7)


def test_versions_of_spark(spark: SparkSession, lake: Path) -> None:
    path = str(lake / "t")
    for part in (1, 2):
        spark.range(part, part + 1).coalesce(1).write.format("delta").mode("append").save(path)
    spark.sql(f"DELETE FROM delta.`{path}`")
    table = open_table(spark, DeltaTarget(path=path), [T.StructField("id", T.LongType())], feed=False)
    added, emptied = (read_file_changes(table, version) for version in (1, 2))
    assert (added.written, added.rewritten) == (1, 0) and added.bytes_written > 0
    assert (emptied.written, emptied.rewritten) == (0, 2)
    assert emptied.bytes_rewritten > added.bytes_written
    assert read_file_changes(table, 9) == FileChanges()
    assert commits_since_checkpoint(table, 2) == 2
