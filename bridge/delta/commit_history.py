"""The operations and row counts of the commits of a range of versions, from one read of the log; no data is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bridge.delta.ingest_progress import merged_by, newest_first
from bridge.delta.table import Table

__all__ = ["APPENDS", "DELETED", "INSERTED", "NO_ROWS", "UPDATED", "CommitHistory", "commit_history"]

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
"""Operations whose `numOutputRows` counts the rows that they added."""

INSERTED = ("numTargetRowsInserted", "num_target_rows_inserted")
UPDATED = ("numTargetRowsUpdated", "num_target_rows_updated", "numUpdatedRows")
DELETED = ("numTargetRowsDeleted", "num_target_rows_deleted", "numDeletedRows")
"""Metrics that count rows, by Spark's name and by delta-rs's; the first one that a commit has is used."""


@dataclass(frozen=True)
class CommitHistory:
    """The commits of versions `first` to `last`."""

    first: int
    last: int
    others: Mapping[int, str]
    """Operation (Delta's name, as in DESCRIBE HISTORY) of each version that is not a batch merged by the key."""
    rows: Mapping[int, int]
    """How many rows each version changed by its metrics; 0 where it has none."""

    def versions_of_other_writers(self, first: int, last: int, operations: Sequence[str] = ()) -> list[int]:
        """The versions among first..last that may have changed rows and are not a batch that the bridge merged by the
        key, ascending. In these a key may have several changes, a primary key may change, and an update may change no
        column. `operations` selects versions by their operation."""
        return sorted(
            version
            for version, operation in self.others.items()
            if first <= version <= last
            and (operation in operations if operations else operation not in NO_ROWS)
        )

    def changed(self, first: int, last: int) -> int:
        """How many rows the versions among first..last changed by their metrics, an update being one; an estimate."""
        return sum(rows for version, rows in self.rows.items() if first <= version <= last)


def commit_history(table: Table, first: int, last: int, key: Sequence[str]) -> CommitHistory:
    """Read the log of versions first..last, both inclusive; those that the log no longer has are left out. A batch of
    an ingest by other columns than `key` is one of another writer. Raises TableError when the table is gone."""
    others, rows = {}, {}
    for commit in newest_first(table):
        version = int(commit["version"])
        if first <= version <= last:
            rows[version] = _rows(commit)
            if merged_by(commit["userMetadata"], table.columns) != frozenset(key):
                others[version] = str(commit["operation"])
        if version <= first:
            break
    return CommitHistory(first, last, others, rows)


def _rows(commit: Mapping[str, Any]) -> int:
    metrics = commit["operationMetrics"] or {}
    counts = [("numOutputRows",)] if commit["operation"] in APPENDS else [INSERTED, UPDATED, DELETED]
    counted = (next((metrics[name] for name in names if name in metrics), "0") for names in counts)
    return sum(int(count) for count in counted)
