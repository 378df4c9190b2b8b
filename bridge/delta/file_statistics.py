"""Removes wrong file statistics that delta-rs wrote for older bridges and for other users.

delta-rs computes the minimum and maximum of a DECIMAL as a double. Beyond 15 digits that is another number, and every
reader that filters by the right one, Spark and delta-rs alike, skips the file that has it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import types as T

from bridge.backend import Feature, backend_of
from bridge.delta.delta_errors import error_names, retry_conflicts
from bridge.delta.table import Table
from bridge.errors import TableError
from bridge.formats.sql import literal
from bridge.lake.statistics import EXACT_DIGITS

_NAMED_BY_DELTA_RS = "-c[0-9]{3,}[.][^/]*$"
"""The end of the names of its data files: `-c000.snappy.parquet`, where Spark writes `.c000.snappy.parquet`."""
_BOUNDS = ("minValues", "maxValues")
_PHYSICAL = "delta.columnMapping.physicalName"


def repair_statistics(table: Table) -> str | None:
    """Remove wrong statistics from the table's log and return a warning; None where there are none.

    Statistics of a DECIMAL of more than 15 digits may be wrong in files that delta-rs wrote. One commit removes them
    and changes neither rows nor data files. A table without such a column costs nothing, any other a scan of its file
    list. Nothing is looked for through Spark Connect.

    Raises TableError when every attempt to commit conflicted with other writers, and when this release of Delta
    lacks the methods that it needs.
    """
    if not _has_wide(table) or backend_of(table.spark).can(Feature.FILE_ACTIONS) is not None:
        return None
    try:
        repaired = retry_conflicts(
            table,
            lambda: _repair(table),
            f"table {table}: removing wrong statistics",
            "nothing was changed; start again when other jobs on this table have ended",
        )
    except (Py4JError, PySparkException, TypeError) as error:
        if error_names(error):
            raise
        raise TableError(
            f"table {table} has a DECIMAL of more than {EXACT_DIGITS} digits, for which older bridges and other users "
            "of delta-rs have written wrong file statistics, and this release of Delta has no way to find them. Run "
            "`bridge maintain FILE` once where the bridge itself starts Spark"
        ) from error
    if repaired is None:
        return None
    files, columns = repaired
    return (
        f"table {table}: {files:,} files had wrong statistics of {', '.join(columns)}, written by delta-rs. They are "
        "removed now. Before that, a MERGE may have inserted a row a second time instead of updating it, or may not "
        "have deleted it: `bridge verify FILE` finds such rows, `bridge resync FILE` repairs them"
    )


def _repair(table: Table) -> tuple[int, list[str]] | None:
    """Commit the removal; return (number of files, columns), None where no statistics were wrong."""
    spark = table.spark
    jvm: Any = spark._jvm
    delta, scala = jvm.org.apache.spark.sql.delta, jvm.scala.jdk.javaapi.CollectionConverters
    none = jvm.scala.Option.empty()
    txn = delta.DeltaLog.forTable(spark._jsparkSession, table.location).startTransaction(none, none)
    columns = _wide(json.loads(txn.snapshot().schema().json()))
    wrong = txn.snapshot().allFiles().where(_has_bounds(columns)).collectAsList()
    if not wrong.size():
        return None
    # Marks all files as read: a concurrent commit that removes one of them makes this commit fail.
    txn.filterFiles()
    actions = jvm.java.util.ArrayList()
    for file in wrong:
        actions.add(delta.actions.Action.fromJson(without_bounds(file.json(), columns)))
    nothing = scala.asScala(jvm.java.util.ArrayList()).toSeq()
    txn.commit(scala.asScala(actions).toSeq(), delta.DeltaOperations.ComputeStats(nothing))
    return wrong.size(), list(columns.values())


def _has_bounds(columns: Collection[str]) -> str:
    """SQL that is true of a file that delta-rs wrote and whose statistics bound one of these columns."""
    stats = "from_json(stats, 'minValues MAP<STRING, STRING>, maxValues MAP<STRING, STRING>')"
    bounded = " OR ".join(
        f"{stats}.{bound}[{literal(name)}] IS NOT NULL" for name in columns for bound in _BOUNDS
    )
    return f"path RLIKE {literal(_NAMED_BY_DELTA_RS)} AND ({bounded})"


def without_bounds(text: str, columns: Collection[str]) -> str:
    """Return an `add` action (JSON) of the same file without bounds of these columns; its rows do not change."""
    action = json.loads(text)
    add = action["add"]
    stats = json.loads(add["stats"])
    for bound in _BOUNDS:
        stats[bound] = {name: value for name, value in stats.get(bound, {}).items() if name not in columns}
    add["stats"], add["dataChange"] = json.dumps(stats), False
    return json.dumps(action)


def _wide(schema: Mapping[str, Any]) -> dict[str, str]:
    """The DECIMAL columns of more than 15 digits: name in the data files -> name in the table."""
    return {
        f["metadata"].get(_PHYSICAL, f["name"]): f["name"]
        for f in schema["fields"]
        if isinstance(f["type"], str) and _is_wide(T.StructField.fromJson(f).dataType)
    }


def _has_wide(table: Table) -> bool:
    return any(_is_wide(f.dataType) for f in table.fields)


def _is_wide(type: T.DataType) -> bool:
    return isinstance(type, T.DecimalType) and type.precision > EXACT_DIGITS
