"""Commits are written once, and their actions replace files as the protocol says."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

from bridge.lake.commit import commit_info, mark_rows, removed, write_commit
from bridge.lake.data_files import open_file, read_vector, write_vectors
from bridge.lake.local_store import LocalStore
from bridge.lake.new_files import write_data_file
from bridge.lake.snapshot import Snapshot

ROWS = pa.table({"id": [0, 1, 2, 3]})


def test_marked_rows(tmp_path: Path) -> None:
    folder = str(tmp_path)
    snapshot = Snapshot(LocalStore(folder))
    for marked in ([], [0], [0]):
        add = write_data_file(LocalStore(folder), ROWS, 1)
        if marked:
            add["deletionVector"] = write_vectors(LocalStore(folder), {"f": BitMap(marked)})["f"]
        snapshot.files[add["path"]] = add
    new, old, gone = (open_file(snapshot, name, ROWS.schema) for name in snapshot.files)
    positions = {new.name: np.array([2]), old.name: np.array([3]), gone.name: np.array([1, 2, 3])}
    actions = mark_rows(LocalStore(folder), [new, old, gone], positions)
    snapshot.apply(actions)
    assert set(snapshot.files) == {new.name, old.name}
    for file, marked in ((new, [2]), (old, [0, 3])):
        after = snapshot.files[file.name]
        assert list(read_vector(LocalStore(folder), after["deletionVector"])) == marked
        assert json.loads(after["stats"]) == {**json.loads(file.add["stats"]), "tightBounds": False}
        assert {k: after[k] for k in ("path", "size", "modificationTime", "dataChange")} == {
            k: file.add[k] for k in ("path", "size", "modificationTime", "dataChange")
        }
    before = {a["remove"]["path"]: a["remove"] for a in actions if "remove" in a}
    assert "deletionVector" not in before[new.name]
    assert before[old.name]["deletionVector"] == old.add["deletionVector"]


def test_a_removed_file() -> None:
    given = {
        "path": "f",
        "size": 5,
        "stats": "{}",
        "partitionValues": {},
        "modificationTime": 1,
        "dataChange": True,
    }
    found = removed(given)
    assert found.pop("deletionTimestamp") > 1_700_000_000_000
    assert found == {
        "path": "f",
        "size": 5,
        "partitionValues": {},
        "dataChange": True,
        "extendedFileMetadata": True,
    }


def test_one_of_two_writers_gets_a_version(tmp_path: Path) -> None:
    info = {"commitInfo": commit_info(6, "the user's note", ["id"], {"numTargetRowsUpdated": 3})}
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / f"{6:020}.json").touch()
    assert write_commit(LocalStore(str(tmp_path)), 7, [info, {"txn": {"appId": "a", "version": 1}}])
    assert not write_commit(LocalStore(str(tmp_path)), 7, [{"txn": {"appId": "b", "version": 1}}])
    _, file = sorted((tmp_path / "_delta_log").iterdir())
    first, second = map(json.loads, file.read_text().splitlines())
    assert file.name == "00000000000000000007.json" and second == {"txn": {"appId": "a", "version": 1}}
    about = first["commitInfo"]
    assert (about["operation"], about["readVersion"], about["userMetadata"]) == (
        "MERGE",
        6,
        "the user's note",
    )
    assert about["operationMetrics"] == {"numTargetRowsUpdated": "3"}


def test_no_commit_leaves_a_gap(tmp_path: Path) -> None:
    assert write_commit(LocalStore(str(tmp_path)), 0, [{"txn": {}}])
    with pytest.raises(ValueError, match="there is no version 1, so version 2 would leave a gap"):
        write_commit(LocalStore(str(tmp_path)), 2, [{"txn": {}}])
    assert [file.name for file in (tmp_path / "_delta_log").iterdir()] == [f"{0:020}.json"]


@pytest.mark.parametrize("seconds", [1, pytest.param(60, marks=pytest.mark.slow)])
def test_threads_commit_to_one_table(tmp_path: Path, seconds: float) -> None:
    """Each version has one writer, and each file and folder of a commit is there, whichever thread has made it."""
    store, until = LocalStore(str(tmp_path)), time.monotonic() + seconds
    assert write_commit(store, 0, [{"protocol": {}}])

    def commit(_: int) -> int:
        version, done = 1, 0
        while time.monotonic() < until:
            adds = [write_data_file(store, ROWS, 1) for _ in range(6)]
            while not write_commit(store, version, [{"add": add} for add in adds]):
                version += 1
            done += 1
        return done

    with ThreadPoolExecutor(4) as pool:
        made = sum(pool.map(commit, range(4)))
    log = sorted((tmp_path / "_delta_log").glob("*.json"))
    assert [file.name for file in log] == [f"{version:020}.json" for version in range(made + 1)]
    for file in log[1:]:
        actions = map(json.loads, file.read_text().splitlines())
        assert all((tmp_path / action["add"]["path"]).is_file() for action in actions)
