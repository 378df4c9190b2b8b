"""Groups of few added rows, merged with the result in the driver: what `added_groups` does, without a Spark job.

For an aggregate of plain columns (`sql.plain_aggregates`), where the rows that it needs are in data files that the log
names, and their types are those that Arrow compares and sums as Spark does. A sum of a DECIMAL that might overflow is
left to Spark, which raises the error. See docs/adr/047-few-rows-are-aggregated-in-the-driver.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from pyspark.sql import types as T

from bridge.columns import KIND
from bridge.delta.appended_files import appended_files, files_at
from bridge.delta.logged_files import NamedFiles
from bridge.delta.rows_in_driver import is_simple, read_columns
from bridge.delta.table import Table
from bridge.pipelines.scripts.arrow_aggregates import aggregated
from bridge.pipelines.scripts.few_rows import are_few_bytes
from bridge.pipelines.scripts.group_codes import Groups, new_values
from bridge.pipelines.scripts.source_tables import SourceRange
from bridge.rows import RowKind
from bridge.sql import InsertPlan
from bridge.sql.plain_aggregates import PlainAggregate, PlainFunction
from bridge.sql.sums import LONGEST
from bridge.ways import NotThisWay

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["MOST_BYTES", "MOST_ROWS", "driver_groups"]

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
    import pyarrow as pa

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
    import pyarrow as pa

    known = groups.numbers(before, inputs.groups)
    found = {
        c.name: new_values(groups, added[c.column], before[c.column], known)
        for c in inputs.plain.of(_DISTINCT)
    }
    return {name: pa.chunked_array([numbers]) for name, numbers in found.items()}


def _aggregated(plain: PlainAggregate, added: pa.Table, groups: Groups) -> dict[str, pa.ChunkedArray]:
    """The columns of the result for the added rows alone, without COUNT(DISTINCT)."""
    import pyarrow as pa

    columns = {
        c.name: (c.function, _plain(added[c.column]) if c.column else None) for c in plain.of(*_OF_ROWS)
    }
    own = {c.name: _plain(added[c.column].take(pa.array(groups.first_rows))) for c in plain.of(_GROUP)}
    return own | aggregated(columns, groups.of_rows, groups.count)


def _merged(
    inputs: _Inputs, fresh: Mapping[str, pa.ChunkedArray], known: pa.Table, groups: Groups
) -> pa.Table:
    """The groups merged with their rows in the result, of which `known` are all."""
    import pyarrow as pa

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
    import pyarrow as pa

    return values.cast(type, safe=not pa.types.is_integer(type))


def _plain(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts as such."""
    import pyarrow as pa

    return values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values
