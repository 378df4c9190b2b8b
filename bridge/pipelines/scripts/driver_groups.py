"""Merges groups of few added rows with the result in the driver: what `added_groups` does, without a Spark job.

It is for an aggregate of plain columns (`sql.plain_aggregates`), where the rows that it needs are in data files that
the log names, and Arrow compares and sums their types as Spark does. Rows and values are numbered in Arrow, so that
numpy can compare and count them. Values are equal as in Spark for the types of `rows_in_driver`, DECIMAL aside: texts
by their bytes; as in GROUP BY a null is a value like another. A sum of integers wraps. A sum of a DECIMAL that might
overflow on the way is left to Spark, which raises an error for some orders of its rows. See
docs/adr/047-few-rows-are-aggregated-in-the-driver.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T

from bridge.columns import KIND
from bridge.delta.appended_files import appended_files, files_at
from bridge.delta.logged_files import NamedFiles
from bridge.delta.rows_in_driver import is_simple, read_columns
from bridge.delta.table import Table
from bridge.pipelines.scripts.few_rows import are_few_bytes
from bridge.pipelines.scripts.source_tables import SourceRange
from bridge.rows import RowKind
from bridge.sql import InsertPlan
from bridge.sql.plain_aggregates import PlainAggregate, PlainFunction
from bridge.sql.sums import LONGEST, MORE_DIGITS, MOST_DIGITS
from bridge.ways import NotThisWay

Numbers = npt.NDArray[np.int64]
"""One for each row, from 0; -1 for a value or a group that has none."""

_WIDE = 4
"""A table of all integers between the least and the greatest value may have this many places for each value."""


class Values:
    """The different values of a column, numbered; without its nulls unless `nulls`."""

    def __init__(self, column: pa.ChunkedArray, *, nulls: bool) -> None:
        plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        found = pc.unique(plain)
        self._values = found if nulls else found.drop_null()
        self._nulls = nulls
        self._places = _places(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def numbers(self, column: pa.ChunkedArray) -> Numbers:
        """The number of each row's value, which may be of another column."""
        if not pa.types.is_dictionary(column.type):
            return self._looked_up(column)
        return np.concatenate(
            [np.empty(0, np.int64), *(self._coded(chunk) for chunk in column.chunks if len(chunk))]
        )

    def _coded(self, chunk: pa.DictionaryArray) -> Numbers:
        # The last place is that of null.
        known = self._looked_up(pa.chunked_array([chunk.dictionary, pa.nulls(1, chunk.dictionary.type)]))
        places: Numbers = known[chunk.indices.fill_null(len(known) - 1).to_numpy()]
        return places

    def _looked_up(self, column: pa.ChunkedArray) -> Numbers:
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
    found = pc.index_in(pa.array(others), value_set=pa.array(pairs))
    is_in = np.zeros(len(pairs), np.bool_)
    is_in[found.drop_null().to_numpy()] = True
    return is_in


_ANY = 80
"""More digits than any number has here."""
_ARROWS = {
    PlainFunction.COUNT_ROWS: "count_all",
    PlainFunction.COUNT: "count",
    PlainFunction.SUM: "sum",
    PlainFunction.MIN: "min",
    PlainFunction.MAX: "max",
}


def aggregated(
    columns: Mapping[str, tuple[PlainFunction, pa.ChunkedArray | None]], groups: Numbers, count: int
) -> dict[str, pa.ChunkedArray]:
    """The aggregates of columns for the groups 0 to `count` - 1, in this order; `groups` are those of the rows, each of
    which has one. COUNT(*) has no column; texts are plain.

    Nulls are passed over; the sum, least and greatest value of none are null. Sums of integers wrap in int64, those of
    a decimal have 38 digits. Raises NotThisWay.
    """
    most = int(np.bincount(groups).max(initial=0))
    given: dict[str, pa.Array | pa.ChunkedArray] = {"group": pa.array(groups)}
    wanted: list[tuple[object, ...]] = []
    names = {}
    for number, (name, (function, values)) in enumerate(columns.items()):
        arrow, own = _ARROWS[function], str(number)
        if values is None:
            wanted.append(([], arrow))
            names[name] = arrow
            continue
        given[own] = _summable(values, most) if function is PlainFunction.SUM else values
        options = [pc.CountOptions(mode="only_valid")] if function is PlainFunction.COUNT else []
        wanted.append((own, arrow, *options))
        names[name] = f"{own}_{arrow}"
    found = pa.table(given).group_by("group", use_threads=False).aggregate(wanted)
    assert found.num_rows == count
    order = pa.array(np.argsort(found["group"].to_numpy()))
    return {name: found[own].take(order) for name, own in names.items()}


def _summable(values: pa.ChunkedArray, most: int) -> pa.ChunkedArray:
    """The values in the type of their sum; that of a decimal holds the sum of any `most` of them."""
    if not pa.types.is_decimal(values.type):
        return values.cast(pa.int64())
    digits, scale = values.type.precision, values.type.scale
    with localcontext() as context:
        context.prec = _ANY
        bounds = [abs(Decimal(bound)) for bound in pc.min_max(values).as_py().values() if bound is not None]
        greatest = max(bounds, default=Decimal(0)) * most
        if greatest.scaleb(scale) >= 10 ** min(digits + MORE_DIGITS, MOST_DIGITS):
            raise NotThisWay("a sum of a DECIMAL might not fit, in some order of its rows")
    return values.cast(pa.decimal128(MOST_DIGITS, scale))


MOST_BYTES = 64 << 20
"""Of data files with the rows before, which COUNT(DISTINCT) needs, and of those of the result."""
MOST_ROWS = 10_000_000
"""Of each: files of one value have many rows in few bytes."""

_INTEGERS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_GROUP, _DISTINCT = PlainFunction.GROUP, PlainFunction.COUNT_DISTINCT
_BOUNDS = (PlainFunction.MIN, PlainFunction.MAX)
_COUNTS = (PlainFunction.COUNT_ROWS, PlainFunction.COUNT)
_OF_ROWS = (*_COUNTS, PlainFunction.SUM, *_BOUNDS)


@dataclass(frozen=True)
class _Inputs:
    """The files that a refresh reads."""

    plain: PlainAggregate
    added: NamedFiles
    before: NamedFiles | None
    """Those of the rows before; None where no COUNT(DISTINCT) needs them."""
    result: NamedFiles

    @property
    def groups(self) -> list[str]:
        """The columns of GROUP BY in the source, in the order of `keys`."""
        return [column.column for column in self.plain.of(_GROUP)]

    @property
    def keys(self) -> list[str]:
        """The same columns in the result."""
        return [column.name for column in self.plain.of(_GROUP)]


def driver_groups(plan: InsertPlan, result: Table, ranges: Mapping[str, SourceRange]) -> pa.Table:
    """The groups of the rows that the source got, merged with their rows in the result: its columns and `__kind`, which
    is +U, one row for each group, in no order. Raises NotThisWay where Spark must compute them, and wherever Spark or
    Delta would raise an error.

    The rows of the result are those of its newest version; it must not change meanwhile, or its MERGE must fail then.
    """
    if plan.plain is None:
        raise NotThisWay("the query is more than an aggregate of plain columns")
    inputs = _inputs(plan.plain, result, ranges[plan.plain.source])
    if not _are_exact(inputs):
        raise NotThisWay("a column has a type that Arrow compares or sums in another way")
    try:
        return _computed(inputs)
    except pa.ArrowException as error:  # as for a sum that its column cannot have
        raise NotThisWay("Arrow does not compute it") from error


def _inputs(plain: PlainAggregate, result: Table, source: SourceRange) -> _Inputs:
    """The files to read. Raises NotThisWay where they are not known, or too large."""
    if not source.is_part:
        raise NotThisWay("all rows of the source are new")
    added = appended_files(source.table, source.first, source.last)
    if not are_few_bytes(added.bytes):
        raise NotThisWay("the source got many rows")
    before = files_at(source.table, source.first - 1) if plain.of(_DISTINCT) else None
    known = files_at(result, None)
    if any(files.bytes > MOST_BYTES for files in (known, before) if files is not None):
        raise NotThisWay(f"the files of the source or the result have more than {MOST_BYTES >> 20} MiB")
    return _Inputs(plain, added, before, known)


def _are_exact(inputs: _Inputs) -> bool:
    """Whether Arrow computes these columns as Spark does, and the result has their types."""
    types = {field.name: field.dataType for field in inputs.added.fields}
    own = {field.name: field.dataType for field in inputs.result.fields}
    return own.keys() == {column.name for column in inputs.plain.columns} and all(
        column.function is PlainFunction.COUNT_ROWS
        or (column.column in types and _is_exact(column.function, types[column.column], own[column.name]))
        for column in inputs.plain.columns
    )


def _is_exact(function: PlainFunction, type: T.DataType, own: T.DataType) -> bool:
    if function is PlainFunction.SUM:
        if isinstance(type, T.DecimalType):
            return type.precision <= LONGEST and own == T.DecimalType(38, type.scale)
        return isinstance(type, _INTEGERS) and own == type
    if not is_simple(type) or (isinstance(type, T.DecimalType) and function in (_GROUP, _DISTINCT)):
        return False
    return own == (T.LongType() if function in (*_COUNTS, _DISTINCT) else type)


def _computed(inputs: _Inputs) -> pa.Table:
    """The groups, merged. Raises NotThisWay for a file that only Spark reads right, or with too many rows."""
    plain = inputs.plain
    coded = {column.column for column in plain.of(_GROUP, _DISTINCT)}
    used = dict.fromkeys(column.column for column in plain.columns if column.column)
    added = read_columns(inputs.added, list(used), most_rows=MOST_ROWS, coded=coded)
    names = [field.name for field in inputs.result.fields]
    known = read_columns(inputs.result, names, most_rows=MOST_ROWS, coded=inputs.keys)
    groups = Groups(added, inputs.groups)
    fresh = _aggregated(plain, added, groups)
    if inputs.before is not None:
        wanted = list(dict.fromkeys([*inputs.groups, *(column.column for column in plain.of(_DISTINCT))]))
        before = read_columns(inputs.before, wanted, most_rows=MOST_ROWS, coded=coded)
        fresh |= _new_values(inputs, groups, added, before)
    return _merged(inputs, fresh, known, groups)


def _new_values(
    inputs: _Inputs, groups: Groups, added: pa.Table, before: pa.Table
) -> dict[str, pa.ChunkedArray]:
    """For each COUNT(DISTINCT) how many values of each group the rows before do not have."""
    known = groups.numbers(before, inputs.groups)
    found = {
        c.name: new_values(groups, added[c.column], before[c.column], known)
        for c in inputs.plain.of(_DISTINCT)
    }
    return {name: pa.chunked_array([numbers]) for name, numbers in found.items()}


def _aggregated(plain: PlainAggregate, added: pa.Table, groups: Groups) -> dict[str, pa.ChunkedArray]:
    """The columns of the result for the added rows alone, without COUNT(DISTINCT)."""
    columns = {
        c.name: (c.function, _plain(added[c.column]) if c.column else None) for c in plain.of(*_OF_ROWS)
    }
    own = {c.name: _plain(added[c.column].take(pa.array(groups.first_rows))) for c in plain.of(_GROUP)}
    return own | aggregated(columns, groups.of_rows, groups.count)


def _merged(
    inputs: _Inputs, fresh: Mapping[str, pa.ChunkedArray], known: pa.Table, groups: Groups
) -> pa.Table:
    """The groups merged with their rows in the result, of which `known` are all."""
    numbers = groups.numbers(known, inputs.keys)
    known, numbers = known.filter(pa.array(numbers >= 0)), numbers[numbers >= 0]
    both = {}
    for column in inputs.plain.of(*_OF_ROWS, _DISTINCT):
        values, type = known[column.name], known.schema.field(column.name).type
        chunks = [*values.chunks, *_wrapped(fresh[column.name], type).chunks]
        function = column.function if column.function in _BOUNDS else PlainFunction.SUM
        both[column.name] = (function, pa.chunked_array(chunks, type))
    merged = aggregated(both, np.concatenate([numbers, np.arange(groups.count)]), groups.count)
    columns = {
        name: fresh[name] if name in inputs.keys else _wrapped(merged[name], known.schema.field(name).type)
        for name in known.column_names
    }
    return pa.table({**columns, KIND: pa.repeat(RowKind.UPDATE_AFTER.value, groups.count)})


def _wrapped(values: pa.ChunkedArray, type: pa.DataType) -> pa.ChunkedArray:
    """Values in the type of their column, of an integer the lowest bits: sums have more."""
    return values.cast(type, safe=not pa.types.is_integer(type))


def _plain(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts as such."""
    return values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values
