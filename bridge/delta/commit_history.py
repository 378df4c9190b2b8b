"""Reads the operations and row counts of a range of commits from the log, once and without reading data.

`can_send_directly` tells whether the changes of a version need no grouping by key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import functions as F

from bridge.columns import KIND, col, row_fingerprint
from bridge.commit_operations import NO_ROWS, row_counts
from bridge.delta.change_feed import changes
from bridge.delta.delta_errors import feed_errors
from bridge.delta.ingest_progress import newest_first
from bridge.delta.table import Table
from bridge.ingest_progress import merged_by
from bridge.rows import RowKind


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


def can_send_directly(table: Table, version: int, key: Sequence[str]) -> bool:
    """Whether each key has one change in that version: +I, -D, or -U and +U of different rows. No primary key changed
    then, no key has several rows, and no update changed nothing, so that `compact.net` would give its +I, +U and -D.

    Runs one Spark job on 64-bit hashes of keys and rows. Two keys with the same hash, and two rows of an update with
    the same hash, make the result False. Raises GapError when the version's files are gone.
    """
    frame = changes(table, version, version)
    before, after = (col(KIND) == kind.value for kind in (RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER))
    hashes = frame.select(
        row_fingerprint([f for f in table.fields if f.name in key]).alias("key"),
        before.alias("before"),
        after.alias("after"),
        F.when(before | after, row_fingerprint(table.fields)).alias("row"),
    )
    of_key = hashes.groupBy("key").agg(
        F.count("*").alias("changes"),
        F.count_if("before").alias("before"),
        F.count_if("after").alias("after"),
        F.bit_xor("row").alias("differ"),  # 0 for two equal rows
    )
    single = "changes = 1 AND before = 0 AND after = 0"
    pair = "changes = 2 AND before = 1 AND after = 1 AND differ <> 0"
    with feed_errors(table, version, version):
        return not of_key.agg(F.count_if(~F.expr(f"({single}) OR ({pair})"))).collect()[0][0]
