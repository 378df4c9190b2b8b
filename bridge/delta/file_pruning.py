"""Derives a predicate of literals from the keys of a batch: before its join, a MERGE skips files by literals only."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.columns import col
from bridge.formats.sql import literal
from bridge.schema import quote

MAX_NAMED_KEYS = 1000
"""The most changes whose keys the predicate names one by one, if they are short: Delta writes the predicate into the
commit."""

KEYS_BY_REFERENCE = {
    "spark.sql.optimizer.inSetConversionThreshold": "1",
    "spark.sql.optimizer.inSetSwitchThreshold": "0",
}
"""Settings under which Spark generates code without the named keys, so that the next batch reuses the compiled code."""

_INTEGERS: dict[type[T.DataType], tuple[int, str]] = {
    T.ByteType: (8, "Y"),
    T.ShortType: (16, "S"),
    T.IntegerType: (32, ""),
    T.LongType: (64, "L"),
}
"""Bits, and the suffix of a literal."""
_SHORT: tuple[type[T.DataType], ...] = (*_INTEGERS, T.DateType, T.DecimalType)
_SUPPORTED: tuple[type[T.DataType], ...] = (*_SHORT, T.StringType)
"""Types whose values survive a round trip through Python, whatever the time zone or the precision."""

_STEPS = 64


@dataclass(frozen=True)
class KeyPredicate:
    """A predicate that is true of every row with a key of the batch."""

    condition: Column | None = None
    """None where no predicate is known."""
    exact: bool = False
    """Whether it names the values of every key column, so that it is true of few other rows."""


def key_predicate(
    changes: DataFrame, key: Sequence[str], frame: str, *, max_named: int = MAX_NAMED_KEYS
) -> KeyPredicate:
    """Derive the predicate for the frame aliased `frame` from the keys of `changes`.

    The driver receives the keys of up to `max_named` changes; of more changes only the bounds of each key column. A key
    column with a null among the changes is left out, as only null-safe equality finds its rows.
    """
    supported = {n: type for n in key if isinstance(type := changes.schema[n].dataType, _SUPPORTED)}
    if not supported:
        return KeyPredicate()
    columns = list(map(col, supported))
    try:
        rows = changes.select(*columns).take(max_named + 1)
        bounds = () if len(rows) <= max_named else _bounds(changes, columns)
    except (ValueError, OverflowError):  # Python cannot represent a date
        return KeyPredicate()
    named = len(rows) <= max_named
    if named:
        values_of = [list({row[at] for row in rows}) for at in range(len(columns))]
    else:
        values_of = [[None] if nulls else [low, high] for low, high, nulls in bounds]
    conditions = [
        _condition(f"{frame}.{quote(name)}", values, type, named=named)
        for (name, type), values in zip(supported.items(), values_of, strict=True)
        if values and None not in values
    ]
    exact = (
        named and len(conditions) == len(key) and all(isinstance(type, _SHORT) for type in supported.values())
    )
    return KeyPredicate(F.expr(" AND ".join(conditions)) if conditions else None, exact)


def _bounds(changes: DataFrame, columns: Sequence[Column]) -> Sequence[Any]:
    bounds = changes.agg(*(F.struct(F.min(c), F.max(c), F.count_if(c.isNull())) for c in columns)).first()
    assert bounds is not None
    return bounds


def _condition(column: str, values: Collection[Any], type: T.DataType, *, named: bool) -> str:
    if named and isinstance(type, _SHORT):
        return f"{column} IN ({', '.join(_literal(value, type) for value in values)})"
    # The order of strings by code points (Python) is that by bytes of UTF-8 (Spark).
    low, high = min(values), max(values)
    if integer := _INTEGERS.get(type.__class__):
        low, high = rounded_bounds(low, high, integer[0])
    return f"{column} BETWEEN {_literal(low, type)} AND {_literal(high, type)}"


def rounded_bounds(low: int, high: int, bits: int) -> tuple[int, int]:
    """Widen bounds to multiples of a power of two, by at most 1/32 of their distance.

    Numbers are part of the code that Spark generates; the rounded bounds of random keys are the same in most batches.
    """
    step = 1 << ((high - low) // _STEPS).bit_length()
    end = 1 << (bits - 1)
    return max(-end, low // step * step), min(end - 1, -(-high // step) * step)


def _literal(value: Any, type: T.DataType) -> str:
    if integer := _INTEGERS.get(type.__class__):
        return f"{value}{integer[1]}"  # a thousand casts take Spark a tenth of a second
    # As text: java.sql.Date has another calendar before 1582.
    return f"CAST({literal(str(value))} AS {type.simpleString()})"
