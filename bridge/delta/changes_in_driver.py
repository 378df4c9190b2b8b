"""Brings the changes of a batch into the driver, for the engines that merge there, and says how many may come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bridge.backend.plans import estimated_bytes
from bridge.columns import KIND, col
from bridge.delta.merge_semantics import KEPT, kept_column
from bridge.delta.table import Table
from bridge.ways import NotThisWay


@dataclass(frozen=True)
class Limits:
    """How much one MERGE may process in the driver, in bytes."""

    batch_bytes: int
    """Of the changes, as Spark has cached them."""
    touched_bytes: int
    """Of the files that may hold a key of the changes, by their statistics. All of them are read, and those with a
    match are rewritten."""

    def refuse_batch(self, size: int) -> None:
        """Raise NotThisWay for changes of more bytes."""
        if size > (limit := self.batch_bytes):
            raise NotThisWay(f"the batch has {size >> 20:,} MiB, more than {limit >> 20:,} MiB")

    def refuse_touched(self, size: int) -> None:
        """Raise NotThisWay for touched files of more bytes."""
        if size > (limit := self.touched_bytes):
            raise NotThisWay(f"the batch touches files of {size >> 20:,} MiB, more than {limit >> 20:,} MiB")


def collect_changes(
    table: Table, changes: DataFrame, more: Sequence[str] = (), *, limits: Limits | None = None
) -> pa.Table:
    """Bring the changes into the driver as Arrow: the definition's columns that they have, `more`, `__kind`, and which
    values each change keeps, where changes do.

    Raises NotThisWay, before any of them comes, where Spark's cache has more bytes of them than `limits` allow.
    """
    if limits is not None:
        limits.refuse_batch(estimated_bytes(changes))
    columns, kept = [name for name in table.columns if name in changes.columns], []
    if KEPT in changes.columns:
        contains = {name: F.array_contains(col(KEPT), name) for name in columns}
        kept = [
            F.coalesce(is_kept, F.lit(False)).alias(kept_column(name)) for name, is_kept in contains.items()
        ]
    return changes.select(*map(col, (*columns, *more)), KIND, *kept).toArrow()
