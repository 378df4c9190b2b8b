"""Knows the newest version of a table from its log on a local disk, and follows it commit by commit.

Formats: "Action Reconciliation" in the Delta protocol (PROTOCOL.md).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from bridge.delta.merge_contract import UnsupportedByEngine
from bridge.log_layout import commit_file, log_folder, version_of

__all__ = ["Action", "Snapshot", "live_rows", "open_snapshot", "stats_of"]

Action = dict[str, Any]
"""An action of the protocol as it stands in a commit, without its name."""

_CHECKPOINT = ".checkpoint.parquet"
_ADD = ("path", "size", "modificationTime", "stats", "tags", "deletionVector", "partitionValues")
_DESCRIPTION = ("protocol", "metaData", "txn")
_COLUMNS = (*_DESCRIPTION, *(f"add.{name}" for name in _ADD))


@dataclass
class Snapshot:
    """The state of a table at `version`."""

    folder: str
    """Of the table."""
    version: int = -1
    protocol: Action = field(default_factory=dict)
    metadata: Action = field(default_factory=dict)
    files: dict[str, Action] = field(default_factory=dict)
    """`add` actions of the data files by their path in the log."""
    transactions: dict[str, int] = field(default_factory=dict)
    """The newest version of each application id."""
    with_files: bool = True
    """False where nobody asks for `files`, which is then empty."""
    _stamp: tuple[int, int] = (0, 0)

    def follow(self) -> bool:
        """Apply the commits that have come since; False if this is no longer the table whose log was read: then
        nothing is known, and it must be opened anew."""
        if self._stamp != self._stamp_of(self.version):
            return False
        while (commit := self.read_commit(self.version + 1)) is not None:
            self.apply(commit)
            self.version += 1
            self._stamp = self._stamp_of(self.version)
        return True

    def apply(self, actions: Iterable[Action]) -> None:
        """Apply the actions of one commit, each {name: action}, or of a checkpoint."""
        added = []
        for action in actions:
            (name, what), *_ = action.items()
            if name == "remove":
                self.files.pop(what["path"], None)
            elif name == "add" and self.with_files:
                added.append(what)
            elif name == "txn":
                self.transactions[what["appId"]] = what["version"]
            elif name == "metaData":
                self.metadata = what
            elif name == "protocol":
                self.protocol = what
        # A commit that gives a file a new vector removes it and adds it, in any order.
        self.files.update((what["path"], what) for what in added)

    def path_of(self, name: str) -> str:
        """Where the file of that path in the log is on this disk. Raises UnsupportedByEngine where it is not."""
        place = urlsplit(name)
        if place.scheme not in ("", "file"):
            raise UnsupportedByEngine(
                f"the table has files in {place.scheme}://{place.netloc}, outside of its folder"
            )
        return os.path.join(self.folder, unquote(place.path))

    def read_commit(self, version: int) -> list[Action] | None:
        """The actions of that version, each {name: action}; None where the log has no such commit."""
        try:
            text = Path(log_folder(self.folder), commit_file(version)).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        # Not splitlines: a text in the statistics may have separators that only Python takes for ends of lines.
        return [json.loads(line) for line in text.split("\n") if line.strip()]

    def _stamp_of(self, version: int) -> tuple[int, int]:
        try:
            about = os.stat(os.path.join(log_folder(self.folder), commit_file(version)))
        except FileNotFoundError:
            return (-1, -1)
        return (about.st_ino, about.st_mtime_ns)


def open_snapshot(
    folder: str, at: int | None = None, *, with_files: bool = True, most: int | None = None
) -> Snapshot:
    """Read version `at` of the table in `folder`, by default the newest; without its files, of which it may have many,
    if nobody needs them.

    Raises UnsupportedByEngine for a log whose checkpoints have another form than one Parquet file, for one of which
    commits are missing, and where the checkpoint to begin with has more than `most` actions.
    """
    log = log_folder(folder)
    names = [name for name in os.listdir(log) if version_of(name) is not None]
    checkpoints = [name for name in names if ".checkpoint." in name]
    if any(not name.endswith(_CHECKPOINT) or len(name) != 20 + len(_CHECKPOINT) for name in checkpoints):
        raise UnsupportedByEngine("the log has checkpoints of a form that only Spark reads")
    snapshot = Snapshot(folder, with_files=with_files)
    newest = max((name for name in checkpoints if at is None or int(name[:20]) <= at), default=None)
    if newest is not None:
        columns = _COLUMNS if with_files else _DESCRIPTION
        snapshot.apply(_checkpoint(os.path.join(log, newest), columns, most))
        snapshot.version = int(newest[:20])
    commits = {int(name[:20]) for name in names if name.endswith(".json")}
    last = max(commits, default=-1) if at is None else at
    for version in range(snapshot.version + 1, last + 1):
        actions = snapshot.read_commit(version)
        if actions is None:
            raise UnsupportedByEngine(f"the log lacks version {version}")
        snapshot.apply(actions)
    if last < max(snapshot.version, 0) or not snapshot.metadata or not snapshot.protocol:
        raise UnsupportedByEngine("the log is not complete")
    snapshot.version = last
    snapshot._stamp = snapshot._stamp_of(last)
    return snapshot


def stats_of(add: Mapping[str, Any]) -> Mapping[str, Any]:
    """The statistics of a file; empty where it has none."""
    found = json.loads(add.get("stats") or "{}")
    return found if isinstance(found, dict) else {}


def live_rows(add: Mapping[str, Any]) -> int | None:
    """How many rows of the file are not deleted; None where its statistics do not count rows."""
    count = stats_of(add).get("numRecords")
    marked = (add.get("deletionVector") or {}).get("cardinality", 0)
    return None if count is None else int(count) - int(marked)


def _checkpoint(file: str, columns: Sequence[str], most: int | None) -> Iterator[Action]:
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    opened = pq.ParquetFile(file)
    if most is not None and opened.metadata.num_rows > most:
        raise UnsupportedByEngine(f"the log has more than {most:,} actions")
    content = opened.read(columns=list(columns))
    for name in content.column_names:
        column = content[name]
        given = column.filter(pc.is_valid(column))
        for action in given.to_pylist():
            yield {name: _plain(action)}


def _plain(action: Action) -> Action:
    """The action as a commit has it: maps of Parquet are lists of pairs, and absent fields are null."""
    found = {key: value for key, value in action.items() if value is not None}
    for key in ("partitionValues", "tags", "configuration"):
        if isinstance(found.get(key), list):
            found[key] = dict(found[key])
    return found
