"""Finds the data files of appended rows, and of a version, in a log on a local disk, and lets Spark read them.

Delta answers the same from snapshots of the log and a plan of the change feed, which cost several Spark jobs: for a
batch of a script more than its query. Where this module could read other rows it answers None, and its callers ask
Delta: another file system, commits that did more than to append rows, deletion vectors, partitions, column mapping, a
log or files that are not there any more, many files. See docs/adr/045-appended-rows-are-read-from-their-files.md.
`rows_in_driver` reads the same files with Arrow.

Formats: "Delta Transaction Log Protocol" (PROTOCOL.md), "Add File and Remove File" and "Change Data Files".
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from bridge.delta.deletion_vectors.snapshot import Action, Snapshot, open_snapshot
from bridge.delta.local_log import is_plain, local_folder, newest_version
from bridge.delta.merge_contract import UnsupportedByEngine
from bridge.delta.table import Table
from bridge.delta.table_checks import CHANGE_FEED_PROPERTY, is_on
from bridge.session import session_settings

__all__ = [
    "MOST_FILES",
    "NamedFiles",
    "appended_files",
    "appended_rows",
    "files_at",
    "has_no_files",
    "newest_files",
    "newest_rows",
    "rows_at",
]

MOST_FILES = 1_000
"""Spark looks at each of them when it plans; Delta leaves files out by their statistics."""
_MOST_ACTIONS = 5_000
"""Of a checkpoint, which has removed files, too."""
_MOST_COMMITS = 100
_LIST_IN_DRIVER = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_NOT_LISTED = re.compile(r"/[_.][^/]*$|[{}\[\]*?\\]|\._COPYING_$")
"""Files that Spark's reader of Parquet files leaves out, or whose name it takes for a pattern."""


class _Other(Exception):
    """Delta must be asked."""


@contextmanager
def _as_other() -> Iterator[None]:
    """Whatever is wrong with the log or a file, Delta's own error names it."""
    try:
        yield
    except (UnsupportedByEngine, OSError, ValueError, LookupError, PySparkException) as reason:
        raise _Other from reason


@dataclass(frozen=True)
class NamedFiles:
    """Data files that a log names; all of them were there. Their rows, but for those that a deletion vector marks, are
    the rows that were asked for."""

    snapshot: Snapshot
    """A version that has the columns of the table."""
    adds: tuple[Action, ...]
    """The `add` action of each file."""
    fields: tuple[T.StructField, ...]
    """The table's columns as the log has them; a file lacks those that are newer."""

    @property
    def bytes(self) -> int:
        return sum(int(add["size"]) for add in self.adds)

    @property
    def paths(self) -> list[str]:
        """The files on this disk."""
        return [self.snapshot.path_of(add["path"]) for add in self.adds]


def appended_files(table: Table, first: int, last: int) -> NamedFiles | None:
    """The files of the rows that versions first..last, both inclusive and not the table's first one, have added, if
    they did nothing else to its rows. None where Delta must be asked, which then raises what is wrong."""
    if not 0 < first <= last < first + _MOST_COMMITS:
        return None
    try:
        with _as_other():
            snapshot = _opened(table, first - 1)
            commits = map(snapshot.read_commit, range(first, last + 1))
            return _named(table, snapshot, [add for commit in commits for add in _appended(commit)])
    except _Other:
        return None


def files_at(table: Table, version: int) -> NamedFiles | None:
    """The files of a version, some maybe with a deletion vector. None where Delta must be asked, which then raises what
    is wrong."""
    try:
        with _as_other():
            snapshot = _opened(table, version)
            return _named(table, snapshot, snapshot.files.values())
    except _Other:
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


def has_no_files(table: Table) -> bool:
    """Whether the newest version is known to have no data file, and so no row; False where Delta must be asked."""
    try:
        with _as_other():
            return not _opened(table, None).files
    except _Other:
        return False


def _opened(table: Table, version: int | None) -> Snapshot:
    place = local_folder(table.spark, table.target)
    if place is None:
        raise _Other
    snapshot = open_snapshot(str(place[1]), version, most=_MOST_ACTIONS)
    about = snapshot.metadata
    if about["id"] != table.id or about.get("partitionColumns"):
        raise _Other
    if not is_on(about["configuration"], CHANGE_FEED_PROPERTY) or not is_plain(snapshot.protocol, about):
        raise _Other
    return snapshot


def _appended(commit: Iterable[Action] | None) -> list[Action]:
    """The files of the rows that a commit added; none if it changed no rows, such as OPTIMIZE."""
    if commit is None:
        raise _Other
    adds = []
    for action in commit:
        (name, what), *_ = action.items()
        if name in ("cdc", "metaData", "protocol"):
            raise _Other
        if name in ("add", "remove") and what["dataChange"]:
            if name == "remove" or what.get("deletionVector"):
                raise _Other
            adds.append(what)
    return adds


def _named(table: Table, snapshot: Snapshot, adds: Iterable[Action]) -> NamedFiles:
    present = {f.name: f for f in T.StructType.fromJson(json.loads(snapshot.metadata["schemaString"]))}
    files = NamedFiles(snapshot, tuple(adds), tuple(present[name] for name in table.columns))
    paths = files.paths
    if len(paths) > MOST_FILES or len(set(paths)) < len(paths) or not all(map(os.path.isfile, paths)):
        raise _Other
    return files


def _rows(table: Table, files: NamedFiles | None) -> DataFrame | None:
    """The table's columns of the rows in these files; null in files that are older than a column."""
    if files is None or any(add.get("deletionVector") for add in files.adds):
        return None
    schema, paths = T.StructType(list(files.fields)), files.paths
    try:
        with _as_other():
            if not paths:
                return table.spark.createDataFrame([], schema)
            if any(map(_NOT_LISTED.search, paths)):
                return None
            with session_settings(table.spark, {_LIST_IN_DRIVER: str(MOST_FILES)}):
                return table.spark.read.schema(schema).parquet(*(f"file://{path}" for path in paths))
    except _Other:
        return None
