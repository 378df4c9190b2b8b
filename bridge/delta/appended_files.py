"""Finds the data files of appended rows, and of a version, in the log, and lets Spark read them.

Delta answers the same from snapshots of the log and a plan of the change feed, which cost several Spark jobs: for a
batch of a script more than its query. Where this module could read other rows it answers None, and its callers ask
Delta: see `logged_files`, commits that did more than to append rows, deletion vectors. See
docs/adr/045-appended-rows-are-read-from-their-files.md.

Formats: "Delta Transaction Log Protocol" (PROTOCOL.md), "Add File and Remove File" and "Change Data Files".
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from bridge.delta.log_description import newest_version
from bridge.delta.logged_files import (
    AskDelta,
    NamedFiles,
    added_files,
    asking_delta,
    commits,
    named_files,
    open_log,
    read_files,
)
from bridge.delta.table import Table
from bridge.lake.snapshot import Action, live_rows

__all__ = [
    "appended_files",
    "appended_rows",
    "count_at",
    "files_at",
    "has_no_files",
    "newest_files",
    "newest_rows",
    "rows_at",
]


def appended_files(table: Table, first: int, last: int) -> NamedFiles | None:
    """The files of the rows that versions first..last, both inclusive and not the table's first one, have added, if
    they did nothing else to its rows. None where Delta must be asked, which then raises what is wrong."""
    try:
        with asking_delta():
            snapshot = open_log(table, first - 1, with_files=False)
            adds = [add for _, commit in commits(snapshot, first, last) for add in _appended(commit)]
            return named_files(table, snapshot, adds)
    except AskDelta:
        return None


def files_at(table: Table, version: int) -> NamedFiles | None:
    """The files of a version, some maybe with a deletion vector. None where Delta must be asked, which then raises what
    is wrong."""
    try:
        with asking_delta():
            snapshot = open_log(table, version)
            return named_files(table, snapshot, snapshot.files.values())
    except AskDelta:
        return None


def newest_files(table: Table) -> NamedFiles | None:
    """The files of the newest version; None as `files_at`."""
    version = newest_version(table.spark, table.target)
    return None if version is None else files_at(table, version)


def appended_rows(table: Table, first: int, last: int) -> DataFrame | None:
    """The rows of `appended_files`; no order. None where Delta must be asked, which then raises what is wrong.

    They are the inserts of `change_feed.changes`. Runs no job; wrap actions in `feed_errors`.
    """
    return _rows(table, appended_files(table, first, last))


def rows_at(table: Table, version: int) -> DataFrame | None:
    """All rows of a version, without an order. None where Delta must be asked, which then raises what is wrong.

    Runs no job; wrap actions in `feed_errors`, as a file may be vacuumed meanwhile.
    """
    return _rows(table, files_at(table, version))


def newest_rows(table: Table) -> DataFrame | None:
    """All rows of the newest version; None as `rows_at`."""
    return _rows(table, newest_files(table))


def count_at(table: Table, version: int) -> int | None:
    """The number of rows of a version by the statistics of its files; None where Delta must be asked, or a file has
    none. Reads the log only."""
    try:
        with asking_delta():
            counts = [live_rows(add) for add in open_log(table, version).files.values()]
    except AskDelta:
        return None
    return None if None in counts else sum(count for count in counts if count is not None)


def has_no_files(table: Table) -> bool:
    """Whether the newest version is known to have no data file, and so no row; False where Delta must be asked."""
    try:
        with asking_delta():
            return not open_log(table, None).files
    except AskDelta:
        return False


def _appended(commit: Sequence[Action]) -> list[Action]:
    if any("cdc" in action for action in commit):
        raise AskDelta
    return added_files(commit)


def _rows(table: Table, files: NamedFiles | None) -> DataFrame | None:
    if files is None:
        return None
    try:
        with asking_delta():
            return read_files(table, files)
    except AskDelta:
        return None
