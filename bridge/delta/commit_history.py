"""The operations and row counts of the commits of a range of versions, from one read of the log; no data is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bridge.commit_operations import NO_ROWS, row_counts
from bridge.delta.ingest_progress import newest_first
from bridge.delta.table import Table
from bridge.ingest_progress import merged_by


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
            rows[version] = sum(row_counts(commit["operation"], commit["operationMetrics"] or {}))
            if merged_by(commit["userMetadata"], table.columns) != frozenset(key):
                others[version] = str(commit["operation"])
        if version <= first:
            break
    return CommitHistory(first, last, others, rows)
