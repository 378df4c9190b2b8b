"""Numbers the values and the groups of rows in Arrow, so that numpy can compare and count them.

Values are equal as in Spark for the types of `rows_in_driver`, DECIMAL aside: texts by their bytes. As in GROUP BY a
null is a value like another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Groups", "Numbers", "Values", "new_values"]

Numbers = npt.NDArray[np.int64]
"""One for each row, from 0; -1 for a value or a group that has none."""

_WIDE = 4
"""A table of all integers between the least and the greatest value may have this many places for each value."""


class Values:
    """The different values of a column, numbered; without its nulls unless `nulls`."""

    def __init__(self, column: pa.ChunkedArray, *, nulls: bool) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        found = pc.unique(plain)
        self._values = found if nulls else found.drop_null()
        self._nulls = nulls
        self._places = _places(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def numbers(self, column: pa.ChunkedArray) -> Numbers:
        """The number of each row's value, which may be of another column."""
        import pyarrow as pa

        if not pa.types.is_dictionary(column.type):
            return self._looked_up(column)
        return np.concatenate(
            [np.empty(0, np.int64), *(self._coded(chunk) for chunk in column.chunks if len(chunk))]
        )

    def _coded(self, chunk: pa.DictionaryArray) -> Numbers:
        import pyarrow as pa

        # The last place is that of null.
        known = self._looked_up(pa.chunked_array([chunk.dictionary, pa.nulls(1, chunk.dictionary.type)]))
        places: Numbers = known[chunk.indices.fill_null(len(known) - 1).to_numpy()]
        return places

    def _looked_up(self, column: pa.ChunkedArray) -> Numbers:
        import pyarrow.compute as pc

        if self._places is not None and column.null_count == 0:
            first, places = self._places
            values = column.to_numpy().astype(np.int64, copy=False)
            is_near = (values >= first) & (values < first + places.size)
            near: Numbers = places[np.where(is_near, values - first, 0)]
            return np.where(is_near, near, -1)
        found = pc.index_in(column, value_set=self._values, skip_nulls=not self._nulls)
        numbers: Numbers = found.fill_null(-1).to_numpy().astype(np.int64)
        return numbers


def _places(values: pa.Array) -> tuple[int, Numbers] | None:
    """The numbers of integers that are close together, from the least one on: looking them up takes a tenth of the time
    of hashing."""
    import pyarrow as pa

    if not pa.types.is_integer(values.type) or values.null_count or not len(values):
        return None
    integers = values.to_numpy().astype(np.int64, copy=False)
    first, last = int(integers.min()), int(integers.max())
    if last - first >= _WIDE * len(values):
        return None
    places = np.full(last - first + 1, -1, np.int64)
    places[integers - first] = np.arange(len(values))
    return first, places


class Groups:
    """The different rows of some columns, numbered."""

    def __init__(self, rows: pa.Table, columns: Sequence[str]) -> None:
        self._values = [Values(rows[name], nulls=True) for name in columns]
        self._levels: list[Numbers] = []
        """For each column after the first: the pairs that there are of a group of the columns before and a value."""
        self.of_rows = self._values[0].numbers(rows[columns[0]])
        """The number of the group of each of these rows."""
        for name, values in zip(columns[1:], self._values[1:], strict=True):
            pairs = self.of_rows * len(values) + values.numbers(rows[name])
            level, self.of_rows = np.unique(pairs, return_inverse=True)
            self._levels.append(level)
        self.count = int(self.of_rows.max(initial=-1)) + 1
        self.first_rows = np.empty(self.count, np.int64)
        """The place of a row of each group."""
        self.first_rows[self.of_rows[::-1]] = np.arange(rows.num_rows - 1, -1, -1)

    def numbers(self, rows: pa.Table, columns: Sequence[str]) -> Numbers:
        """The number of the group of each of other rows; `columns` are their names for the same columns."""
        found = self._values[0].numbers(rows[columns[0]])
        for name, values, level in zip(columns[1:], self._values[1:], self._levels, strict=True):
            numbers = values.numbers(rows[name])
            pairs = np.where((found >= 0) & (numbers >= 0), found * len(values) + numbers, -1)
            found = _indexes(level, pairs)
        return found


def _indexes(sorted: Numbers, wanted: Numbers) -> Numbers:
    """The index of each number; -1 for one that is not there."""
    at = np.minimum(np.searchsorted(sorted, wanted), len(sorted) - 1)
    return np.where(sorted[at] == wanted, at, -1) if len(sorted) else np.full(len(wanted), -1)


def new_values(
    groups: Groups, added: pa.ChunkedArray, known: pa.ChunkedArray, known_groups: Numbers
) -> Numbers:
    """For each group how many different values of `added`, a column of its rows, are not among those of `known`, of
    which the groups are `known_groups`. Nulls are no values."""
    values = Values(added, nulls=False)
    pairs = np.unique(_pairs(groups.of_rows, values, added))
    is_known = _are_in(pairs, _pairs(known_groups, values, known))
    found: Numbers = np.bincount(pairs[~is_known] // max(len(values), 1), minlength=groups.count)
    return found


def _pairs(groups: Numbers, values: Values, column: pa.ChunkedArray) -> Numbers:
    """A number for each pair of a group and a value; rows without one of them are left out."""
    numbers = values.numbers(column)
    is_one = (groups >= 0) & (numbers >= 0)
    found: Numbers = groups[is_one] * len(values) + numbers[is_one]
    return found


def _are_in(pairs: Numbers, others: Numbers) -> npt.NDArray[np.bool_]:
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pc.index_in(pa.array(others), value_set=pa.array(pairs))
    is_in = np.zeros(len(pairs), np.bool_)
    is_in[found.drop_null().to_numpy()] = True
    return is_in
