"""What the operations of commits do to rows, by the names and metrics that Delta and delta-rs give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NO_ROWS = (
    "ADD COLUMNS",
    "CHANGE COLUMN",
    "CLUSTER BY",
    "OPTIMIZE",
    "SET TBLPROPERTIES",
    "UNSET TBLPROPERTIES",
    "VACUUM END",
    "VACUUM START",
)
"""Operations that change no rows, by Delta's names."""

APPENDS = ("WRITE", "STREAMING UPDATE", "CREATE TABLE AS SELECT", "COPY INTO")
"""Operations of which a metric counts the rows that they added."""

APPENDED = ("numOutputRows", "num_added_rows")

INSERTED = ("numTargetRowsInserted", "num_target_rows_inserted")
UPDATED = ("numTargetRowsUpdated", "num_target_rows_updated", "numUpdatedRows", "num_updated_rows")
DELETED = ("numTargetRowsDeleted", "num_target_rows_deleted", "numDeletedRows", "num_deleted_rows")
"""Metrics that count rows, by Spark's name and by delta-rs's; the first one that a commit has is used."""

OTHER_NO_ROWS = ("CREATE TABLE", "ADD CONSTRAINT", "DROP CONSTRAINT", "UPGRADE PROTOCOL")
"""Operations, beside NO_ROWS, that change no rows."""


def row_counts(operation: str | None, metrics: Mapping[str, Any]) -> tuple[int, int, int]:
    """Return how many rows a commit inserted, updated and deleted by its metrics; 0 where it has none, or one that is
    no number."""

    def count(names: tuple[str, ...]) -> int:
        try:
            return int(next((metrics[name] for name in names if name in metrics), 0))
        except (TypeError, ValueError, OverflowError):
            return 0

    if operation in APPENDS:
        return count(APPENDED), 0, 0
    return count(INSERTED), count(UPDATED), count(DELETED)
