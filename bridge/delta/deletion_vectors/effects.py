"""Decides what each change does to the rows with its key, by the semantics `upsert_by_key` (ADR 028, rule 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bridge.columns import KIND
from bridge.delta.deletion_vectors.matches import Matches
from bridge.rows import RowKind

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Effects", "decide_effects"]

_RETRACTS = [kind.value for kind in RowKind if kind.retracts]


@dataclass(frozen=True)
class Effects:
    """What a batch does. Tables have all columns of the Delta table, in its order."""

    marked: dict[str, npt.NDArray[np.int64]]
    """Positions of the rows that are deleted or updated, by the file's path in the log."""
    deleted: pa.Table
    before: pa.Table
    """Updated rows as they were."""
    after: pa.Table
    """The same rows, in the same order, as they are now."""
    inserted: pa.Table

    @property
    def are_none(self) -> bool:
        """True when no row changes."""
        return not (self.deleted.num_rows or self.after.num_rows or self.inserted.num_rows)


def decide_effects(
    changes: pa.Table, matches: Sequence[Matches], key: Sequence[str], schema: pa.Schema
) -> Effects:
    """Decide what each change does. `changes` have the definition's columns, in the types of `schema`, and `__kind`.

    A retraction deletes the rows with its key. Another change updates those from which it differs, null-safely, in a
    column outside the key; it keeps columns that the definition lacks. Without such a row it is inserted.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    retracts = np.asarray(pc.is_in(changes[KIND].combine_chunks(), value_set=pa.array(_RETRACTS)))
    columns = [name for name in changes.column_names if name != KIND]
    compared = [name for name in columns if name not in key]
    nothing = schema.empty_table()
    marked: dict[str, npt.NDArray[np.int64]] = {}
    deleted, before, after = [nothing], [nothing], [nothing]
    unknown = np.ones(changes.num_rows, np.bool_)
    for found in matches:
        unknown[found.changes] = False
        new = changes.select(columns).take(found.changes)
        is_deleted = retracts[found.changes]
        is_updated = ~is_deleted & _differ(found.rows, new, compared)
        deleted.append(found.rows.filter(is_deleted))
        before.append(found.rows.filter(is_updated))
        after.append(_updated(before[-1], new.filter(is_updated)))
        if (affected := found.positions[is_deleted | is_updated]).size:
            earlier = marked.get(found.file.name, np.empty(0, np.int64))
            marked[found.file.name] = np.concatenate([earlier, affected])
    inserted = changes.select(columns).filter(unknown & ~retracts)
    return Effects(
        marked,
        pa.concat_tables(deleted),
        pa.concat_tables(before),
        pa.concat_tables(after),
        _with_all_columns(inserted, schema),
    )


def _differ(rows: pa.Table, new: pa.Table, names: Sequence[str]) -> npt.NDArray[np.bool_]:
    import pyarrow.compute as pc
    import pyarrow.types as is_

    differ = np.zeros(rows.num_rows, np.bool_)
    for name in names:
        one, other = rows[name], new[name]
        unequal = pc.not_equal(one, other)
        if is_.is_floating(one.type):
            # NaN is equal to NaN here, as in Spark.
            unequal = pc.and_(unequal, pc.invert(pc.and_(pc.is_nan(one), pc.is_nan(other))))
        only_one = pc.xor(pc.is_null(one), pc.is_null(other))
        differ |= np.asarray(pc.or_(pc.fill_null(unequal, False), only_one))
    return differ


def _updated(before: pa.Table, new: pa.Table) -> pa.Table:
    """The rows `before` with the columns of `new`."""
    import pyarrow as pa

    columns = [new[name] if name in new.column_names else before[name] for name in before.schema.names]
    return pa.table(columns, schema=before.schema)


def _with_all_columns(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with the columns that they lack as null."""
    import pyarrow as pa

    columns = [
        rows[f.name] if f.name in rows.column_names else pa.nulls(rows.num_rows, f.type) for f in schema
    ]
    return pa.table(columns, schema=schema)
