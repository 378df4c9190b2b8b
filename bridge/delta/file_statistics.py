"""File statistics that delta-rs must not write, and those that it has written.

delta-rs makes a DECIMAL's minimum and maximum from a double. Beyond 15 digits that is another number, and every reader
that looks for the right one, Spark and delta-rs alike, passes over the file that holds it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import types as T

from bridge.delta.delta_errors import error_names, retry_conflicts
from bridge.delta.table import Table
from bridge.errors import TableError
from bridge.formats.sql import literal

__all__ = ["repair_statistics", "statistics_settings"]

_DIGITS = 15
"""A double holds any decimal number of so many digits, and gives the same digits back."""
_BYTES = 32
"""Of a string; its maximum is rounded up to the next string of that length. Spark keeps 32 characters."""
_NAMED_BY_DELTA_RS = "-c[0-9]{3,}[.][^/]*$"
"""How the names of its data files end: `-c000.snappy.parquet`, where Spark writes `.c000.snappy.parquet`."""
_ENDS = ("minValues", "maxValues")
_PHYSICAL = "delta.columnMapping.physicalName"


def statistics_settings(fields: Sequence[T.StructField]) -> Any:
    """How delta-rs writes data files with these columns: Snappy, as Spark does, and statistics that are right.

    Strings are cut. Columns whose statistics would be wrong have none: a DECIMAL of more than 15 digits, and floating
    point, as delta-rs leaves NaN out and Spark takes NaN for the largest value.
    """
    from deltalake import ColumnProperties, WriterProperties

    none = ColumnProperties(statistics_enabled="NONE")
    without = {
        f.name: none
        for f in fields
        if _is_wide(f.dataType) or isinstance(f.dataType, T.FloatType | T.DoubleType)
    }
    return WriterProperties(
        compression="SNAPPY", statistics_truncate_length=_BYTES, column_properties=without or None
    )


def repair_statistics(table: Table) -> str | None:
    """Take the wrong statistics out of the table, if it has any, and say so; else None.

    Wrong may be those of a DECIMAL of more than 15 digits in a file that delta-rs has written. They are left out in one
    commit that changes no row and writes no data file. A table without such a column costs nothing, another one a look
    at the list of its files. Raises TableError when the commit has lost against other writers again and again, and when
    this Delta has no way to do it.
    """
    if not _has_wide(table):
        return None
    try:
        found = retry_conflicts(
            table,
            lambda: _mend(table),
            f"table {table}: leaving out wrong statistics",
            "nothing was changed; start again when other jobs on this table have ended",
        )
    except (Py4JError, PySparkException, TypeError) as error:
        if error_names(error):
            raise
        raise TableError(
            f"table {table} has a DECIMAL of more than {_DIGITS} digits, of which older bridges and other users of "
            "delta-rs have written wrong file statistics, and this release of Delta has no way to look for them. Run "
            "`bridge maintain FILE` once where the bridge starts Spark by itself"
        ) from error
    if found is None:
        return None
    files, columns = found
    return (
        f"table {table}: {files:,} files had wrong statistics of {', '.join(columns)}, written by delta-rs. They are "
        "left out now. While they were there, a row may have been written a second time instead of being changed, or "
        "not been deleted: `bridge verify FILE` tells, `bridge resync FILE` mends it"
    )


def _mend(table: Table) -> tuple[int, list[str]] | None:
    """(files, columns) that were mended."""
    spark = table.spark
    jvm: Any = spark._jvm
    delta, scala, none = jvm.org.apache.spark.sql.delta, jvm.scala.jdk.javaapi.CollectionConverters, None
    none = jvm.scala.Option.empty()
    txn = delta.DeltaLog.forTable(spark._jsparkSession, table.location).startTransaction(none, none)
    columns = _wide(json.loads(txn.snapshot().schema().json()))
    wrong = txn.snapshot().allFiles().where(_said_of(columns)).collectAsList()
    if not wrong.size():
        return None
    # It has read all files: a commit that removes one of them meanwhile makes this one fail.
    txn.filterFiles()
    actions = jvm.java.util.ArrayList()
    for file in wrong:
        actions.add(delta.actions.Action.fromJson(_without(file.json(), columns)))
    nothing = scala.asScala(jvm.java.util.ArrayList()).toSeq()
    txn.commit(scala.asScala(actions).toSeq(), delta.DeltaOperations.ComputeStats(nothing))
    return wrong.size(), list(columns.values())


def _said_of(columns: Collection[str]) -> str:
    """True of a file that delta-rs has named and that has an end of one of these columns."""
    ends = "from_json(stats, 'minValues MAP<STRING, STRING>, maxValues MAP<STRING, STRING>')"
    told = " OR ".join(f"{ends}.{end}[{literal(name)}] IS NOT NULL" for name in columns for end in _ENDS)
    return f"path RLIKE {literal(_NAMED_BY_DELTA_RS)} AND ({told})"


def _without(text: str, columns: Collection[str]) -> str:
    """An `add` of the same file without the ends of these columns; its rows have not changed."""
    action = json.loads(text)
    add = action["add"]
    stats = json.loads(add["stats"])
    for end in _ENDS:
        stats[end] = {name: value for name, value in stats.get(end, {}).items() if name not in columns}
    add["stats"], add["dataChange"] = json.dumps(stats), False
    return json.dumps(action)


def _wide(schema: Mapping[str, Any]) -> dict[str, str]:
    """The table's wide decimals: name in its files -> name."""
    return {
        f["metadata"].get(_PHYSICAL, f["name"]): f["name"]
        for f in schema["fields"]
        if isinstance(f["type"], str) and _is_wide(T._parse_datatype_json_value(f["type"]))
    }


def _has_wide(table: Table) -> bool:
    return any(_is_wide(f.dataType) for f in table.fields)


def _is_wide(type: T.DataType) -> bool:
    return isinstance(type, T.DecimalType) and type.precision > _DIGITS
