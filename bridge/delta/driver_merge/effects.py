"""Decides what each change does to the rows with its key, by a statement of `merge_semantics`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bridge.column_rules import combined, does_not_fit
from bridge.delta.driver_merge.matches import Matches
from bridge.delta.merge_semantics import Delete, MergeStatement, Update, kept_column
from bridge.ways import NotThisWay

if TYPE_CHECKING:
    import pyarrow as pa

_Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Effects:
    """What a batch does. Tables have all columns of the Delta table, in its order."""

    marked: Mapping[str, npt.NDArray[np.int64]]
    """Positions of the rows that are deleted or updated, by the file's path in the log."""
    deleted: pa.Table
    before: pa.Table
    """Updated rows as they were."""
    after: pa.Table
    """The same rows, in the same order, as they are now: those of a file together, files in the order of `updated`."""
    inserted: pa.Table
    updated: Mapping[str, int] = field(default_factory=dict)
    """How many rows of each file are updated."""

    @classmethod
    def of_new(cls, rows: pa.Table) -> Effects:
        """Inserts these rows alone."""
        none = rows.slice(0, 0)
        return cls({}, none, none, none, rows)

    @property
    def are_none(self) -> bool:
        """True when no row changes."""
        return not (self.deleted.num_rows or self.after.num_rows or self.inserted.num_rows)

    @property
    def by_type(self) -> dict[str, pa.Table]:
        """The changes by Delta's names of their types, for the change data feed."""
        return {
            "delete": self.deleted,
            "update_preimage": self.before,
            "update_postimage": self.after,
            "insert": self.inserted,
        }

    def after_of(self, name: str) -> pa.Table:
        """The updated rows of a file as they are now."""
        begin = 0
        for other, count in self.updated.items():
            if other == name:
                return self.after.slice(begin, count)
            begin += count
        return self.after.slice(0, 0)


def decide_effects(
    changes: pa.Table,
    always: pa.Table,
    matches: Sequence[Matches],
    statement: MergeStatement,
    schema: pa.Schema,
) -> Effects:
    """Decide what each change does to the rows that it matches, and which changes are inserted; changes of `always`
    match no row.

    `changes` have the definition's columns, in the types of `schema`, `__kind`, what the statement's conditions name,
    and columns of `kept_column` where a value may be the row's own. A row keeps the columns that the definition lacks.
    `matches` of a file stand together.
    """
    import pyarrow as pa

    columns = [name for name in changes.column_names if name in schema.names]
    nothing = schema.empty_table()
    marked: dict[str, npt.NDArray[np.int64]] = {}
    updated: dict[str, int] = {}
    deleted, before, after = [nothing], [nothing], [nothing]
    unknown = np.ones(changes.num_rows, np.bool_)
    for found in matches:
        unknown[found.changes] = False
        new, name = changes.take(found.changes), found.file.name
        left = np.ones(new.num_rows, np.bool_)
        for clause in statement.matched:
            values = found.rows if isinstance(clause, Delete) else _new_values(clause, new, found.rows)
            applies = left & _applies(clause, new, found.rows, values, columns)
            left &= ~applies
            if isinstance(clause, Delete):
                deleted.append(found.rows.filter(applies))
            elif applies.any():
                before.append(found.rows.filter(applies))
                after.append(values.filter(applies))
                updated[name] = updated.get(name, 0) + after[-1].num_rows
        if (affected := found.positions[~left]).size:
            marked[name] = np.concatenate([marked.get(name, np.empty(0, np.int64)), affected])
    insert = statement.insert
    new = pa.concat_tables([changes.filter(unknown), always])
    inserted = new.filter(insert.when.mask(new, None)).select(list(insert.columns))
    return Effects(
        marked,
        pa.concat_tables(deleted),
        pa.concat_tables(before),
        pa.concat_tables(after),
        _with_all_columns(inserted, schema),
        updated,
    )


def _applies(
    clause: Delete | Update, new: pa.Table, rows: pa.Table, values: pa.Table, columns: Sequence[str]
) -> _Mask:
    """Whether the clause applies to each row; `values` are the rows as it would leave them."""
    applies = np.ones(rows.num_rows, np.bool_) if clause.when is None else clause.when.mask(new, rows)
    if isinstance(clause, Update):
        return (
            applies if clause.if_differs is None else applies & rows_differ(rows, values, clause.if_differs)
        )
    if clause.if_others_null:
        for name in set(rows.column_names) - set(columns):
            applies = applies & np.asarray(rows[name].is_null())
    return applies


def _new_values(clause: Update, new: pa.Table, rows: pa.Table) -> pa.Table:
    """The rows as the clause leaves them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = {f.name: rows[f.name] for f in rows.schema}
    for name in clause.columns:
        if clause.to_null:
            values[name] = pa.nulls(rows.num_rows, rows.schema.field(name).type)
        elif (kept := kept_column(name)) in new.column_names:
            values[name] = pc.if_else(new[kept], _kept_value(clause, name, new, rows), new[name])
        else:
            values[name] = new[name]
    return pa.table(list(values.values()), schema=rows.schema)


def _kept_value(clause: Update, name: str, new: pa.Table, rows: pa.Table) -> pa.ChunkedArray:
    """What a column is where a change keeps the value of the row."""
    import pyarrow as pa

    rule = clause.rules.get(name)
    if rule is None:
        return rows[name]
    try:
        return pa.chunked_array(
            [combined(rule, rows[name].combine_chunks(), new[name].combine_chunks())],
            rows.schema.field(name).type,
        )
    except pa.ArrowInvalid:
        raise NotThisWay(does_not_fit(name)) from None


def rows_differ(rows: pa.Table, new: pa.Table, names: Sequence[str]) -> _Mask:
    """Whether rows of the same place differ in one of these columns, null-safely; NaN is equal to NaN, as in Spark."""
    differ = np.zeros(rows.num_rows, np.bool_)
    for name in names:
        differ |= _values_differ(rows[name].combine_chunks(), new[name].combine_chunks())
    return differ


def _values_differ(one: pa.Array, other: pa.Array) -> _Mask:
    import pyarrow.compute as pc
    import pyarrow.types as is_

    if is_.is_list(one.type):
        return _lists_differ(one, other)
    unequal = pc.not_equal(one, other)
    if is_.is_floating(one.type):
        unequal = pc.and_(unequal, pc.invert(pc.and_(pc.is_nan(one), pc.is_nan(other))))
    only_one = pc.xor(pc.is_null(one), pc.is_null(other))
    return np.asarray(pc.or_(pc.fill_null(unequal, False), only_one))


def _lists_differ(one: pa.ListArray, other: pa.ListArray) -> _Mask:
    import pyarrow as pa
    import pyarrow.compute as pc

    lengths = np.asarray(pc.fill_null(pc.list_value_length(one), -1))
    differ: _Mask = lengths != np.asarray(pc.fill_null(pc.list_value_length(other), -1))
    alike = ~differ & (lengths > 0)
    if alike.any():
        items = [lists.filter(pa.array(alike)).flatten() for lists in (one, other)]
        of_list = np.repeat(np.flatnonzero(alike), lengths[alike])
        differ[of_list[_values_differ(*items)]] = True
    return differ


def _with_all_columns(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with the columns that they lack as null."""
    import pyarrow as pa

    columns = [
        rows[f.name] if f.name in rows.column_names else pa.nulls(rows.num_rows, f.type) for f in schema
    ]
    return pa.table(columns, schema=schema)
