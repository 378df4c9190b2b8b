"""Commits are written once, and their actions replace files as the protocol says.

What a commit names is on the disk before it: power is lost at each link, and the disk has what was synced.
"""

from __future__ import annotations

import json
import os
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap

from bridge.lake.commit import commit_info, mark_rows, refuse_gap, removed, write_commit
from bridge.lake.data_files import open_file, read_vector, write_vectors
from bridge.lake.local_store import LocalStore
from bridge.lake.new_files import write_change_file, write_data_file
from bridge.lake.snapshot import Snapshot
from bridge.log_layout import commit_path

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
    store = LocalStore(str(tmp_path))
    refuse_gap(store, 0)
    assert write_commit(store, 0, [{"txn": {}}])
    refuse_gap(store, 1)
    with pytest.raises(ValueError, match="there is no version 1, so version 2 would leave a gap"):
        refuse_gap(store, 2)


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


class Disk:
    """What has reached the disk: the bytes of synced files, and the names in synced folders."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
        self.root, self.after_power_loss = root, root.with_name("after")
        self.losses = 0
        self._bytes: dict[int, bytes] = {}
        self._names: dict[int, dict[str, tuple[int, bool]]] = {}
        self._fsync, self._link = os.fsync, os.link
        monkeypatch.setattr(os, "fsync", self._synced)
        monkeypatch.setattr(os, "link", self._linked)

    def lose_power(self) -> Path:
        """A folder with what a machine finds after it has lost power now."""
        self.losses += 1
        copy = self.after_power_loss / str(self.losses)
        self._restore(os.stat(self.root).st_ino, copy)
        return copy

    def _restore(self, folder: int, copy: Path) -> None:
        copy.mkdir(parents=True)
        for name, (inode, is_folder) in self._names.get(folder, {}).items():
            if is_folder:
                self._restore(inode, copy / name)
            else:
                (copy / name).write_bytes(self._bytes.get(inode, b""))

    def _synced(self, opened: int) -> None:
        self._fsync(opened)
        about = os.fstat(opened)
        path = Path(os.readlink(f"/proc/self/fd/{opened}"))
        if stat.S_ISDIR(about.st_mode):
            names = {entry.name: (entry.inode(), entry.is_dir()) for entry in os.scandir(path)}
            self._names[about.st_ino] = names
        else:
            self._bytes[about.st_ino] = path.read_bytes()

    def _linked(self, old: Any, new: Any) -> None:
        """The name of a commit may reach the disk at once, before anything else does."""
        before = dict(self._names)
        self._link(old, new)
        folder = os.stat(Path(new).parent).st_ino
        name = {Path(new).name: (os.stat(new).st_ino, False)}
        self._names[folder] = {**self._names.get(folder, {}), **name}
        check(self.lose_power())
        self._names = before


def check(lake: Path) -> list[str]:
    """The commits of the table; all files that they name are whole."""
    table = lake / "table"
    commits = sorted((table / "_delta_log").glob("*.json")) if (table / "_delta_log").exists() else []
    for commit in commits:
        for action in map(json.loads, commit.read_text().splitlines()):
            for name in ("add", "cdc"):
                if name in action:
                    pq.read_table(table / action[name]["path"])
                    read_vector(LocalStore(str(table)), action[name].get("deletionVector"))
    return [commit.name for commit in commits]


def test_a_loss_of_power_leaves_whole_commits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    table = tmp_path / "lake" / "table"
    (tmp_path / "lake").mkdir()
    disk, folder = Disk(monkeypatch, tmp_path / "lake"), str(table)
    first = json.dumps({"metaData": {}}) + "\n"
    assert LocalStore(folder).put_if_absent(commit_path(0), first.encode())
    assert check(disk.lose_power()) == [f"{0:020}.json"]
    snapshot = Snapshot(LocalStore(folder))
    add = write_data_file(LocalStore(folder), ROWS, 1)
    assert write_commit(LocalStore(folder), 1, [{"add": add}])
    snapshot.apply([{"add": add}])
    file = open_file(snapshot, add["path"], ROWS.schema)
    actions = [
        *mark_rows(LocalStore(folder), [file], {add["path"]: np.array([1])}),
        {"add": write_data_file(LocalStore(folder), ROWS, 1)},
        {"cdc": write_change_file(LocalStore(folder), {"delete": ROWS.slice(1, 1), "insert": ROWS})},
    ]
    assert write_commit(LocalStore(folder), 2, actions)
    assert check(disk.lose_power()) == [f"{version:020}.json" for version in range(3)]
    assert disk.losses == 5
