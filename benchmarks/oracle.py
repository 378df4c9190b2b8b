"""Checks a table against its topic without code of the bridge: numpy folds the sent keys, Spark counts and lists the
rows.
"""

from __future__ import annotations

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from benchmarks.topics import Load


def wrong(rows: DataFrame, load: Load, base: int = 0) -> str | None:
    """Returns what is incorrect in `rows`, or None. Before `load` the table had the ids 0 to `base` with the number 0.
    Rows that the load touched are compared one by one, the others by their count, sum and sum of squares."""
    fold = load.fold()
    untouched = _untouched(base, fold.touched)
    fits = F.expr(" AND ".join(f"{name} <=> ({value})" for name, value in load.rows.sql.items()))
    old, exact = F.col("number") == 0, F.col("id").cast("decimal(38, 0)")
    found = rows.agg(
        F.count(F.lit(1)).alias("rows"),
        F.count_if(~F.coalesce(fits, F.lit(False))).alias("misfits"),
        F.count_if(old).alias("old"),
        F.sum(F.when(old, exact)).alias("sum"),
        F.sum(F.when(old, exact * exact)).alias("squares"),
    ).first()
    assert found is not None
    if found["misfits"]:
        return f"{found['misfits']:,} of {found['rows']:,} rows have values that no record wrote"
    if (found["old"], int(found["sum"] or 0), int(found["squares"] or 0)) != untouched:
        return f"{found['old']:,} rows are unchanged, but not the {untouched[0]:,} expected ones"
    listed = rows.where(~old).select("id", "number").toArrow()
    ids, numbers = (listed.column(name).to_numpy() for name in ("id", "number"))
    order = np.argsort(ids, kind="stable")
    ids, numbers = ids[order], numbers[order]
    if not np.array_equal(ids, fold.ids):
        missing, more = np.setdiff1d(fold.ids, ids), np.setdiff1d(ids, fold.ids)
        twice = len(ids) - len(np.unique(ids))
        return f"{len(missing):,} rows are missing, {len(more):,} should not exist, {twice:,} are duplicates"
    if (stale := int(np.count_nonzero(numbers != fold.numbers))) > 0:
        return f"{stale:,} of {len(ids):,} rows differ from the last record of their key"
    return None


def digest(frame: DataFrame) -> tuple[int, int]:
    """Returns the number of rows and the sum of their hashes, whatever their order."""
    row = F.xxhash64(*sorted(frame.columns)).cast("decimal(38, 0)")
    found = frame.agg(F.count(F.lit(1)), F.sum(row)).first()
    assert found is not None
    return int(found[0]), int(found[1] or 0)


def same(left: tuple[int, int], right: tuple[int, int]) -> str | None:
    """Returns how the rows of two frames with the same columns differ, by their `digest`, or None."""
    return None if left == right else f"{left[0]:,} and {right[0]:,} rows, which differ"


def _untouched(base: int, touched: np.ndarray[tuple[int], np.dtype[np.int64]]) -> tuple[int, int, int]:
    """Returns (count, sum, sum of squares) of the untouched ids below `base`."""
    old = [int(id) for id in touched[touched < base]]
    last = base - 1
    sums = last * base // 2 if base else 0
    squares = last * base * (2 * last + 1) // 6 if base else 0
    return base - len(old), sums - sum(old), squares - sum(id * id for id in old)
