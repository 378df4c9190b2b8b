"""Counts the rows that changed between two versions, from the metrics in the table's log. No data is read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone

from pyspark.sql import Column
from pyspark.sql import functions as F

from bridge.commit_operations import (
    APPENDED,
    APPENDS,
    DELETED,
    INSERTED,
    NO_ROWS,
    OTHER_NO_ROWS,
    UPDATED,
)
from bridge.delta.delta_errors import table_errors
from bridge.delta.table import Table, newest_in_history

_COUNTED_OPERATIONS = ("MERGE", "UPDATE", "DELETE", *APPENDS)
"""Operations (Delta's names) whose metrics count rows."""

_LOOK_BACK = 200
"""How many commits are searched for the last arrival of rows, where no earlier run names a version to count from."""


@dataclass(frozen=True)
class ChangeCounts:
    """Row counts; None where there is no version to count from, or a commit has no count (an overwrite, a RESTORE)."""

    inserted: int | None = None
    updated: int | None = None
    deleted: int | None = None
    arrival: datetime | None = None
    """When the newest commit that changed rows was made (UTC, with its zone); None where none changed rows."""


def count_changes(table: Table, after: int | None, last: int) -> ChangeCounts:
    """Count the rows inserted, updated and deleted by the versions after `after` up to `last`.

    A row that changed twice counts twice. Counts are None without `after`, and where the log no longer has all of these
    versions.
    """
    if after is not None and after >= last:
        return ChangeCounts(0, 0, 0)
    with table_errors(table):
        # Other writers may have committed versions after `last`, so the limit counts from the newest.
        newest = newest_in_history(table.delta())
        limit = _LOOK_BACK if after is None else newest - after
        commits = table.delta().history(limit).where(F.col("version") <= last)
        if after is not None:
            commits = commits.where(F.col("version") > after)
        counts = {"inserted": _inserted(), "updated": _metric(*UPDATED), "deleted": _metric(*DELETED)}
        known = (*_COUNTED_OPERATIONS, *NO_ROWS, *OTHER_NO_ROWS)
        counted = commits.select(
            "version",
            *(count.alias(name) for name, count in counts.items()),
            (~F.col("operation").isin(*known) | _overwrites()).alias("uncounted"),
            "timestamp",
        )
        changed = F.greatest(*(F.coalesce(F.col(name), F.lit(0)) for name in counts)) > 0
        row = counted.agg(
            *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in counts),
            F.count_if("uncounted").alias("uncounted"),
            F.count(F.lit(1)).alias("commits"),
            F.unix_micros(F.max(F.when(changed | F.col("uncounted"), F.col("timestamp")))).alias("arrival"),
        ).collect()[0]
    arrival = None if row["arrival"] is None else datetime.fromtimestamp(row["arrival"] / 1e6, timezone.utc)
    if after is None or row["uncounted"] or row["commits"] < last - after:
        return ChangeCounts(arrival=arrival)
    return ChangeCounts(row["inserted"], row["updated"], row["deleted"], arrival)


def _inserted() -> Column:
    appended = F.when(F.col("operation").isin(*APPENDS), _metric(*APPENDED))
    return F.coalesce(_metric(*INSERTED), appended)


def _overwrites() -> Column:
    """A write that replaced rows: its metrics do not count those that it removed."""
    return (F.col("operation") == "WRITE") & (_of("operationParameters", "mode") == "Overwrite")


def _metric(*keys: str) -> Column:
    """The first of these metrics that a commit has; null where it is no number."""
    return F.coalesce(*(_of("operationMetrics", key) for key in keys)).try_cast("bigint")


def _of(map: str, key: str) -> Column:
    return F.try_element_at(F.col(map), F.lit(key))
