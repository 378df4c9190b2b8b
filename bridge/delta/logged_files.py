"""Opens the log of a table on a local disk, and reads the data files that it names as Parquet files.

For `appended_files` and `changed_files`, which answer only where Delta's answer is certain (docs/adr/045). Whatever is
not is `AskDelta` here: another file system, a table feature, partitions, column mapping, a log or files that are not
there any more, many files.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from bridge.delta.deletion_vectors.data_files import arrow_schema, open_parquet
from bridge.delta.deletion_vectors.snapshot import Action, Snapshot, open_snapshot
from bridge.delta.local_log import is_plain, local_folder
from bridge.delta.merge_contract import UnsupportedByEngine
from bridge.delta.table import Table
from bridge.delta.table_checks import CHANGE_FEED_PROPERTY, is_on
from bridge.session import session_settings

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "MOST_COMMITS",
    "MOST_FILES",
    "AskDelta",
    "asking_delta",
    "commits",
    "open_log",
    "paths",
    "read_files",
]

MOST_FILES = 1_000
"""Spark looks at each of them when it plans; Delta leaves files out by their statistics."""
MOST_COMMITS = 100
_MOST_ACTIONS = 5_000
"""Of a checkpoint, which has removed files, too."""
_LIST_IN_DRIVER = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_NOT_LISTED = re.compile(r"/[_.][^/]*$|[{}\[\]*?\\]|\._COPYING_$")
"""Files that Spark's reader of Parquet files leaves out, or whose name it takes for a pattern."""


class AskDelta(Exception):
    """Delta must be asked: it may answer otherwise, or has to say what is wrong."""


@contextmanager
def asking_delta() -> Iterator[None]:
    """Raise AskDelta in place of whatever is wrong with the log or a file, as Delta's own error names it."""
    try:
        yield
    except (UnsupportedByEngine, OSError, ValueError, LookupError, PySparkException) as reason:
        raise AskDelta from reason


def open_log(table: Table, version: int | None, *, with_files: bool = True) -> Snapshot:
    """Open a version, by default the newest, of a plain table with a change feed; without its files if nobody needs
    them. Raises AskDelta for another table, and what `asking_delta` turns into it."""
    place = local_folder(table.spark, table.target)
    if place is None:
        raise AskDelta
    snapshot = open_snapshot(str(place[1]), version, with_files=with_files, most=_MOST_ACTIONS)
    about = snapshot.metadata
    if about["id"] != table.id or about.get("partitionColumns"):
        raise AskDelta
    if not is_on(about["configuration"], CHANGE_FEED_PROPERTY) or not is_plain(snapshot.protocol, about):
        raise AskDelta
    return snapshot


def commits(snapshot: Snapshot, first: int, last: int) -> Iterator[tuple[int, list[Action]]]:
    """Yield the actions of versions first..last, each {name: action}; the columns and features of the table are the
    same in all of them. Raises AskDelta where a version is gone or changes these, and for many versions."""
    if not 0 < first <= last < first + MOST_COMMITS:
        raise AskDelta
    for version in range(first, last + 1):
        commit = snapshot.read_commit(version)
        if commit is None or any("metaData" in action or "protocol" in action for action in commit):
            raise AskDelta
        yield version, commit


def paths(snapshot: Snapshot, names: Sequence[str]) -> list[str]:
    """Where files are on this disk, by their paths in the log. Raises AskDelta where one is missing, for one that is
    named twice, for names that Spark would not read, and for many files."""
    files = [snapshot.path_of(name) for name in names]
    if len(files) > MOST_FILES or len(set(files)) < len(files):
        raise AskDelta
    if any(_NOT_LISTED.search(file) or not os.path.isfile(file) for file in files):
        raise AskDelta
    return files


def read_files(
    table: Table, snapshot: Snapshot, names: Sequence[str], more: Sequence[T.StructField] = ()
) -> DataFrame:
    """The table's columns, and `more`, of the rows in these files; null in files that are older than a column. No
    order. Raises AskDelta as `paths`."""
    present = {f.name: f for f in T.StructType.fromJson(json.loads(snapshot.metadata["schemaString"]))}
    schema = T.StructType([*(present[name] for name in table.columns), *more])
    files = paths(snapshot, names)
    if not files:
        return table.spark.createDataFrame([], schema)
    with session_settings(table.spark, {_LIST_IN_DRIVER: str(MOST_FILES)}):
        return table.spark.read.schema(schema).parquet(*(f"file://{file}" for file in files))


def read_in_driver(
    snapshot: Snapshot, names: Sequence[str], columns: Sequence[str], more: Sequence[pa.Field] = ()
) -> pa.Table:
    """These columns of the table, and `more`, of the rows in these files as Arrow, in the table's types; null in files
    that are older than a column. No order. Raises AskDelta as `paths`, and for files that only Spark reads right."""
    import pyarrow as pa

    known = arrow_schema(snapshot.metadata)
    schema = pa.schema([*(known.field(name) for name in columns), *more])
    tables = []
    for file in paths(snapshot, names):
        opened = open_parquet(file)
        present = set(opened.schema_arrow.names)
        found = opened.read(columns=[name for name in schema.names if name in present], use_threads=False)
        parts = [
            found[f.name].cast(f.type) if f.name in present else pa.nulls(opened.metadata.num_rows, f.type)
            for f in schema
        ]
        tables.append(pa.table(parts, schema=schema))
    return pa.concat_tables(tables) if tables else schema.empty_table()
