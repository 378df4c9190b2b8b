"""Finds the rows of a table that have one of the keys of a batch."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from bridge.lake.data_files import DataFile
from bridge.lake.snapshot import Action, stats_of

if TYPE_CHECKING:
    import pyarrow as pa


_LEAST_BITS, _MOST_BITS = 12, 20
"""Of the size of a table of slots, which fits the processor's cache."""
_READS_AT_ONCE = 16


class Keys:
    """The keys of a batch, each once; null is a value like any other (ADR 028, rule 4)."""

    def __init__(self, changes: pa.Table, key: Sequence[str]) -> None:
        import pyarrow.compute as pc
        import pyarrow.types as is_

        self.names = tuple(key)
        columns = [changes[name].combine_chunks() for name in key]
        self._values = [pc.unique(column) for column in columns]
        self._sorted: dict[str, list[Any]] = {}
        for name, values in zip(self.names, self._values, strict=True):
            if not values.null_count and (is_.is_integer(values.type) or is_.is_string(values.type)):
                self._sorted[name] = sorted(values.to_pylist())
        self._slots: npt.NDArray[np.bool_] | None = None
        first = self._values[0]
        if is_.is_integer(first.type) and not first.null_count:
            numbers = first.to_numpy(zero_copy_only=False).astype(np.int64)
            self._slots = np.zeros(
                1 << min(max(_LEAST_BITS, (64 * numbers.size).bit_length()), _MOST_BITS), np.bool_
            )
            self._slots[numbers & (self._slots.size - 1)] = True
        self._steps: list[pa.Array] = []
        self._codes = self._combined(columns, learn=True)

    def number_distinct(self) -> int:
        """How many different keys there are."""
        import pyarrow.compute as pc

        return int(pc.count_distinct(self._codes, mode="all").as_py())

    def may_be_within(self, name: str, low: Any, high: Any) -> bool:
        """Whether a value of that key column may be within the bounds; True where nothing is known about it."""
        values = self._sorted.get(name)
        if values is None or low is None or high is None or (values and not isinstance(low, type(values[0]))):
            return True
        at = bisect_left(values, low)
        return at < len(values) and bool(values[at] <= high)

    def find(self, rows: pa.Table) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The places of the rows with a key of the batch, ascending, and for each the index of the change."""
        import pyarrow.compute as pc

        columns = [rows[name].combine_chunks() for name in self.names]
        places = self._candidates(columns[0])
        if places is not None:
            columns = [column.take(places) for column in columns]
        indexes = pc.index_in(self._combined(columns, learn=False), value_set=self._codes)
        found = np.flatnonzero(np.asarray(pc.is_valid(indexes)))
        changes = np.asarray(indexes.take(found)).astype(np.int64)
        return (found if places is None else places[found]), changes

    def _candidates(self, column: pa.Array) -> npt.NDArray[np.int64] | None:
        """The places of the rows whose first key column may have a value of the batch; None if it does not say.

        A look at the lower bits of a number is ten times as fast as a look-up of the number in a hash table.
        """
        if self._slots is None or column.null_count:
            return None
        bits = column.to_numpy(zero_copy_only=False).astype(np.int64, copy=False) & (self._slots.size - 1)
        return np.flatnonzero(self._slots[bits])

    def _combined(self, columns: Sequence[pa.Array], *, learn: bool) -> pa.Array:
        """One array whose values are equal where the keys are. Columns are numbered one after the other, so that the
        numbers stay small; a value that no key has is null."""
        import pyarrow.compute as pc

        if len(columns) == 1:
            return columns[0]
        codes = pc.index_in(columns[0], value_set=self._values[0]).cast("int64")
        for at, column in enumerate(columns[1:], start=1):
            values = self._values[at]
            code = pc.index_in(column, value_set=values).cast("int64")
            pairs = pc.add(pc.multiply(codes, len(values)), code)
            if learn:
                self._steps.append(pc.unique(pairs))
            codes = pc.index_in(pairs, value_set=self._steps[at - 1]).cast("int64")
        return codes


@dataclass(frozen=True)
class Matches:
    """Rows of one data file that are not deleted and have a key of the batch."""

    file: DataFile
    positions: npt.NDArray[np.int64]
    """In the file."""
    changes: npt.NDArray[np.int64]
    """The index of the change with the key of each."""
    rows: pa.Table
    """All columns of the table."""


@dataclass(frozen=True)
class Since:
    """Leaves out rows that have less than the key's `least` in a column; null, of either, leaves none out. And those
    that have a value of `is_null`, if that is a column."""

    column: str
    least: pa.Array
    """For each change."""
    is_null: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,) if self.is_null is None else (self.column, self.is_null)

    def mask(self, rows: pa.Table, changes: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Whether these rows, whose keys are those of these changes, stay."""
        import pyarrow as pa
        import pyarrow.compute as pc

        least = self.least.take(pa.array(changes))
        stays = np.asarray(pc.fill_null(pc.greater_equal(rows[self.column], least), True))
        return stays if self.is_null is None else stays & np.asarray(rows[self.is_null].is_null())


def may_hold(add: Action, keys: Keys) -> bool:
    """Whether the file may hold one of the keys, by its statistics."""
    stats = stats_of(add)
    low, high = stats.get("minValues") or {}, stats.get("maxValues") or {}
    return all(keys.may_be_within(name, low.get(name), high.get(name)) for name in keys.names)


def find_rows(files: Sequence[DataFile], keys: Keys, since: Since | None = None) -> list[Matches]:
    """Find the rows with a key of the batch, in all cores; row groups that cannot have one are not read. With `since`
    rows are left out, whose other columns are then not read where a row group has no more."""
    wanted = [(file, groups) for file in files if (groups := _groups(file, keys))]
    cores = os.cpu_count() or 1
    number = sum(len(groups) for _, groups in wanted)
    # Two parts for each core, so that none waits long for the last; each part has its file for itself.
    size = max(1, number // (2 * cores))
    parts = [(file, groups[at : at + size]) for file, groups in wanted for at in range(0, len(groups), size)]
    # Shared by threads: `keys`, as Arrow's arrays are immutable and NumPy allows reads of one array by several threads;
    # the bitmaps of deleted rows (see `DataFile.for_another_thread`). No ParquetFile, and nothing that it returns.
    # Who waits for an object store leaves the cores to others.
    threads = _READS_AT_ONCE if any(file.source.is_remote for file in files) else cores
    with ThreadPoolExecutor(min(threads, len(parts)) or 1, "find-rows") as pool:
        found = pool.map(
            lambda part: _found(part[0], part[1], keys, since, use_threads=number < cores), parts
        )
        return [matches for of_part in found for matches in of_part]


def _found(
    file: DataFile, groups: Sequence[int], keys: Keys, since: Since | None, *, use_threads: bool
) -> list[Matches]:
    own = file.for_another_thread()
    own.fetch(groups, _read_first(keys, since))
    live = {group: _live(own, group, keys, since, use_threads=use_threads) for group in groups}
    hit = [group for group, (local, _) in live.items() if local.size]
    own.fetch(hit, file.schema.names)
    matches = []
    for group in hit:
        local, chosen = live[group]
        rows = own.read([group], file.schema.names, use_threads=use_threads).take(local)
        matches.append(Matches(file, local + own.begin_of(group), chosen, rows))
    return matches


def _read_first(keys: Keys, since: Since | None) -> list[str]:
    return [*keys.names] if since is None else [*keys.names, *since.columns]


def _live(
    file: DataFile, group: int, keys: Keys, since: Since | None, *, use_threads: bool
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The places in a row group of the rows with a key of the batch that are not deleted, and the change of each."""
    rows = file.read([group], _read_first(keys, since), use_threads=use_threads)
    local, chosen = keys.find(rows)
    if since is not None and local.size:
        stays = since.mask(rows.select(since.columns).take(local), chosen)
        local, chosen = local[stays], chosen[stays]
    if not local.size:
        return local, chosen
    positions = local + file.begin_of(group)
    if deleted := file.marked & BitMap(positions.tolist()):
        live = ~np.isin(positions, np.fromiter(deleted, np.int64, len(deleted)))
        local, chosen = local[live], chosen[live]
    return local, chosen


def _groups(file: DataFile, keys: Keys) -> list[int]:
    return [n for n in range(file.parquet.num_row_groups) if _may(file, n, keys)]


def _may(file: DataFile, group: int, keys: Keys) -> bool:
    """Whether the row group may hold one of the keys, by its statistics, which are used for whole numbers only."""
    import pyarrow.types as is_

    metadata = file.parquet.metadata.row_group(group)
    for n in range(metadata.num_columns):
        column = metadata.column(n)
        name = column.path_in_schema
        if name not in keys.names or not is_.is_integer(file.schema.field(name).type):
            continue
        statistics = column.statistics
        if statistics is None or not statistics.has_min_max or (statistics.null_count is None):
            continue
        if not keys.may_be_within(name, statistics.min, statistics.max):
            return False
    return True
