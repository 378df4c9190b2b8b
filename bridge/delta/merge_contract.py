"""Defines what every merge engine promises, and what it reports of a batch.

An engine executes a statement of `merge_semantics`; what the statement means is no matter of the engine. Example:

    engine: MergeEngine = SparkEngine()
    result = engine.merge(table, changes, key=["id"], progress=progress)
    result.inserted, result.updated, result.deleted
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pyspark.sql import DataFrame

from bridge.definition import Engine
from bridge.delta.commit_files import FileChanges
from bridge.delta.merge_semantics import MergeSemantics, upsert_by_key
from bridge.delta.table import Table
from bridge.ingest_progress import IngestProgress


@dataclass(frozen=True)
class MergeResult:
    """What one MERGE did to the table."""

    version: int
    """The version that holds this batch."""
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    skipped: bool = False
    """True when this very commit was there already (the answer to the first attempt was lost); the counts are 0."""
    files: FileChanges | None = field(default=None, compare=False)
    """None where the engine does not know the actions of its commit."""
    without_effect: int | None = field(default=None, compare=False)
    """How many changes of keys had no effect; None where that is what the rows that were changed leave over."""

    def unchanged(self, keys: int) -> int:
        """How many changes of so many keys had no effect; 0, too, where another writer has left several rows of a key,
        and more rows were changed than there are keys."""
        if self.without_effect is not None:
            return self.without_effect
        return max(0, keys - self.inserted - self.updated - self.deleted)


class MergeEngine(Protocol):
    """Merges changes into a table. One contract, and one suite of tests, for all engines."""

    @property
    def name(self) -> Engine:
        """Its name in `merge.engine`."""
        ...

    def refuse(self, table: Table, changes: DataFrame, *, key: Sequence[str]) -> None:
        """Raise NotThisWay where `merge` would raise it for these persisted `changes`; writes nothing."""
        ...

    def merge(
        self,
        table: Table,
        changes: DataFrame,
        *,
        key: Sequence[str],
        progress: IngestProgress,
        persisted: bool = False,
        semantics: MergeSemantics = upsert_by_key,
    ) -> MergeResult:
        """Merge `changes` into `table` as `semantics` defines and record `progress`, both in one commit or not at all.

        `changes`: the table's columns, `__kind`, and what `semantics` needs beside them; at most one change matches a
        row. They may have KEPT (see `merge_semantics`). A batch without any effect is committed all the same, as the
        commit carries the progress.

        `persisted`: the caller has persisted `changes`, so that no copy is needed to read them twice. True only for a
        frame that is cached and that would have the same rows if it were computed again.

        `progress.batch` must follow the table's newest: Delta accepts each number once, from whichever run commits it
        first.

        Raises NotThisWay, with nothing written; ConcurrentRunError when another run has committed that batch;
        TableError when the table does not accept the rows, or when commits of other writers conflicted with every
        attempt (a few, with growing pauses).
        """
        ...
