"""What the commits of a range of versions say of themselves, from one reading of the log. No data is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Row

from bridge.delta.ingest_progress import history, merged_by
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
"""Operations that change no rows, in Delta's words."""

APPENDS = ("WRITE", "STREAMING UPDATE", "CREATE TABLE AS SELECT", "COPY INTO")
"""Operations whose `numOutputRows` are rows that they added."""

INSERTED = ("numTargetRowsInserted", "num_target_rows_inserted")
UPDATED = ("numTargetRowsUpdated", "num_target_rows_updated", "numUpdatedRows")
DELETED = ("numTargetRowsDeleted", "num_target_rows_deleted", "numDeletedRows")
"""Metrics that count rows; the first that a commit has counts: Spark's name, then delta-rs's."""


@dataclass(frozen=True)
class CommitHistory:
    """The commits of versions `first` to `last`."""

    first: int
    last: int
    others: Mapping[int, str]
    """Operation (Delta's name, as in DESCRIBE HISTORY) of each version that is no batch of the bridge's by the key."""
    rows: Mapping[int, int]
    """How many rows each version says it changed; 0 where it says nothing."""

    def versions_of_other_writers(self, first: int, last: int, operations: Sequence[str] = ()) -> list[int]:
        """The versions among first..last that changed rows, or may have, and are no batch that the bridge merged by the
        key, ascending: in these a key may have several changes, a primary key may change, and an update may change
        nothing. With `operations` only those by these."""
        return sorted(
            version
            for version, operation in self.others.items()
            if first <= version <= last
            and (operation in operations if operations else operation not in NO_ROWS)
        )

    def changed(self, first: int, last: int) -> int:
        """How many rows the versions among first..last say they changed, an update being one; a hint for sizes."""
        return sum(rows for version, rows in self.rows.items() if first <= version <= last)


def commit_history(table: Table, first: int, last: int, key: Sequence[str]) -> CommitHistory:
    """Read the log of versions first..last, both inclusive; those that the log no longer has are left out. A batch of
    an ingest by other columns than `key` counts among the others. Raises TableError when the table has gone."""
    others, rows = {}, {}
    for commit in history(table):
        version = int(commit["version"])
        if first <= version <= last:
            rows[version] = _rows(commit)
            if merged_by(commit["userMetadata"]) != frozenset(key):
                others[version] = str(commit["operation"])
        if version <= first:
            break
    return CommitHistory(first, last, others, rows)


def _rows(commit: Row) -> int:
    metrics = commit["operationMetrics"] or {}
    counts = [("numOutputRows",)] if commit["operation"] in APPENDS else [INSERTED, UPDATED, DELETED]
    found = (next((metrics[name] for name in names if name in metrics), "0") for names in counts)
    return sum(int(count) for count in found)
