"""Groups of few added rows, merged with the result in the driver: what `added_groups` does, without a Spark job.

For an aggregate of plain columns (`sql.plain_aggregates`), where the rows that it needs are in data files that the log
of a local disk names, and their types are those that Arrow compares and sums as Spark does. A sum that might overflow
is left to Spark, which raises the error. See docs/adr/047-few-rows-are-aggregated-in-the-driver.md.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from pyspark.sql import types as T

from bridge.columns import KIND
from bridge.delta.appended_files import NamedFiles, appended_files, files_at, newest_files
from bridge.delta.rows_in_driver import is_simple, read_columns
from bridge.delta.table import Table
from bridge.pipelines.scripts.arrow_aggregates import MightOverflow, aggregated
from bridge.pipelines.scripts.few_rows import are_few_bytes, is_local
from bridge.pipelines.scripts.group_codes import Groups, new_values
from bridge.pipelines.scripts.source_tables import SourceRange
from bridge.rows import RowKind
from bridge.sql import InsertPlan
from bridge.sql.plain_aggregates import PlainAggregate, PlainFunction

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["MOST_BYTES", "MOST_ROWS", "driver_groups"]

MOST_BYTES = 64 << 20
"""Of data files with the rows before, which COUNT(DISTINCT) needs, and of those of the result."""
MOST_ROWS = 10_000_000
"""Of each: files of one value have many rows in few bytes."""

_INTEGERS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_LONGEST = 28
"""The digits of a DECIMAL of which Spark's sum, with ten more, cannot be cut to 38."""
_GROUP, _DISTINCT = PlainFunction.GROUP, PlainFunction.COUNT_DISTINCT
_BOUNDS = (PlainFunction.MIN, PlainFunction.MAX)
_COUNTS = (PlainFunction.COUNT_ROWS, PlainFunction.COUNT)
_OF_ROWS = (*_COUNTS, PlainFunction.SUM, *_BOUNDS)


def driver_groups(plan: InsertPlan, result: Table, ranges: Mapping[str, SourceRange]) -> pa.Table | None:
    """The groups of the rows that the source got, merged with their rows in the result: its columns and `__kind`, which
    is +U, one row for each group, in no order. None where Spark must compute them, and wherever Spark or Delta would
    raise an error.

    The rows of the result are those of its newest version; it must not change meanwhile, or its MERGE must fail then.
    """
    import pyarrow as pa

    plain = plan.plain
    if plain is None or not is_local(result.spark):
        return None
    source = ranges[plain.source]
    types = {field.name: field.dataType for field in source.table.fields}
    if not source.is_part or not _are_exact(plain, types, result):
        return None
    added_files = appended_files(source.table, source.first, source.last)
    if added_files is None or not are_few_bytes(added_files.bytes):
        return None
    used = dict.fromkeys(c.column for c in plain.columns if c.column)
    added = read_columns(added_files, list(used), most_rows=MOST_ROWS, coded=_coded(plain))
    if added is None:
        return None
    keys = plain.of(_GROUP)
    groups = Groups(added, [column.column for column in keys])
    known = _rows(newest_files(result), result.columns, [column.name for column in keys])
    counted = _new_values(plain, source, groups, added)
    if known is None or counted is None:
        return None
    try:
        return _merged(plain, _aggregated(plain, added, groups) | counted, known, groups)
    except (MightOverflow, pa.ArrowInvalid):  # which a cast raises for a sum that its column cannot have
        return None


def _are_exact(plain: PlainAggregate, types: Mapping[str, T.DataType], result: Table) -> bool:
    """Whether Arrow computes these columns as Spark does, and the result has their types."""
    own = {field.name: field.dataType for field in result.fields}
    if own.keys() != {column.name for column in plain.columns}:
        return False
    return all(
        column.function is PlainFunction.COUNT_ROWS
        or (column.column in types and _is_exact(column.function, types[column.column], own[column.name]))
        for column in plain.columns
    )


def _is_exact(function: PlainFunction, type: T.DataType, own: T.DataType) -> bool:
    if function is PlainFunction.SUM:
        if isinstance(type, T.DecimalType):
            return type.precision <= _LONGEST and own == T.DecimalType(38, type.scale)
        return isinstance(type, _INTEGERS) and own == type
    if not is_simple(type) or (isinstance(type, T.DecimalType) and function in (_GROUP, _DISTINCT)):
        return False
    return own == (T.LongType() if function in (*_COUNTS, _DISTINCT) else type)


def _coded(plain: PlainAggregate) -> set[str]:
    return {column.column for column in plain.of(_GROUP, _DISTINCT)}


def _rows(files: NamedFiles | None, columns: Sequence[str], coded: Collection[str]) -> pa.Table | None:
    if files is None or files.bytes > MOST_BYTES:
        return None
    return read_columns(files, columns, most_rows=MOST_ROWS, coded=coded)


def _new_values(
    plain: PlainAggregate, source: SourceRange, groups: Groups, added: pa.Table
) -> dict[str, pa.ChunkedArray] | None:
    """For each COUNT(DISTINCT) how many values of each group the rows before do not have."""
    import pyarrow as pa

    counted = plain.of(_DISTINCT)
    if not counted:
        return {}
    keys = [column.column for column in plain.of(_GROUP)]
    names = list(dict.fromkeys([*keys, *(column.column for column in counted)]))
    before = _rows(files_at(source.table, source.first - 1), names, _coded(plain))
    if before is None:
        return None
    known = groups.numbers(before, keys)
    found = {c.name: new_values(groups, added[c.column], before[c.column], known) for c in counted}
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
    plain: PlainAggregate, fresh: Mapping[str, pa.ChunkedArray], known: pa.Table, groups: Groups
) -> pa.Table:
    """The groups merged with their rows in the result, of which `known` are all."""
    import pyarrow as pa

    keys = [column.name for column in plain.of(_GROUP)]
    numbers = groups.numbers(known, keys)
    known, numbers = known.filter(pa.array(numbers >= 0)), numbers[numbers >= 0]
    both = {
        c.name: (
            c.function if c.function in _BOUNDS else PlainFunction.SUM,
            pa.chunked_array(
                [*known[c.name].chunks, *fresh[c.name].cast(known.schema.field(c.name).type).chunks]
            ),
        )
        for c in plain.columns
        if c.function is not _GROUP
    }
    found = aggregated(both, np.concatenate([numbers, np.arange(groups.count)]), groups.count)
    kinds = pa.repeat(RowKind.UPDATE_AFTER.value, groups.count)
    columns = {
        name: fresh[name] if name in keys else found[name].cast(known.schema.field(name).type)
        for name in known.column_names
    }
    return pa.table({**columns, KIND: kinds})


def _plain(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts as such."""
    import pyarrow as pa

    return values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values
