"""Reads the change data feed of versions from the files that its log names.

Delta plans the same from a snapshot of the table and a relation for each part of the feed, which takes several Spark
jobs: more than a small range has rows. Where this module could read other changes it raises NotThisWay, and its callers
ask Delta: see `logged_files`, and commits that removed whole files, or marked rows, without a file of changes.

Rules: "Change Data Files" in the Delta protocol (PROTOCOL.md): where a version has files of changes, its changes are
theirs and no others; where it has none, rows of added files are inserts. Files that change no data, as those of
OPTIMIZE, have no changes. See docs/adr/046-small-ranges-are-read-and-sent-by-the-driver.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.delta.logged_files import (
    NamedFiles,
    added_files,
    asking_delta,
    commits,
    named_files,
    open_log,
    read_files,
)
from bridge.delta.rows_in_driver import read_columns
from bridge.delta.table import Table
from bridge.lake.snapshot import Action, Snapshot
from bridge.lake.store import at_once
from bridge.ways import NotThisWay

CHANGE_TYPE, COMMIT_VERSION = "_change_type", "_commit_version"
"""Delta's names for what a change is, and for its version."""
INSERT, BEFORE_IMAGE, DELETE = "insert", "update_preimage", "delete"
"""Delta's names for an inserted row, the row before an update, and a deleted one."""
MOST_VERSIONS = 16
"""With changes, in one frame: each is a part of the plan."""


@dataclass(frozen=True)
class VersionFiles:
    """The files that have the changes of a version, as the actions that name them."""

    version: int
    actions: tuple[Action, ...]
    of_changes: bool
    """Whether they say what each change is; if not, all are inserts."""

    @property
    def bytes(self) -> int:
        return sum(int(action["size"]) for action in self.actions)


def changed_files(table: Table, first: int, last: int) -> tuple[Snapshot, list[VersionFiles]]:
    """The files that have the changes of versions first..last, both inclusive, by ascending version, and the table as
    it was before; versions that changed no rows are left out. Raises NotThisWay.

    Every version is there, has a change feed, and has the columns of the version before. Reads the log only: files may
    be gone.
    """
    with asking_delta():
        snapshot = open_log(table, first - 1, with_files=False)
        found = [_files_of(version, commit) for version, commit in commits(snapshot, first, last)]
        return snapshot, [files for files in found if files.actions]


def changed_rows(table: Table, first: int, last: int) -> DataFrame:
    """The table's columns, CHANGE_TYPE and COMMIT_VERSION of all changes of versions first..last, both inclusive, as
    Delta's change data feed has them; no order. Raises NotThisWay where Delta must be asked, which then raises what is
    wrong.

    Runs no job; wrap actions in `feed_errors`, as a file may be vacuumed meanwhile.
    """
    snapshot, versions = changed_files(table, first, last)
    if len(versions) > MOST_VERSIONS:
        raise NotThisWay(f"more than {MOST_VERSIONS} versions have changes")
    with asking_delta():
        parts = [_changes(table, snapshot, files) for files in versions or [_NO_FILES]]
        return reduce(DataFrame.unionByName, parts)


def changes_in_driver(
    table: Table, first: int, last: int, columns: Sequence[str], *, most_bytes: int, most_rows: int
) -> pa.Table:
    """Some columns and CHANGE_TYPE of the same changes as Arrow, in ascending order of their versions.

    Raises NotThisWay, too, where their files have more bytes or rows than may come."""
    snapshot, versions = changed_files(table, first, last)
    if (size := sum(files.bytes for files in versions)) > most_bytes:
        raise NotThisWay(f"its files have {size >> 20:,} MiB, more than {most_bytes >> 20:,} MiB")

    def rows_of(files: VersionFiles) -> pa.Table:
        named = _named(table, snapshot, files)
        kind = [CHANGE_TYPE] if files.of_changes else []
        rows = read_columns(named, [*columns, *kind], most_rows=most_rows)
        if not files.of_changes:
            rows = rows.append_column(CHANGE_TYPE, pa.repeat(pa.scalar(INSERT), rows.num_rows))
        return rows

    with asking_delta():
        parts = at_once(rows_of, versions or [_NO_FILES])
    if sum(rows.num_rows for rows in parts) > most_rows:
        raise NotThisWay(f"its files have more than {most_rows:,} rows")
    return pa.concat_tables(parts)


_NO_FILES = VersionFiles(0, (), of_changes=True)


def _named(table: Table, snapshot: Snapshot, files: VersionFiles) -> NamedFiles:
    kind = [T.StructField(CHANGE_TYPE, T.StringType())] if files.of_changes else []
    return named_files(table, snapshot, files.actions, kind)


def _changes(table: Table, snapshot: Snapshot, files: VersionFiles) -> DataFrame:
    rows = read_files(table, _named(table, snapshot, files))
    if not files.of_changes:
        rows = rows.withColumn(CHANGE_TYPE, F.lit(INSERT))
    return rows.withColumn(COMMIT_VERSION, F.lit(files.version).cast("bigint"))


def _files_of(version: int, commit: Sequence[Action]) -> VersionFiles:
    of_changes = [action["cdc"] for action in commit if "cdc" in action]
    return VersionFiles(version, tuple(of_changes or added_files(commit)), bool(of_changes))
