"""What a commit names is on the disk before it: power is lost at each link, and the disk has what was synced."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.lake.commit import mark_rows, write_commit
from bridge.lake.data_files import open_file, read_vector
from bridge.lake.local_store import LocalStore
from bridge.lake.new_files import write_change_file, write_data_file
from bridge.lake.snapshot import Snapshot
from bridge.log_layout import commit_path

ROWS = pa.table({"id": [0, 1, 2, 3]})
NONE = ROWS.slice(0, 0)


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
