"""Reads appended rows, and the rows of a version, from the data files that a log on a local disk names.

Delta answers the same from snapshots of the log and a plan of the change feed, which cost several Spark jobs: for a
batch of a script more than its query. Where this module could read other rows it answers None, and its callers ask
Delta: another file system, commits that did more than to append rows, deletion vectors, partitions, column mapping, a
log or files that are not there any more, many files. See docs/adr/045-appended-rows-are-read-from-their-files.md.

Formats: "Delta Transaction Log Protocol" (PROTOCOL.md), "Add File and Remove File" and "Change Data Files".
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from bridge.delta.deletion_vectors.snapshot import Action, Snapshot, open_snapshot
from bridge.delta.local_log import is_plain, local_folder, newest_version
from bridge.delta.merge_contract import UnsupportedByEngine
from bridge.delta.table import Table
from bridge.delta.table_checks import CHANGE_FEED_PROPERTY, is_on
from bridge.session import session_settings

__all__ = ["MOST_FILES", "appended_rows", "has_no_files", "newest_rows", "rows_at"]

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


def appended_rows(table: Table, first: int, last: int) -> DataFrame | None:
    """The rows that versions first..last, both inclusive and not the table's first one, have added, if they did nothing
    else to its rows; no order. None where Delta must be asked, which then raises what is wrong.

    They are the inserts of `change_feed.changes`. Runs no job; wrap actions in `feed_errors`.
    """
    if not 0 < first <= last < first + _MOST_COMMITS:
        return None
    try:
        with _as_other():
            snapshot = _opened(table, first - 1)
            names = [
                name
                for version in range(first, last + 1)
                for name in _appended(snapshot.read_commit(version))
            ]
            return _read(table, snapshot, names)
    except _Other:
        return None


def rows_at(table: Table, version: int) -> DataFrame | None:
    """All rows of a version, without an order. None where Delta must be asked, which then raises what is wrong.

    Runs no job; wrap actions in `feed_errors`, as a file may be vacuumed meanwhile.
    """
    try:
        with _as_other():
            snapshot = _opened(table, version)
            if any(add.get("deletionVector") for add in snapshot.files.values()):
                return None
            return _read(table, snapshot, snapshot.files)
    except _Other:
        return None


def newest_rows(table: Table) -> DataFrame | None:
    """All rows of the newest version; None as `rows_at`."""
    version = newest_version(table.spark, table.target)
    return None if version is None else rows_at(table, version)


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


def _appended(commit: Iterable[Action] | None) -> list[str]:
    """The files of the rows that a commit added; none if it changed no rows, such as OPTIMIZE."""
    if commit is None:
        raise _Other
    names = []
    for action in commit:
        (name, what), *_ = action.items()
        if name in ("cdc", "metaData", "protocol"):
            raise _Other
        if name in ("add", "remove") and what["dataChange"]:
            if name == "remove" or what.get("deletionVector"):
                raise _Other
            names.append(what["path"])
    return names


def _read(table: Table, snapshot: Snapshot, names: Iterable[str]) -> DataFrame:
    """The table's columns of the rows in these files; null in files that are older than a column."""
    present = {f.name: f for f in T.StructType.fromJson(json.loads(snapshot.metadata["schemaString"]))}
    schema = T.StructType([present[name] for name in table.columns])
    files = [snapshot.path_of(name) for name in names]
    if not files:
        return table.spark.createDataFrame([], schema)
    if len(files) > MOST_FILES or len(set(files)) < len(files):
        raise _Other
    if any(_NOT_LISTED.search(file) or not os.path.isfile(file) for file in files):
        raise _Other
    with session_settings(table.spark, {_LIST_IN_DRIVER: str(MOST_FILES)}):
        return table.spark.read.schema(schema).parquet(*(f"file://{file}" for file in files))
