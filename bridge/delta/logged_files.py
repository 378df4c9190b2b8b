"""Opens the log of a table, and finds the data files that it names.

For `appended_files` and `changed_files`, which answer only where Delta's answer is certain (docs/adr/045). All else is
NotThisWay: a store that the driver does not reach, a table feature, partitions, column mapping, a log or files that are
not there any more, many files. Spark reads the files as Parquet (`read_files`), or
Arrow does (`rows_in_driver`).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from bridge.delta.log_description import is_plain, log_store
from bridge.delta.table import Table
from bridge.delta.table_checks import CHANGE_FEED_PROPERTY, is_on
from bridge.lake.local_store import LocalStore
from bridge.lake.snapshot import Action, Snapshot, followed
from bridge.session import session_settings
from bridge.ways import NotThisWay

MOST_FILES = 1_000
"""Spark looks at each of them when it plans; Delta leaves files out by their statistics."""
MOST_COMMITS = 100
_LIST_IN_DRIVER = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_NOT_LISTED = re.compile(r"(?:^|/)[_.][^/]*$|[{}\[\]*?\\]|\._COPYING_$")
"""Files that Spark's reader of Parquet files leaves out, or whose name it takes for a pattern."""


@contextmanager
def asking_delta() -> Iterator[None]:
    """Raise NotThisWay in place of whatever is wrong with the log or a file, as Delta's own error names it."""
    try:
        yield
    except (OSError, ValueError, LookupError, PySparkException) as reason:
        raise NotThisWay("Delta says what is wrong with its log or a file") from reason


@dataclass(frozen=True)
class NamedFiles:
    """Files that a log names; all of them were there. Their rows, but for those that a deletion vector marks, are the
    rows that were asked for."""

    snapshot: Snapshot
    """A version that has the columns of the table."""
    adds: tuple[Action, ...]
    """The action that names each file: `add`, or `cdc`."""
    fields: tuple[T.StructField, ...]
    """The columns to read, as the log has them; a file lacks those that are newer."""

    @property
    def bytes(self) -> int:
        return sum(int(add["size"]) for add in self.adds)

    @property
    def paths(self) -> list[str]:
        """The paths of the files in the store."""
        return [self.snapshot.path_of(add["path"]) for add in self.adds]


def open_log(table: Table, version: int | None, *, with_files: bool = True) -> Snapshot:
    """Open a version, by default the newest, of a plain table with a change feed. If nobody needs its files, it may be
    a later version that is described alike: `followed`. Raises NotThisWay for another table, and for one of many
    files if they are needed. Use within `asking_delta`."""
    store = log_store(table.spark, table.target)
    if store is None:
        raise NotThisWay("the driver does not reach the table's log")
    snapshot = followed(store, version, with_files=with_files, most=MOST_FILES if with_files else None)
    about = snapshot.metadata
    if about["id"] != table.id:
        raise NotThisWay("another table has replaced this one")
    if about.get("partitionColumns"):
        raise NotThisWay("the table is partitioned")
    if not is_on(about["configuration"], CHANGE_FEED_PROPERTY):
        raise NotThisWay("the table has no change feed")
    if not is_plain(snapshot.protocol, about):
        raise NotThisWay("the table has a feature, or a column a property, that only Delta knows")
    return snapshot


def commits(snapshot: Snapshot, first: int, last: int) -> Iterator[tuple[int, list[Action]]]:
    """Yield the actions of versions first..last, each {name: action}; the columns and features of the table are the
    same in all of them. Raises NotThisWay where a version is gone or changes these, and for many versions."""
    if not 0 < first <= last:
        raise NotThisWay("the versions begin with the table")
    if last >= first + MOST_COMMITS:
        raise NotThisWay(f"these are more than {MOST_COMMITS} versions")
    for version in range(first, last + 1):
        commit = snapshot.read_commit(version)
        if commit is None:
            raise NotThisWay(f"version {version} is gone")
        if any("metaData" in action or "protocol" in action for action in commit):
            raise NotThisWay(f"version {version} changes the table's columns or properties")
        yield version, commit


def added_files(commit: Iterable[Action]) -> list[Action]:
    """The `add` actions of the rows that a commit added; none if it changed no rows, such as OPTIMIZE.

    Raises NotThisWay if it removed rows, or added a file with a deletion vector."""
    adds = []
    for action in commit:
        (name, what), *_ = action.items()
        if name in ("add", "remove") and what["dataChange"]:
            if name == "remove" or what.get("deletionVector"):
                raise NotThisWay("a commit removed rows without a file of changes")
            adds.append(what)
    return adds


def named_files(
    table: Table, snapshot: Snapshot, adds: Iterable[Action], more: Sequence[T.StructField] = ()
) -> NamedFiles:
    """The files of these actions, with the table's columns and `more`.

    Raises NotThisWay where a file is missing, for one that is named twice, and for many; LookupError where the table
    had not all of its columns."""
    present = {f.name: f for f in T.StructType.fromJson(json.loads(snapshot.metadata["schemaString"]))}
    fields = (*(present[f.name] for f in table.read_fields), *more)
    files = NamedFiles(snapshot, tuple(adds), fields)
    paths = files.paths
    if len(paths) > MOST_FILES or len(set(paths)) < len(paths):
        raise NotThisWay(f"these are more than {MOST_FILES:,} files, or a file is named twice")
    store = snapshot.store
    if isinstance(store, LocalStore) and any(store.head(path) is None for path in paths):
        raise NotThisWay("a file is gone")  # elsewhere the first read says so
    return files


def read_files(table: Table, files: NamedFiles) -> DataFrame:
    """The rows of these files, without an order; null in files that are older than a column. Runs no job.

    Raises NotThisWay for a file with a deletion vector, and for names that Spark would not read."""
    schema, paths = T.StructType(list(files.fields)), files.paths
    if not paths:
        return table.spark.createDataFrame([], schema)
    store = files.snapshot.store
    if any(add.get("deletionVector") for add in files.adds):
        raise NotThisWay("rows of a file are marked as deleted")
    if any(map(_NOT_LISTED.search, paths)):
        raise NotThisWay("a file has a name that Spark's reader leaves out")
    if not isinstance(store, LocalStore):
        raise NotThisWay("Spark would ask the store for each file before it reads it")
    with session_settings(table.spark, {_LIST_IN_DRIVER: str(MOST_FILES)}):
        return table.spark.read.schema(schema).parquet(
            *(f"file://{os.path.join(store.folder, path)}" for path in paths)
        )
