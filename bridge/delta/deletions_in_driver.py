"""What `delete_memory` does, in the driver with Arrow: for batches that the engine `driver` merges."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from bridge.delta.delete_memory import DELETED_AT, DeleteMemory
from bridge.delta.driver_merge.matches import Keys
from bridge.delta.merge_driver import DriverEngine
from bridge.delta.merge_semantics import not_older
from bridge.metrics import now_ms
from bridge.ways import NotThisWay

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class DeletionsInDriver:
    """The deletions of one table. Its methods do as those of `DeleteMemory` of the same names, which may be called in
    between, and raise NotThisWay as `DriverEngine` does, with nothing written."""

    engine: DriverEngine = field(default_factory=DriverEngine)
    """Of the memory's own table, and without limits: keys are read one row group after the other."""

    def of_keys(self, memory: DeleteMemory, changes: pa.Table) -> pa.Table:
        """The deletions of the keys of `changes`, some of them several times, in the types of the memory."""
        with _named():
            return self.engine.rows_of(memory.stored, changes, memory.key)

    def without_older(self, memory: DeleteMemory, changes: pa.Table) -> pa.Table:
        """Leave out those of `changes`, one for each key, that are older than a deletion of their key, or not newer
        than a truncate."""
        import pyarrow as pa

        if memory.floor is not None:
            changes = changes.filter(pa.array(memory.floor.below(changes)))
        known = self.of_keys(memory, changes)
        if not known.num_rows:
            return changes
        names = (*memory.key, *memory.table.target.sequence_by)
        given = pa.table({name: changes[name].cast(known.schema.field(name).type) for name in names})
        _, of_known = Keys(given, memory.key).find(known)
        newer = np.ones(changes.num_rows, np.bool_)
        newer[of_known[~not_older(given.take(of_known), known, memory.table.target.sequence_by)]] = False
        return changes.filter(pa.array(newer))

    def remember(self, memory: DeleteMemory, deletions: pa.Table) -> None:
        """Write these deletions, in one commit. One that is known already is written again."""
        import pyarrow as pa

        at = pa.repeat(pa.scalar(now_ms(), pa.timestamp("ms", "UTC")), deletions.num_rows)
        names = [name for name in memory.stored.columns if name != DELETED_AT]
        with _named():
            self.engine.append(memory.stored, deletions.select(names).append_column(DELETED_AT, at))


@contextmanager
def _named() -> Iterator[None]:
    try:
        yield
    except NotThisWay as reason:
        raise NotThisWay(f"of the remembered deletions {reason}") from reason
