"""Changes that set only some columns of their row, and the fold of them, column by column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.arrow_formats.base import Places
from bridge.column_rules import does_not_fit, folded
from bridge.schema import ColumnRule
from bridge.ways import NotThisWay

_Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class PartialUpdates:
    """Which columns of its row a change sets, as plain values."""

    flags: Mapping[str, str]
    """The columns whose values a row may keep, each with the boolean column that says whether it does."""
    nulls: tuple[str, ...] = ()
    """Those of which it does where the change has null."""
    by: str | None = None
    """The column that names the columns that a change sets: where it is null, all of them."""
    names: tuple[str, ...] = ()
    """The names that it may have."""
    not_null: tuple[str, ...] = ()
    """Columns that are NOT NULL in the table, where there may be no row whose value could be kept."""
    rules: Mapping[str, ColumnRule] = field(default_factory=dict)
    """Those of `flags` whose values are combined: the flag says that the row's value counts, too."""

    def marked(self, rows: pa.Table) -> pa.Table:
        """The rows of changes with the flags, and without the values that they do not set. Raises NotThisWay for a name
        that the column `by` may not have, and for a change that does not set a column of `not_null`."""
        names = None if self.by is None else _Names(rows[self.by].combine_chunks())
        if names is not None and not names.are_among(self.names):
            raise NotThisWay(f"column {self.by!r} names a column that is none of the DDL's physical ones")
        for name, flag in self.flags.items():
            if name in self.rules:
                rows = rows.append_column(flag, pa.repeat(True, rows.num_rows))
                continue
            keeps = np.zeros(rows.num_rows, np.bool_) if names is None else names.leave_out(name)
            if name in self.nulls:
                keeps |= rows[name].is_null().to_numpy()
            if keeps.any():
                if name in self.not_null:
                    raise NotThisWay(f"column {name!r} is NOT NULL, and a change leaves the value of its row")
                at = np.arange(rows.num_rows)
                values = rows[name].take(pa.array(at, mask=keeps))
                rows = rows.set_column(rows.column_names.index(name), name, values)
            rows = rows.append_column(flag, pa.array(keeps))
        return rows

    def folded(self, changes: pa.Table, key: Sequence[str], places: Places, retracts: _Flags) -> pa.Table:
        """One change of each key that does what these `changes` do one after the other, by their places: the last one,
        and of each column of `flags` the last value that is set, or what the values since then give by its rule. A
        retraction sets all of them to null, and has null. Raises NotThisWay for a sum that does not fit its column.
        """
        numbers = _numbered(changes, key)
        order = np.lexsort((places, numbers))
        numbers, retracts = numbers[order], retracts[order]
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = numbers[1:] != numbers[:-1]
        at = np.arange(len(order))
        first = np.maximum.accumulate(np.where(is_first, at, 0))
        last = np.flatnonzero(np.append(is_first[1:], True)[: len(order)])
        columns: dict[str, pa.ChunkedArray] = {}
        for name in changes.column_names:
            if name not in self.flags:
                columns.setdefault(name, changes[name].take(pa.array(order[last])))
                continue
            flag = self.flags[name]
            sets = retracts | ~np.asarray(pc.fill_null(changes[flag], False))[order]
            newest = np.maximum.accumulate(np.where(sets, at, -1))[last]
            keeps = newest < first[last]
            if name in self.rules:
                since = np.repeat(np.maximum(newest, first[last]), np.diff(last, prepend=-1))
                counts = order[at >= since]
                groups = numbers[at >= since]
                columns[name] = _combined(
                    self.rules[name], changes[name].take(counts), groups, len(last), name
                )
            else:
                columns[name] = changes[name].take(pa.array(order[newest], mask=keeps))
            columns[flag] = pa.chunked_array([pa.array(keeps)])
        return pa.table({name: columns[name] for name in changes.column_names})


def _combined(
    rule: ColumnRule, values: pa.ChunkedArray, groups: Places, count: int, name: str
) -> pa.ChunkedArray:
    try:
        return pa.chunked_array([folded(rule, values.combine_chunks(), groups, count)])
    except pa.ArrowInvalid:
        raise NotThisWay(does_not_fit(name)) from None


class _Names:
    """The names in an array of lists, of which some may be null."""

    def __init__(self, lists: pa.ListArray) -> None:
        self._are_null = lists.is_null().to_numpy(zero_copy_only=False)
        lengths = np.asarray(pc.fill_null(pc.list_value_length(lists), 0))
        self._rows = np.repeat(np.arange(len(lists)), lengths)
        self._values = pc.list_flatten(lists)

    def are_among(self, names: Sequence[str]) -> bool:
        """Whether all of them are; null is no name."""
        known = pc.or_(pc.is_in(self._values, pa.array(names, pa.string())), self._values.is_null())
        return bool(pc.all(known, min_count=0).as_py())

    def leave_out(self, name: str) -> _Flags:
        """For each list whether it is not null, and lacks `name`."""
        found: _Flags = ~self._are_null
        found[self._rows[np.asarray(pc.fill_null(pc.equal(self._values, name), False))]] = False
        return found


def _numbered(rows: pa.Table, key: Sequence[str]) -> Places:
    """A number for each row, equal where the keys are; null is a value like any other."""
    numbers = np.zeros(rows.num_rows, np.int64)
    for name in key:
        codes = rows[name].combine_chunks().dictionary_encode(null_encoding="encode")
        pairs = numbers * len(codes.dictionary) + codes.indices.to_numpy()
        numbers = np.unique(pairs, return_inverse=True)[1]
    return numbers
