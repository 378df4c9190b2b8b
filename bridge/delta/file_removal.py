"""Removes data files whose rows are no longer needed, as if they had been compacted away.

The rows are not deleted for readers of the change feed: the commit says that it changes no data, as OPTIMIZE does, so
nothing is published. The versions before it still have the rows, until VACUUM.
"""

from __future__ import annotations

import json
import time
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from bridge.delta.delta_errors import error_names, retry_conflicts
from bridge.delta.table import Table, set_properties
from bridge.errors import TableError
from bridge.formats.sql import literal

_PROPERTY = "bridge.rows-removed-before"
"""Table property: rows of a time before it, in epoch milliseconds, may be missing."""
_PHYSICAL = "delta.columnMapping.physicalName"
_KEPT = ("path", "size", "tags", "partitionValues", "deletionVector", "baseRowId", "defaultRowCommitVersion")


def removed_before(table: Table) -> int | None:
    """The time, in epoch milliseconds, before which rows may have been removed when the table was opened; None if it
    has all rows."""
    found = table.properties.get(_PROPERTY)
    return None if found is None else int(found)


def remove_files_before(table: Table, column: str, before_ms: int) -> int:
    """Remove the files all of whose rows have a time in `column` before `before_ms`, in one commit that changes no
    data; return their number.

    The time is committed to the table's properties first: after a kill in between all rows are there, which the
    property allows. Files without statistics of the column stay. Where there is no such file, nothing is committed.
    Raises TableError when every attempt conflicted with other writers, and when this release of Delta lacks the methods
    that it needs.
    """
    try:
        return _remove_files(table, column, before_ms)
    except (Py4JError, PySparkException, TypeError) as error:
        if error_names(error):
            raise
        raise TableError(
            f"table {table}: this release of Delta has no way to remove files; keep rows of closed windows "
            "(SET 'bridge.state.closed-windows' = 'keep')"
        ) from error


def _remove_files(table: Table, column: str, before_ms: int) -> int:
    if not _files(_transaction(table), column, before_ms).size():
        return 0
    known = removed_before(table)
    if known is None or known < before_ms:
        set_properties(table.spark, table.target, {_PROPERTY: str(before_ms)})
    return retry_conflicts(
        table,
        lambda: _remove(table, column, before_ms),
        f"table {table}: removing files",
        "nothing was removed; run again when other jobs on this table have ended",
    )


def _transaction(table: Table) -> Any:
    jvm: Any = table.spark._jvm
    none = jvm.scala.Option.empty()
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(table.spark._jsparkSession, table.location)
    return log.startTransaction(none, none)


def _files(transaction: Any, column: str, before_ms: int) -> Any:
    """The `AddFile`s of the files to remove, a list of the JVM."""
    fields = json.loads(transaction.snapshot().schema().json())["fields"]
    name = next(f["metadata"].get(_PHYSICAL, f["name"]) for f in fields if f["name"] == column)
    newest = f"from_json(stats, 'maxValues MAP<STRING, STRING>').maxValues[{literal(name)}]"
    # Times without a zone are in UTC. Statistics are cut to milliseconds, so the newest row may be of one more.
    time = f"CAST(IF({newest} RLIKE '(Z|[+-][0-9]{{2}}:[0-9]{{2}})$', {newest}, CONCAT({newest}, 'Z')) AS TIMESTAMP)"
    return transaction.snapshot().allFiles().where(f"UNIX_MILLIS({time}) < {before_ms}").collectAsList()


def _remove(table: Table, column: str, before_ms: int) -> int:
    transaction = _transaction(table)
    files = _files(transaction, column, before_ms)
    if not files.size():
        return 0
    jvm: Any = table.spark._jvm
    delta, scala = jvm.org.apache.spark.sql.delta, jvm.scala.jdk.javaapi.CollectionConverters
    # Marks all files as read: a concurrent commit that removes one of them makes this commit fail.
    transaction.filterFiles()
    actions = jvm.java.util.ArrayList()
    for file in files:
        actions.add(delta.actions.Action.fromJson(_remove_action(file.json())))
    manual = getattr(getattr(delta, "DeltaOperations$ManualUpdate$"), "MODULE$")
    transaction.commit(scala.asScala(actions).toSeq(), manual)
    return int(files.size())


def _remove_action(text: str) -> str:
    """The `remove` action (JSON) of an `add` action's file."""
    add = json.loads(text)["add"]
    kept = {key: add[key] for key in _KEPT if add.get(key) is not None}
    about = {"deletionTimestamp": int(time.time() * 1000), "dataChange": False, "extendedFileMetadata": True}
    return json.dumps({"remove": {**kept, **about}})
