"""Literal bounds of a batch's keys: the only thing by which a MERGE passes over files before it joins."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.columns import col

__all__ = ["key_bounds"]

_BOUNDED = (T.IntegralType, T.StringType, T.DateType, T.DecimalType)
"""Types whose smallest and largest value come back from Spark as they went out, whatever the zone or the precision."""


def key_bounds(changes: DataFrame, key: Sequence[str], frame: str) -> Column | None:
    """What holds for the key columns of every row in the frame aliased `frame` that has a key of `changes`; None where
    there is nothing to say. Counts in Spark, one row comes back.

    A key column with a null among the changes has no bounds: its rows are found by null-safe equality alone.
    """
    bounded = [n for n in key if isinstance(changes.schema[n].dataType, _BOUNDED)]
    if not bounded:
        return None
    asked = [f(col(n)) for n in bounded for f in (F.min, F.max, _nulls)]
    found = changes.agg(*asked).first()
    assert found is not None
    bounds: list[Column] = []
    for at, name in enumerate(bounded):
        low, high, nulls = found[3 * at : 3 * at + 3]
        if low is None or nulls:
            continue
        # As text, for a date before 1582 is another day to Java's older classes.
        ends = [F.lit(str(end)).cast(changes.schema[name].dataType) for end in (low, high)]
        bounds.append(col(name, frame).between(*ends))
    return reduce(lambda a, b: a & b, bounds) if bounds else None


def _nulls(column: Column) -> Column:
    return F.count_if(column.isNull())
