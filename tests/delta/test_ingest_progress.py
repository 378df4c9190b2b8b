"""Progress of an ingest: in the commit, found under any pile of other commits, never guessed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from delta.tables import DeltaTable
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from bridge.definition import DeltaTarget
from bridge.delta.ingest_progress import committed_by, last_batch, read_progress
from bridge.delta.table import create_table, open_table
from bridge.errors import GapError, TableError
from bridge.ingest_progress import IngestProgress
from bridge.offsets import Offsets
from tests.delta.tables import FIELDS, append, at, by_spark, commit_by_hand, frame, log_file, made
from tests.public_api import PublicApi


@given(
    pipeline=st.text(min_size=1),
    offsets=st.dictionaries(st.tuples(st.text(min_size=1), st.integers(0, 2**31)), st.integers(0, 2**63 - 1)),
    ids=st.dictionaries(st.text(), st.text()),
    batch=st.integers(0, 2**63 - 1),
)
def test_json_round_trip(
    pipeline: str, offsets: dict[tuple[str, int], int], ids: dict[str, str], batch: int
) -> None:
    progress = IngestProgress(pipeline, "run", batch, Offsets(offsets), ids, reader=f"spark ({pipeline})")
    text = progress.to_json("table-id")
    assert "\n" not in text
    read = IngestProgress.from_json(text)
    assert read == (progress, "table-id") and read[0].reader == progress.reader


@pytest.mark.parametrize("text", [None, "", "by hand", "{}", "[1]", "7", '{"bridge": 1}', '{"bridge": {}}'])
def test_other_peoples_metadata_is_no_progress(text: str | None) -> None:
    assert IngestProgress.from_json(text) is None


def test_a_newer_format_is_refused() -> None:
    with pytest.raises(
        TableError, match="progress is written in format 2, this bridge reads 1: use the newer bridge"
    ):
        IngestProgress.from_json('{"bridge": {"format": 2}}')


def test_found_under_any_number_of_other_commits(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t")
    assert read_progress(table, "p") is None
    append(table, [(1, "a")], userMetadata=at(0).to_json(table.id))
    append(table, [(2, "b")], userMetadata=at(1).to_json(table.id))
    assert read_progress(table, "p") == (at(1), 2)
    for version in range(3, 460):
        if version in (4, 30):
            assert read_progress(table, "p") == (at(1), 2)
        commit_by_hand(table, version, "a note" if version % 2 else None)
    started = time.monotonic()
    assert read_progress(table, "p") == (at(1), 2)
    assert time.monotonic() - started < 30


def test_none_for_other_pipelines(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t")
    append(table, [(1, "a")], userMetadata=at(0).to_json(table.id))
    assert read_progress(table, "q") is None


def test_after_a_restore_it_is_the_progress_of_the_restored_rows(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t")
    append(table, [(1, "a")], userMetadata=at(0).to_json(table.id))
    append(table, [(2, "a")], userMetadata=at(1).to_json(table.id))
    table.delta().restoreToVersion(1)
    rewound = IngestProgress("p", "run-1", batch=1, offsets=at(0).offsets, topic_ids=at(0).topic_ids)
    assert read_progress(table, "p") == (rewound, 1)
    commit_by_hand(table, 4)
    assert read_progress(table, "p") == (rewound, 1)
    commit_by_hand(table, 5, at(2, offset=5).to_json(table.id), "MERGE")
    assert read_progress(table, "p") == (at(2, offset=5), 5)
    commit_by_hand(table, 6, operation="RESTORE", parameters={"version": 0})
    assert read_progress(table, "p") == (IngestProgress("p", "run-1", 2, Offsets(), {}), 0)
    commit_by_hand(table, 7, operation="RESTORE", parameters={"version": 5})
    assert read_progress(table, "p") == (at(2, offset=5), 5)


def test_a_commit_of_a_batch_that_began_before_a_restore_does_not_count(
    spark: SparkSession, lake: Path
) -> None:
    """Its rows are there twice if it has appended them. The other pipeline's progress goes back, too."""
    table = made(spark, lake / "t")
    other = IngestProgress("q", "run-1", 0, at(0).offsets, {"t": "topic-id"})
    keyed = replace(at(2), after=3, key=("id",))
    commit_by_hand(table, 1, at(0).to_json(table.id), "MERGE")
    commit_by_hand(table, 2, at(1).to_json(table.id), "MERGE")
    commit_by_hand(table, 3, other.to_json(table.id), "MERGE")
    commit_by_hand(table, 4, operation="OPTIMIZE")
    commit_by_hand(table, 5, keyed.to_json(table.id), "MERGE")
    assert read_progress(table, "p") == (at(2), 5)
    commit_by_hand(table, 4, operation="RESTORE", parameters={"version": 1})
    commit_by_hand(table, 5, keyed.to_json(table.id), "MERGE")  # a changed stamp: the log is read anew
    assert read_progress(table, "p") == (replace(at(0), batch=2), 1)
    shared = replace(table, properties={})
    assert read_progress(shared, "q") == (replace(other, offsets=Offsets(), topic_ids={}), 0)
    commit_by_hand(table, 5, replace(keyed, key=()).to_json(table.id), "WRITE")
    with pytest.raises(
        GapError, match=r"version 5 appended rows .* version 4 restored it; RESTORE it to version 4"
    ):
        read_progress(table, "p")
    commit_by_hand(table, 6, operation="RESTORE", parameters={"version": 4})
    assert read_progress(table, "p") == (replace(at(0), batch=2), 1)


def test_restored_to_a_version_before_it_began_a_run_begins_where_it_did(
    spark: SparkSession, lake: Path
) -> None:
    """Its first commit says so, if that was not the earliest offset."""
    table = made(spark, lake / "t")
    start = replace(at(0, offset=7), starts=True)
    commit_by_hand(table, 1, start.to_json(table.id), "MERGE")
    commit_by_hand(table, 2, at(1).to_json(table.id), "MERGE")
    commit_by_hand(table, 3, operation="RESTORE", parameters={"version": 0})
    assert read_progress(table, "p") == (replace(start, batch=1), 0)


def test_a_restore_by_timestamp_cannot_be_followed(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t")
    commit_by_hand(table, 1, at(0).to_json(table.id), "MERGE")
    commit_by_hand(table, 2, operation="RESTORE", parameters={"timestamp": "2026-01-01 00:00:00.0"})
    with pytest.raises(GapError, match=r"version 2 restored it by timestamp.*run `bridge resync FILE`"):
        read_progress(table, "p")


def test_a_replaced_table_is_a_gap(spark: SparkSession, unique: Callable[[str], str]) -> None:
    named = DeltaTarget(table="default." + unique("t").replace("-", "_"))
    table = create_table(spark, named, FIELDS, pipeline="p")
    assert named.table is not None
    frame = spark.createDataFrame([(1, "a")], "id long, v string")
    frame.write.format("delta").mode("append").option("userMetadata", at(0).to_json(table.id)).saveAsTable(
        named.table
    )
    spark.sql(
        f"CREATE OR REPLACE TABLE {named.table} (id BIGINT, v STRING) USING delta "
        "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    )
    with pytest.raises(
        GapError, match=r"it was replaced by another table after version 1; run `bridge resync FILE`"
    ):
        read_progress(open_table(spark, named, FIELDS), "p")
    spark.sql(f"DROP TABLE {named.table}")


def test_a_cleaned_log_is_a_gap(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", properties={"delta.checkpointInterval": "3"})
    append(table, [(1, "a")], userMetadata=at(0).to_json(table.id))
    append(table, [(2, "a")])
    append(table, [(3, "a")])
    assert read_progress(table, "p") == (at(0), 1)
    for version in range(3):
        log_file(table, version).unlink()
    log_file(table, 3).touch()  # a changed stamp: the log is read anew
    with pytest.raises(
        GapError,
        match=r"its log begins at version 3 and has no progress any more; run `bridge resync FILE`",
    ):
        read_progress(table, "p")


def test_a_clone_is_a_gap_until_it_has_progress_of_its_own(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")])
    spark.sql(f"CREATE TABLE delta.`{lake}/clone` SHALLOW CLONE delta.`{lake}/t`")
    clone = open_table(spark, DeltaTarget(path=f"{lake}/clone"), FIELDS)
    assert clone.id != table.id
    with pytest.raises(
        GapError, match="it is a clone, and a clone's log starts without the progress of its source"
    ):
        read_progress(clone, "p")
    append(clone, [(2, "b")], userMetadata=at(0).to_json(clone.id))
    assert read_progress(clone, "p") == (at(0), 1)


def test_metadata_is_readable_by_people(spark: SparkSession, lake: Path) -> None:
    """DESCRIBE HISTORY shows it; documented for users, so its names stay."""
    table = made(spark, lake / "t")
    append(table, [(1, "a")], userMetadata=at(1).to_json(table.id))
    shown = DeltaTable.forPath(spark, f"{lake}/t").history(1).select("userMetadata").collect()[0][0]
    assert json.loads(shown) == {
        "bridge": {
            "format": 1,
            "pipeline": "p",
            "run": "run-1",
            "batch": 1,
            "offsets": {"t": {"0": 10}},
            "topic_ids": {"t": "topic-id"},
            "table": table.id,
        }
    }


@pytest.mark.versions
def test_the_last_batch_is_known_to_delta_and_to_the_log(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t")
    for target in (table, PublicApi(table)):
        assert last_batch(target, "p") == -1  # type: ignore[arg-type]
    for batch in (0, 1):
        by_spark(table, frame(table, [("+I", batch, "a")]), key=["id"], progress=at(batch))
    append(table, [(7, "z")])
    for target in (table, PublicApi(table)):
        assert (last_batch(target, "p"), last_batch(target, "other")) == (1, -1)  # type: ignore[arg-type]


def test_a_run_whose_commit_was_taken_back_has_not_committed(spark: SparkSession, lake: Path) -> None:
    """Unless a later RESTORE brings it back. An interrupted replay asks it, before it removes its records."""
    table = made(spark, lake / "t")
    for batch, run in enumerate(("one", "two")):
        append(table, [(batch, "a")], userMetadata=at(batch, run).to_json(table.id))
    found = []
    for restored in (None, 1, 2, 0):
        if restored is not None:
            table.delta().restoreToVersion(restored)
        found.append([committed_by(table, "p", run) for run in ("one", "two", "three")])
    assert found == [[True, True, False], [True, False, False], [True, True, False], [False] * 3]
