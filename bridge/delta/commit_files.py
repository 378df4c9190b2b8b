"""Counts the data files that a commit added and removed, and the commits since the last checkpoint."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bridge.delta.table import Table
from bridge.lake.snapshot import Action, Snapshot, last_checkpoint
from bridge.storage import store_at
from bridge.ways import NotThisWay


@dataclass(frozen=True)
class FileChanges:
    """Data files and their bytes. A file that only gets a deletion vector is neither written nor rewritten."""

    written: int = 0
    bytes_written: int = 0
    rewritten: int = 0
    """Files that were removed, as their rows are in other files now, or nowhere."""
    bytes_rewritten: int = 0


def file_changes(actions: Iterable[Action]) -> FileChanges:
    """Return what the actions of a commit, each {name: action}, do to data files."""
    added: dict[str, int] = {}
    removed: dict[str, int] = {}
    for action in actions:
        for name, sizes in (("add", added), ("remove", removed)):
            if name in action:
                sizes[action[name]["path"]] = int(action[name].get("size") or 0)
    written = [size for path, size in added.items() if path not in removed]
    rewritten = [size for path, size in removed.items() if path not in added]
    return FileChanges(len(written), sum(written), len(rewritten), sum(rewritten))


def read_file_changes(table: Table, version: int) -> FileChanges:
    """Return what that version did, from the log; nothing where only Spark reaches the log."""
    try:
        actions = Snapshot(store_at(table.spark, table.location)).read_commit(version, ("add", "remove"))
    except (NotThisWay, OSError):
        return FileChanges()
    return file_changes(actions or ())


def commits_since_checkpoint(table: Table, version: int) -> int | None:
    """Return how many commits up to `version` a reader of the table applies to its last checkpoint; None where only
    Spark reaches the log."""
    try:
        return version - last_checkpoint(store_at(table.spark, table.location))[0]
    except NotThisWay:
        return None
