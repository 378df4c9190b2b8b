"""What a change does to a single column of its row, where it does not set it: `delta.aggregate`.

Each rule is here in its three forms: over changes in Arrow, over changes in Spark, and a change beside its row in
Spark. Nulls never count. Values are combined in the order of their changes, and in any portions: what two portions
give, combined, is what both give at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bridge.schema import ColumnRule

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa
    from pyspark.sql import Column, WindowSpec
    from pyspark.sql import types as T

    Groups = npt.NDArray[np.int64]

_WIDEST_DECIMAL = 76
"""Digits in which Arrow adds, so that only the sum must fit its column, and not what it is made of."""


def does_not_fit(name: str) -> str:
    """The beginning of what is said of a sum that does not fit its column."""
    return f"the sum of column {name!r} does not fit its type"


def folded(rule: ColumnRule, values: pa.Array, groups: Groups, count: int) -> pa.Array:
    """What the values of each group give, which stand in the order of their changes: one value for each of the groups
    0 to `count` - 1, in the type of `values`; null for a group without a value.

    Raises pyarrow.ArrowInvalid for a sum that does not fit the type.
    """
    import numpy as np

    known = values.is_valid()
    values, groups = values.filter(known), groups[known.to_numpy(zero_copy_only=False)]
    if rule is ColumnRule.SUM:
        return _sums(values, groups, count)
    if rule is ColumnRule.COLLECT_SET:
        return _sets(values, groups, count)
    order = np.arange(len(groups))
    if rule is not ColumnRule.FIRST:
        order = _ascending(values)
        order = order[::-1] if rule is ColumnRule.MAX else order
    found, at = np.unique(groups[order], return_index=True)
    return _of_groups(values, found, order[at], count)


def combined(rule: ColumnRule, rows: pa.Array, changes: pa.Array) -> pa.Array:
    """What the rule makes of the value of each row and that of its change, of the same place. Raises as `folded`."""
    import numpy as np
    import pyarrow as pa

    places = np.arange(len(rows))
    both = pa.concat_arrays([rows, changes.cast(rows.type)])
    return folded(rule, both, np.concatenate([places, places]), len(rows))


def _ascending(values: pa.Array) -> Groups:
    """The places of the values from the least to the greatest, which is NaN, as in Spark."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_floating(values.type):
        places: Groups = pc.sort_indices(values).to_numpy()
        return places
    return np.argsort(values.to_numpy(zero_copy_only=False))


def _sums(values: pa.Array, groups: Groups, count: int) -> pa.Array:
    import numpy as np
    import pyarrow as pa

    scale = values.type.scale if pa.types.is_decimal(values.type) else 0
    table = pa.table({"group": groups, "value": values.cast(pa.decimal256(_WIDEST_DECIMAL, scale))})
    sums = table.group_by("group").aggregate([("value", "sum")])
    fitting = sums["value_sum"].combine_chunks().cast(values.type)
    return _of_groups(fitting, sums["group"].to_numpy(), np.arange(len(fitting)), count)


def _of_groups(values: pa.Array, found: Groups, places: Groups, count: int) -> pa.Array:
    """For each group the value at the place that it is `found` with; null for the others."""
    import numpy as np
    import pyarrow as pa

    at = np.full(count, -1)
    at[found] = places
    return values.take(pa.array(at, mask=at < 0))


def _sets(values: pa.ListArray, groups: Groups, count: int) -> pa.ListArray:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    of_item = groups[pc.list_parent_indices(values).to_numpy()]
    items = pa.table({"group": of_item, "item": values.flatten()})
    items = items.filter(items["item"].is_valid()).group_by(["group", "item"]).aggregate([])
    items = items.sort_by([("group", "ascending"), ("item", "ascending")])
    ends = np.searchsorted(items["group"].to_numpy(), np.arange(count + 1)).astype(np.int32)
    has_none = np.ones(count, np.bool_)
    has_none[groups] = False
    # A null list is one whose offset is null.
    offsets = pa.array(ends, mask=np.append(has_none, False))
    return pa.ListArray.from_arrays(offsets, items["item"].combine_chunks(), type=values.type)


def folded_over(rule: ColumnRule, value: Column, field: T.StructField, window: WindowSpec) -> Column:
    """What the values of a column in the window give, in its order; null where there is none. A sum that does not fit
    the column is an error of Spark that says so, here and in `combined_with`."""
    from pyspark.sql import functions as F

    if rule is ColumnRule.FIRST:
        return F.first(value, ignorenulls=True).over(window)
    if rule is ColumnRule.SUM:
        return _fitting(F.sum(_wide(value, field)).over(window), F.count(value).over(window) > 0, field)
    if rule is ColumnRule.COLLECT_SET:
        lists = F.collect_set(value).over(window)  # of a hot key it is as long as it has different values
        return F.when(F.size(lists) > 0, _ordered(F.flatten(lists)))
    return (F.min if rule is ColumnRule.MIN else F.max)(value).over(window)


def combined_with(rule: ColumnRule, row: Column, change: Column, field: T.StructField) -> Column:
    """What the rule makes of the value of a row and that of a change of the same column."""
    from pyspark.sql import functions as F

    if rule is ColumnRule.FIRST:
        return F.coalesce(row, change)
    if rule is ColumnRule.SUM:
        total = F.try_add(_wide(row, field), _wide(change, field))
        return F.coalesce(_fitting(total, row.isNotNull() & change.isNotNull(), field), row, change)
    if rule is ColumnRule.COLLECT_SET:
        return F.coalesce(_ordered(F.concat(row, change)), row, change)
    return (F.least if rule is ColumnRule.MIN else F.greatest)(row, change)


def _wide(value: Column, field: T.StructField) -> Column:
    from pyspark.sql import types as T

    return value if isinstance(field.dataType, T.DecimalType) else value.cast(T.DecimalType(20, 0))


def _fitting(total: Column, has_values: Column, field: T.StructField) -> Column:
    from pyspark.sql import functions as F

    kind, fits = field.dataType, total.try_cast(field.dataType)
    why = f"{does_not_fit(field.name)} {kind.simpleString().upper()} (delta.aggregate); declare a wider type"
    return F.when(has_values & fits.isNull(), F.raise_error(F.lit(why))).otherwise(fits)


def _ordered(items: Column) -> Column:
    from pyspark.sql import functions as F

    return F.array_sort(F.array_distinct(F.array_compact(items)))
