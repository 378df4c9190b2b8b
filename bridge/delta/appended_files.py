"""Finds the data files of appended rows, and of a version, in the log, and lets Spark read them.

Delta answers the same from snapshots of the log and a plan of the change feed, which cost several Spark jobs: for a
batch of a script more than its query. Where this module could read other rows it raises NotThisWay, and its callers ask
Delta: see `logged_files`, commits that did more than to append rows, deletion vectors. See
docs/adr/045-appended-rows-are-read-from-their-files.md.

Formats: "Delta Transaction Log Protocol" (PROTOCOL.md), "Add File and Remove File" and "Change Data Files".
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from bridge.delta.logged_files import (
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
from bridge.ways import NotThisWay


def appended_files(table: Table, first: int, last: int) -> NamedFiles:
    """The files of the rows that versions first..last, both inclusive and not the table's first one, have added, if
    they did nothing else to its rows. Raises NotThisWay where Delta must be asked, which then raises what is wrong."""
    with asking_delta():
        snapshot = open_log(table, first - 1, with_files=False)
        adds = [add for _, commit in commits(snapshot, first, last) for add in _appended(commit)]
        return named_files(table, snapshot, adds)


def files_at(table: Table, version: int | None) -> NamedFiles:
    """The files of a version, by default the newest, some maybe with a deletion vector. Raises as `appended_files`."""
    with asking_delta():
        snapshot = open_log(table, version)
        return named_files(table, snapshot, snapshot.files.values())


def appended_rows(table: Table, first: int, last: int) -> DataFrame:
    """The rows of `appended_files`, without an order; null in files that are older than a column.

    They are the inserts of `change_feed.changes`. Runs no job; wrap actions in `feed_errors`. Raises as
    `appended_files`.
    """
    with asking_delta():
        return read_files(table, appended_files(table, first, last))


def rows_at(table: Table, version: int | None) -> DataFrame:
    """All rows of a version, by default the newest, without an order. Raises as `appended_files`.

    Runs no job; wrap actions in `feed_errors`, as a file may be vacuumed meanwhile.
    """
    with asking_delta():
        return read_files(table, files_at(table, version))


def count_at(table: Table, version: int) -> int:
    """The number of rows of a version by the statistics of its files. Reads the log only. Raises NotThisWay where Delta
    must be asked, or a file has none."""
    with asking_delta():
        counts = [live_rows(add) for add in open_log(table, version).files.values()]
    if None in counts:
        raise NotThisWay("a file has no count of its rows")
    return sum(count for count in counts if count is not None)


def has_no_files(table: Table) -> bool:
    """Whether the newest version is known to have no data file, and so no row; False where Delta must be asked."""
    try:
        with asking_delta():
            return not open_log(table, None).files
    except NotThisWay:
        return False


def _appended(commit: Sequence[Action]) -> list[Action]:
    if any("cdc" in action for action in commit):
        raise NotThisWay("a commit changed rows")
    return added_files(commit)
