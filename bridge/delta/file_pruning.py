"""What is known of a batch's keys, as literals: the only thing by which a MERGE passes over files before it joins."""

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

__all__ = ["KEYS_BY_REFERENCE", "MAX_NAMED_KEYS", "KeyPredicate", "key_predicate"]

MAX_NAMED_KEYS = 1000
"""So many keys are named one by one, if they are short: they stand in the commit, in the MERGE's condition."""

KEYS_BY_REFERENCE = {
    "spark.sql.optimizer.inSetConversionThreshold": "1",
    "spark.sql.optimizer.inSetSwitchThreshold": "0",
}
"""Settings under which the keys that are named are no part of the code that Spark makes: the next batch finds it
compiled."""

_INTEGERS: dict[type[T.DataType], tuple[int, str]] = {
    T.ByteType: (8, "Y"),
    T.ShortType: (16, "S"),
    T.IntegerType: (32, ""),
    T.LongType: (64, "L"),
}
"""Bits, and the suffix of a literal."""
_SHORT: tuple[type[T.DataType], ...] = (*_INTEGERS, T.DateType, T.DecimalType)
_KNOWN: tuple[type[T.DataType], ...] = (*_SHORT, T.StringType)
"""Types whose values come back from Spark as they went out, whatever the zone or the precision."""

_STEPS = 64


@dataclass(frozen=True)
class KeyPredicate:
    """What holds for the key columns of every row that has a key of a batch."""

    condition: Column | None = None
    """None where there is nothing to say."""
    exact: bool = False
    """Whether it names the values of each key column, so that few other rows hold it."""


def key_predicate(
    changes: DataFrame, key: Sequence[str], frame: str, *, max_named: int = MAX_NAMED_KEYS
) -> KeyPredicate:
    """What is known of the keys of `changes`, said of the frame aliased `frame`. Of FEW changes the keys come to the
    driver, of more one row with their bounds.

    A key column with a null among the changes is left out: its rows are found by null-safe equality alone.
    """
    known = {n: type for n in key if isinstance(type := changes.schema[n].dataType, _KNOWN)}
    if not known:
        return KeyPredicate()
    columns = list(map(col, known))
    try:
        some = changes.select(*columns).take(max_named + 1)
        bounds = () if len(some) <= max_named else _bounds(changes, columns)
    except ValueError:  # a date that Python has none for
        return KeyPredicate()
    each = len(some) <= max_named
    if each:
        told = [list({row[at] for row in some}) for at in range(len(columns))]
    else:
        told = [[None] if nulls else [low, high] for low, high, nulls in bounds]
    said = [
        _said(f"{frame}.{quote(name)}", values, type, each=each)
        for (name, type), values in zip(known.items(), told, strict=True)
        if values and None not in values
    ]
    named = each and len(said) == len(key) and all(isinstance(type, _SHORT) for type in known.values())
    return KeyPredicate(F.expr(" AND ".join(said)) if said else None, named)


def _bounds(changes: DataFrame, columns: Sequence[Column]) -> Sequence[Any]:
    found = changes.agg(*(F.struct(F.min(c), F.max(c), F.count_if(c.isNull())) for c in columns)).first()
    assert found is not None
    return found


def _said(column: str, values: Collection[Any], type: T.DataType, *, each: bool) -> str:
    if each and isinstance(type, _SHORT):
        return f"{column} IN ({', '.join(_literal(value, type) for value in values)})"
    # Python orders strings by code points, as Spark does by bytes of UTF-8.
    low, high = min(values), max(values)
    if integer := _INTEGERS.get(type.__class__):
        low, high = rounded_bounds(low, high, integer[0])
    return f"{column} BETWEEN {_literal(low, type)} AND {_literal(high, type)}"


def rounded_bounds(low: int, high: int, bits: int) -> tuple[int, int]:
    """Somewhat wider bounds: a number is part of the code that Spark makes, and the rounded bounds of random keys are
    the same in most batches."""
    step = 1 << ((high - low) // _STEPS).bit_length()
    end = 1 << (bits - 1)
    return max(-end, low // step * step), min(end - 1, -(-high // step) * step)


def _literal(value: Any, type: T.DataType) -> str:
    if integer := _INTEGERS.get(type.__class__):
        return f"{value}{integer[1]}"  # a thousand casts take Spark a tenth of a second
    # As text, for a date before 1582 is another day to Java's older classes.
    return f"CAST({literal(str(value))} AS {type.simpleString()})"
