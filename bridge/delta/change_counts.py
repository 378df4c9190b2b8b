"""What has become of a table's rows between two versions, by what its commits say of themselves. No data is read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone

from pyspark.sql import Column
from pyspark.sql import functions as F

from bridge.delta.commit_history import APPENDS, DELETED, INSERTED, NO_ROWS, UPDATED
from bridge.delta.delta_errors import table_errors
from bridge.delta.table import Table

__all__ = ["ChangeCounts", "count_changes"]

_TELLING = ("MERGE", "UPDATE", "DELETE", *APPENDS)
"""Operations, in Delta's words, whose metrics count rows."""

_EMPTY = ("CREATE TABLE", "ADD CONSTRAINT", "DROP CONSTRAINT", "UPGRADE PROTOCOL")
"""Beside those of the feed: operations that change no rows."""

_LOOK_BACK = 200
"""How many commits are asked when rows last came, where no run before says from where to count."""


@dataclass(frozen=True)
class ChangeCounts:
    """Counts are None where there is nothing to count from, or a commit does not tell (an overwrite, a RESTORE)."""

    inserted: int | None = None
    updated: int | None = None
    deleted: int | None = None
    arrival: datetime | None = None
    """When the newest commit that changed rows was made (UTC, with its zone); None where none of these did."""


def count_changes(table: Table, after: int | None, last: int) -> ChangeCounts:
    """Rows inserted, updated and deleted by the versions after `after` up to `last`.

    A row that was changed twice counts twice. Counts are None without `after`, and where the log no longer reaches
    back to it.
    """
    if after is not None and after >= last:
        return ChangeCounts(0, 0, 0)
    with table_errors(table):
        # Versions newer than `last` may have come meanwhile, so the limit counts from the newest.
        newest = int(table.delta().history(1).select("version").collect()[0][0])
        limit = _LOOK_BACK if after is None else newest - after
        commits = table.delta().history(limit).where(F.col("version") <= last)
        if after is not None:
            commits = commits.where(F.col("version") > after)
        counts = {"inserted": _inserted(), "updated": _metric(*UPDATED), "deleted": _metric(*DELETED)}
        told = commits.select(
            "version",
            *(count.alias(name) for name, count in counts.items()),
            (~F.col("operation").isin(*_TELLING, *NO_ROWS, *_EMPTY) | _overwrites()).alias("silent"),
            "timestamp",
        )
        changed = F.greatest(*(F.coalesce(F.col(name), F.lit(0)) for name in counts)) > 0
        row = told.agg(
            *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in counts),
            F.count_if("silent").alias("silent"),
            F.count(F.lit(1)).alias("commits"),
            F.unix_micros(F.max(F.when(changed | F.col("silent"), F.col("timestamp")))).alias("arrival"),
        ).collect()[0]
    arrival = None if row["arrival"] is None else datetime.fromtimestamp(row["arrival"] / 1e6, timezone.utc)
    if after is None or row["silent"] or row["commits"] < last - after:
        return ChangeCounts(arrival=arrival)
    return ChangeCounts(row["inserted"], row["updated"], row["deleted"], arrival)


def _inserted() -> Column:
    appended = F.when(F.col("operation").isin(*APPENDS), _metric("numOutputRows"))
    return F.coalesce(_metric(*INSERTED), appended)


def _overwrites() -> Column:
    """A write that took other rows away, of which its metrics say nothing."""
    return (F.col("operation") == "WRITE") & (_of("operationParameters", "mode") == "Overwrite")


def _metric(*keys: str) -> Column:
    """The first of the metrics that a commit has."""
    return F.coalesce(*(_of("operationMetrics", key) for key in keys)).cast("bigint")


def _of(map: str, key: str) -> Column:
    return F.try_element_at(F.col(map), F.lit(key))
