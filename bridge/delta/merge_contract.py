"""What every merge engine promises, and what it reports of a batch.

`merge` of an engine merges changes into a table as its `semantics` defines, and records `progress`, both in one commit
or not at all. The changes are a persisted frame that would have the same rows if it were computed again: the table's
columns, `__kind`, and what the semantics needs beside them; at most one of them matches a row. They may have KEPT (see
`merge_semantics`). A batch without any effect is committed all the same, as the commit carries the progress.

`progress.batch` must follow the table's newest: Delta accepts each number once, from whichever run commits it first.

It raises NotThisWay, with nothing written; ConcurrentRunError when another run has committed that batch; TableError
when the table does not accept the rows, or when commits of other writers conflicted with every attempt (a few, with
growing pauses). One suite of tests holds for all engines.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from bridge.delta.commit_files import FileChanges


@dataclass(frozen=True)
class MergeResult:
    """What one MERGE or append did to the table."""

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
    engine: str = field(default="", compare=False)
    """The engine that was chosen and why, as `told` says; empty for an append."""
    warnings: tuple[str, ...] = field(default=(), compare=False)

    def unchanged(self, keys: int) -> int:
        """How many changes of so many keys had no effect; 0, too, where another writer has left several rows of a key,
        and more rows were changed than there are keys."""
        if self.without_effect is not None:
            return self.without_effect
        return max(0, keys - self.inserted - self.updated - self.deleted)
