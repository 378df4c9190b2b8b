"""The commits of a log as values: what each did, and how many records it read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from bridge.errors import TableError
from bridge.history.commits import CommitLog
from bridge.lake.reached_store import reached_store
from bridge.store_options import given_settings
from tests.history.logs import START_MS, Log
from tests.object_store import BUCKET, ObjectStore


def read(folder: Path, most: int = 100) -> CommitLog:
    log = CommitLog(reached_store(str(folder)), most, with_files=True)
    log.follow()
    return log


def test_what_each_commit_did(tmp_path: Path) -> None:
    log = Log.at(tmp_path)
    log.commit("CREATE TABLE", engineInfo="changelog-bridge/1.0.0")
    log.batch(10, 5, counts=(7, 2, 1), files=(1000, 500), newest=START_MS + 58_000, engine="spark (why)")
    log.commit("OPTIMIZE", operationMetrics={"numAddedFiles": "1"}, files=(1400,))
    log.commit("UPDATE", operationMetrics={"numUpdatedRows": "3"}, engineInfo="another/1")
    log.commit("WRITE", operationMetrics={"numOutputRows": "4"})
    created, batch, optimized, updated, written = read(tmp_path).commits
    assert (created.operation, created.at_ms, created.writer) == (
        "CREATE TABLE",
        START_MS,
        "changelog-bridge/1.0.0",
    )
    assert (batch.inserted, batch.updated, batch.deleted, batch.rows) == (7, 2, 1, 10)
    assert (batch.files, batch.bytes) == (2, 1500)
    assert (batch.pipeline, batch.batch, batch.engine) == ("orders", 0, "spark (why)")
    assert (batch.newest_ms, created.newest_ms) == (START_MS + 58_000, None)
    assert (updated.updated, written.inserted) == (3, 4)
    others = [c.operation for c in (created, batch, optimized, updated, written) if c.is_other_writers]
    assert others == ["UPDATE", "WRITE"]


def test_records_are_counted_from_the_commit_before_of_the_same_pipeline(tmp_path: Path) -> None:
    log = Log.at(tmp_path)
    log.batch(10, 5)
    log.batch(3, pipeline="other", topic="others", batch=0)
    log.batch(10, 25, 4, batch=1)  # a new partition begins at 0
    log.batch(9, pipeline="other", topic="others", batch=7)
    log.batch(20, pipeline="joined", topic="old", batch=4)
    assert [c.records for c in read(tmp_path).commits] == [15, 3, 24, 6, None]


@pytest.mark.parametrize("timestamp", [START_MS * 1000, "2026-11-27 17:20:00", -5, True, [1], 1e400])
def test_a_time_that_is_none_is_that_of_the_store(tmp_path: Path, timestamp: object) -> None:
    log = Log.at(tmp_path)
    log.commit("WRITE", timestamp=timestamp, operationMetrics={"numOutputRows": "unknown"})
    os.utime(tmp_path / "_delta_log" / f"{0:020}.json", (START_MS / 1000, START_MS / 1000))
    log.commit("WRITE", timestamp=timestamp, inCommitTimestamp=START_MS + 7, operationMetrics=["none"])
    found = read(tmp_path).commits
    assert [(commit.at_ms, commit.inserted) for commit in found] == [(START_MS, 0), (START_MS + 7, 0)]


def test_rows_of_delta_rs_are_counted(tmp_path: Path) -> None:
    rows, table = pa.table({"id": [1, 2, 3]}), str(tmp_path)
    write_deltalake(table, rows)
    DeltaTable(table).update(updates={"id": "9"}, predicate="id = 1")
    DeltaTable(table).delete("id = 2")
    merged = DeltaTable(table).merge(
        pa.table({"id": [3, 7]}), "t.id = s.id", source_alias="s", target_alias="t"
    )
    merged.when_matched_update_all().when_not_matched_insert_all().execute()
    found = [(c.inserted, c.updated, c.deleted) for c in read(tmp_path).commits]
    assert found == [(3, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0)]


def test_where_a_run_starts_is_no_record(tmp_path: Path) -> None:
    log = Log.at(tmp_path)
    log.batch(1000, starts=True)
    log.batch(1010)
    assert [c.records for c in read(tmp_path).commits] == [0, 10]


def test_after_a_restore_progress_is_not_known_until_the_next_batch(tmp_path: Path) -> None:
    log = Log.at(tmp_path)
    log.batch(10)
    log.batch(20)
    log.commit("RESTORE", operationParameters={"version": "0"})
    found = read(tmp_path)
    assert found.progress == {}
    log.batch(20)
    found.follow()
    assert found.commits[-1].records is None
    assert found.progress["orders"][1] == 3


def test_the_newest_commits_are_read_and_followed(tmp_path: Path) -> None:
    log = Log.at(tmp_path)
    for offset in range(1, 9):
        log.batch(offset)
    found = read(tmp_path, most=3)
    assert [c.version for c in found.commits] == [5, 6, 7]
    assert [c.records for c in found.commits] == [None, 1, 1]
    log.batch(20)
    found.follow()
    assert [(c.version, c.records) for c in found.commits] == [(6, 1), (7, 1), (8, 12)]
    assert found.newest == 8


def test_another_table_in_its_place_is_read_anew(tmp_path: Path) -> None:
    log = Log.at(tmp_path)
    log.batch(10)
    found = read(tmp_path)
    for path in (tmp_path / "_delta_log").iterdir():
        path.rename(tmp_path / f"old-{path.name}")
    other = Log.at(tmp_path)
    other.commit("CREATE TABLE")
    other.batch(7, pipeline="new")
    found.follow()
    assert [(c.version, c.pipeline) for c in found.commits] == [(0, None), (1, "new")]
    assert list(found.progress) == ["new"]


def test_a_log_without_its_first_commits_or_any(tmp_path: Path) -> None:
    log = Log.at(tmp_path)
    for offset in (1, 2, 3):
        log.batch(offset)
    (tmp_path / "_delta_log" / f"{0:020}.json").unlink()
    assert [c.version for c in read(tmp_path).commits] == [1, 2]
    empty = read(tmp_path / "nothing")
    assert (empty.newest, len(empty.commits)) == (-1, 0)


def test_a_commit_without_commit_info_has_the_time_of_its_file(tmp_path: Path) -> None:
    Log.at(tmp_path).write({"add": {"path": "a", "size": 1}})
    (found,) = read(tmp_path).commits
    modified = (tmp_path / "_delta_log" / f"{0:020}.json").stat().st_mtime
    assert found.at_ms == int(modified * 1000)
    assert (found.operation, found.writer, found.bytes) == ("", "", 1)


def test_a_commit_that_is_no_json_is_an_error(tmp_path: Path) -> None:
    log = Log.at(tmp_path)
    log.batch(1)
    (tmp_path / "_delta_log" / f"{1:020}.json").write_text('{"commitInfo": {"oper')
    with pytest.raises(TableError, match="a commit among versions 0 to 1 is no JSON"):
        read(tmp_path)


def test_a_log_that_could_not_be_read_is_read_anew(tmp_path: Path) -> None:
    log = Log.at(tmp_path)
    log.batch(1)
    found = read(tmp_path)
    log.batch(2)
    newer = tmp_path / "_delta_log" / f"{log.batch(4):020}.json"
    text = newer.read_text()
    newer.write_text(text.replace('\\"format\\": 1', '\\"format\\": 2'))
    with pytest.raises(TableError, match="progress is written in format 2"):
        found.follow()
    newer.write_text(text)
    found.follow()
    assert [(c.version, c.records) for c in found.commits] == [(0, 1), (1, 1), (2, 2)]


def test_a_table_on_s3(object_store: ObjectStore, unique: Callable[[str], str]) -> None:
    place = f"s3a://{BUCKET}/{unique('table')}"
    settings = {f"spark.hadoop.{name}": value for name, value in object_store.settings().items()}
    with given_settings(lambda: settings):
        store = reached_store(place)
    log = Log(store)
    log.batch(10)
    found = CommitLog(store, 10)
    found.follow()
    log.batch(15)
    found.follow()
    assert [c.records for c in found.commits] == [10, 5]
