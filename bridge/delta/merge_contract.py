"""What every merge engine promises, and what it says of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame

from bridge.delta.ingest_progress import IngestProgress
from bridge.delta.table import Table

__all__ = ["Merge", "MergeResult"]


@dataclass(frozen=True)
class MergeResult:
    """What one MERGE did to the table."""

    version: int
    """The version that holds this batch."""
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    skipped: bool = False
    """True when this very commit was found done (its first answer got lost); the counts are 0 then."""


class Merge(Protocol):
    """Applies changes to a table. One contract for all engines, and one suite of tests."""

    def __call__(
        self,
        table: Table,
        changes: DataFrame,
        *,
        key: Sequence[str],
        progress: IngestProgress,
        persisted: bool = False,
    ) -> MergeResult:
        """Apply `changes` to `table` and record `progress`, both in one commit or not at all.

        `changes`: the table's columns and `__kind`, at most one row per key (null-safe; see `compact`). Adds (+I, +U)
        update the row of their key where it differs, or insert it; retractions (-U, -D) delete it. An update that
        changes nothing and a delete of an unknown key write no file and no change-feed row; the commit is made all
        the same, as it carries the progress.

        `persisted`: the caller has persisted `changes`, so that no copy is needed to read them twice. Say True only
        for a frame that is cached and can be computed again alike.

        `progress.batch` must be the one after the table's own: Delta lets each number in only once, whoever comes
        first.

        Raises ConcurrentRunError when another run has committed that batch, TableError when the table does not take
        the rows, or when other writers' commits get in the way of every attempt (a few, with growing pauses).
        """
