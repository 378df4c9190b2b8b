"""Small ranges of an old table are those of a young one, and cost the same work."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from bridge.delta import change_feed
from bridge.lake.snapshot import Snapshot
from bridge.pipelines.publish.driver_records import driver_records
from bridge.pipelines.publish.range_planner import RangePlanner
from bridge.pipelines.publish.sharding import FileShardLimits
from tests.delta.aged_log import age
from tests.delta.tables import at, by_marks, frame, made
from tests.pipelines.publish.test_driver_records import FIELDS, in_driver, pipeline, planned


def test_batches_in_one_range_are_sent_by_their_versions(spark: SparkSession, lake: Path) -> None:
    """Also those of an old table: what a range costs does not depend on how many files were removed, nor on how many
    commits there were."""
    table = made(spark, lake / "t", fields=FIELDS[:1] + FIELDS[6:7], rows=[(n, "") for n in range(9)])
    age(table, commits=30, removed=6_000)
    definition = pipeline(lake, "k BIGINT, s STRING")
    for number in range(20):
        batch = [("-D" if number % 5 == 4 else "+U", 1, f"v{number}"), ("+U", 2, f"v{number}")]
        last = by_marks(table, frame(table, batch), key=["k"], progress=at(number)).version
    (range_,) = RangePlanner(definition, table, None, FileShardLimits()).changes(last - 19, last)
    records = driver_records(range_, table, definition, definition.topic)
    assert records is not None and isinstance(records.rows, pa.Table) and records.encoder is not None
    sent: dict[int, list[str | None]] = {1: [], 2: []}
    for part in records.rows.to_batches():
        for key, value in zip(
            *(documents.to_pylist() for documents in records.encoder.documents(part)), strict=True
        ):
            sent[json.loads(key)["k"]].append(value and json.loads(value)["s"])
    assert sent[2] == [f"v{number}" for number in range(20)]
    assert sent[1] == [None if number % 5 == 4 else f"v{number}" for number in range(20)]


@pytest.mark.parametrize("is_old", [False, True], ids=["young", "old"])
def test_a_range_reads_its_own_commits_and_files_only(
    spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch, is_old: bool
) -> None:
    """Neither a checkpoint nor the list of the log's files, which grow with the age of a table."""
    table = made(spark, lake / "t", fields=FIELDS[:1] + FIELDS[6:7], rows=[(n, "") for n in range(9)])
    if is_old:
        age(table, commits=30, removed=6_000)
    definition = pipeline(lake, "k BIGINT, s STRING")
    read: Counter[str] = Counter()

    def noting(what: str, do: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *given, **named: (read.update([what]), do(*given, **named))[1]

    for number in range(2):
        batch = [("+U", number, "x"), ("-D", number + 4, None)]
        last = by_marks(table, frame(table, batch), key=["k"], progress=at(number)).version
        if number:  # the first range of a process opens the log
            monkeypatch.setattr(os, "listdir", noting("lists", os.listdir))
            monkeypatch.setattr(Snapshot, "read_commit", noting("commits", Snapshot.read_commit))
            monkeypatch.setattr(pq, "ParquetFile", noting("files", pq.ParquetFile))
        assert change_feed.latest_version(table) == last
        change_feed.check_feed(table, last, last, table.id, newest=last)
        found = in_driver(planned(table, definition, last), table, definition)
        assert found is not None and found.total() == 2
    # Five look for a next commit; four read the commit: to follow it, check it, plan it, send it.
    assert read == {"commits": read["commits"], "files": 1} and read["commits"] < 12, read
