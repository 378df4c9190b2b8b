"""Aggregates whose value after new rows follows from the value before and from these rows alone.

COUNT, SUM, MIN and MAX without DISTINCT, over sources that only add rows, are their own accumulators (Flink's word for
the state of an aggregate): a batch aggregates its new rows and merges the result with what is there. Sums of FLOAT and
DOUBLE are left out, as they depend on the order of their rows, and AVG, whose result does not say of how many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from sqlglot import exp

from bridge.schema import DataType, ScalarType
from bridge.sql.aggregates import aggregate_call
from bridge.sql.type_rules import INTEGERS

__all__ = ["Accumulator", "accumulator", "merged_columns"]


class Accumulator(str, Enum):
    """How two values of a column become one; also the name of Spark's function for it."""

    GROUP = "first"
    """A column of GROUP BY, or a constant: both have the same value."""
    SUM = "sum"
    MIN = "min"
    MAX = "max"


_OF = {"COUNT": Accumulator.SUM, "SUM": Accumulator.SUM, "MIN": Accumulator.MIN, "MAX": Accumulator.MAX}


def accumulator(node: exp.Expr, *, is_group: bool) -> Accumulator | None:
    """How values of a column of SELECT, which is not translated yet, are merged; None if they cannot be."""
    if is_group:
        return Accumulator.GROUP
    aggregate = aggregate_call(node)
    if aggregate is None:
        return None
    arguments = aggregate.call.expressions
    if arguments and isinstance(arguments[0], exp.Distinct) and aggregate.name in ("COUNT", "SUM"):
        return None
    return _OF.get(aggregate.name)


def merged_columns(
    found: Sequence[Accumulator | None], types: Sequence[DataType | None], names: Mapping[int, str]
) -> dict[str, Accumulator]:
    """The columns of the sink with their accumulators; empty if one has none, or another type than in the query, or a
    sum that depends on the order of rows. `names` are the columns of the sink that have the query's type."""
    for index, (one, type) in enumerate(zip(found, types, strict=True)):
        is_exact = isinstance(type, ScalarType) and type.name in (*INTEGERS, "DECIMAL")
        if one is None or index not in names or (one is Accumulator.SUM and not is_exact):
            return {}
    return {names[index]: one for index, one in enumerate(found) if one is not None}
