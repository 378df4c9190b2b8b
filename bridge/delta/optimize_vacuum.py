"""Runs OPTIMIZE and VACUUM, and reads from the table's log when they last ran."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import functions as F

from bridge.backend import backend_of
from bridge.delta.delta_errors import error_names, retry_conflicts, table_errors
from bridge.delta.table import Table
from bridge.delta.table_checks import sql_name
from bridge.errors import TableError
from bridge.session import session_settings
from bridge.spark_versions import RETENTION_TOO_SHORT

FILE_RETENTION = "delta.deletedFileRetentionDuration"
LOG_RETENTION = "delta.logRetentionDuration"
_DEFAULTS = {FILE_RETENTION: "1 week", LOG_RETENTION: "30 days"}
_SECONDS = {
    "week": 604_800.0,
    "day": 86_400.0,
    "hour": 3600.0,
    "minute": 60.0,
    "second": 1.0,
    "millisecond": 1e-3,
    "microsecond": 1e-6,
}
_PART = re.compile(r"(\d+)\s+([a-z]+?)s?(?=\s|$)")
_LISTING = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_LOOK_BACK = 2000


@dataclass(frozen=True)
class Optimized:
    """How many data files an OPTIMIZE removed and added."""

    removed: int
    added: int


def optimize(table: Table) -> Optimized:
    """Rewrite small files as large ones, clustered where the table has clustering columns; no rows change.

    Conflicts with other writers are retried with growing pauses. Raises TableError when every attempt conflicted.
    """

    def commit() -> Optimized:
        row = table.spark.sql(f"OPTIMIZE {sql_name(table.target)}").collect()[0]["metrics"]
        return Optimized(row["numFilesRemoved"], row["numFilesAdded"])

    way_out = (
        "nothing was changed. Let the ingest run it between its batches: add the section `maintenance` to its "
        "pipeline file"
    )
    return retry_conflicts(table, commit, f"table {table}: OPTIMIZE", way_out)


def vacuum(table: Table, retain_seconds: float) -> int:
    """Delete data and change files that no version of the last `retain_seconds` needs; return how many were deleted.

    Delta counts in hours, so the time is rounded up. Raises TableError when it is shorter than
    delta.deletedFileRetentionDuration and Delta's own check is on.
    """
    hours = math.ceil(retain_seconds / 3600)
    promised = retention_seconds(table, FILE_RETENTION)
    # Delta lists a table's folders in 10,000 tasks by default, which takes over a minute on two cores.
    tasks = {_LISTING: str(4 * backend_of(table.spark).parallelism)}
    try:
        with table_errors(table), session_settings(table.spark, tasks):
            table.spark.sql(f"VACUUM {sql_name(table.target)} RETAIN {hours} HOURS")
    except Exception as error:
        if not error_names(error) & RETENTION_TOO_SHORT or hours * 3600 >= promised:
            raise
        raise TableError(
            f"table {table}: VACUUM to the last {hours} hours is refused, as the table promises its readers "
            f"{promised / 3600:g} hours. Raise `maintenance.retain`, or leave it out, or set the table property "
            f"{FILE_RETENTION}"
        ) from error
    with table_errors(table):
        done = table.delta().history(20).where("operation = 'VACUUM END'").orderBy(F.desc("version"))
        row = done.select("operationMetrics").first()
    return 0 if row is None else int((row[0] or {}).get("numDeletedFiles", 0))


def maintenance_times(table: Table) -> dict[str, int]:
    """When OPTIMIZE and VACUUM last committed, by any writer: operation -> epoch milliseconds.

    Reads the newest 2,000 commits; an OPTIMIZE with nothing to do makes no commit.
    """
    with table_errors(table):
        newest = (
            table.delta()
            .history(_LOOK_BACK)
            .where(F.col("operation").isin("OPTIMIZE", "VACUUM END"))
            .groupBy("operation")
            .agg(F.max(F.unix_millis("timestamp")))
            .collect()  # two rows
        )
    return {operation.removesuffix(" END"): at for operation, at in newest}


def retention_seconds(table: Table, key: str) -> float:
    """A table property that is an interval, in seconds; Delta's default where it is not set. Raises TableError."""
    try:
        return interval_seconds(table.properties, key)
    except ValueError as error:
        raise TableError(f"table {table}: {error}") from error


def interval_seconds(properties: Mapping[str, str | None], key: str) -> float:
    """An interval among these properties, in seconds; Delta's default where it is not set. Raises ValueError."""
    text = properties.get(key) or _DEFAULTS[key]
    parts = _PART.findall(text.lower())
    if not parts or any(unit not in _SECONDS for _, unit in parts):
        raise ValueError(f"{key} = {text!r} is not an interval of weeks to microseconds")
    return sum(int(number) * _SECONDS[unit] for number, unit in parts)
