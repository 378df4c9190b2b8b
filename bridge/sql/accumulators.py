"""Aggregates whose value after new rows follows from the value before and from these rows alone.

COUNT, SUM, MIN and MAX, over sources that only add rows, are their own accumulators (Flink's word for the state of an
aggregate): a batch aggregates its new rows and merges the result with what is there. COUNT(DISTINCT) adds the values
that the rows before do not have; they are looked up in the sources, so there is no set of values to keep. AVG is the
quotient of two of them (see `averages`). Left out are sums of FLOAT and DOUBLE, as they depend on the order of their
rows, SUM(DISTINCT) and AVG(DISTINCT).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from sqlglot import exp

from bridge.expressions.type_rules import EXACT
from bridge.schema import DataType, ScalarType
from bridge.sql.aggregates import aggregate_call
from bridge.sql.tree import spark_text

KEPT = ("__sum_", "__count_")
"""How the names of columns begin that a result keeps for an average."""
_VALUE = "__value"


class Accumulator(str, Enum):
    """How two values of a column become one; also the name of Spark's function for it."""

    GROUP = "first"
    """A column of GROUP BY, or a constant: both have the same value."""
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    AVERAGE = "avg"
    """Not merged itself: the quotient of a sum and a count that are."""


_OF = {
    "COUNT": Accumulator.SUM,
    "SUM": Accumulator.SUM,
    "MIN": Accumulator.MIN,
    "MAX": Accumulator.MAX,
    "AVG": Accumulator.AVERAGE,
}


@dataclass(frozen=True)
class Averages:
    """What a result keeps for its averages."""

    columns: tuple[tuple[str, DataType], ...]
    """The sums and counts, which follow the columns of the sink in the result's table."""
    spark_sql: str
    """The rows of the result with these columns."""
    values: Mapping[str, str]
    """Each average in Spark SQL over these columns."""


def accumulator(node: exp.Expr, *, is_group: bool) -> Accumulator | None:
    """How values of a column of SELECT, which is not translated yet, are merged; None if they cannot be."""
    if is_group:
        return Accumulator.GROUP
    aggregate = aggregate_call(node)
    if aggregate is None:
        return None
    if aggregate.is_distinct and aggregate.name in ("SUM", "AVG"):
        return None
    return _OF.get(aggregate.name)


def counted_values(select: exp.Query, key: Sequence[str], columns: Iterable[str]) -> dict[str, str]:
    """For each of `columns` that is a COUNT(DISTINCT), the values that it counts, with their groups, in Spark SQL: rows
    of the `key` and of columns with other names, in any number. `select` is the translated aggregate, with the names of
    the sink."""
    if not isinstance(select, exp.Select):
        return {}
    nodes = {projection.alias: projection.unalias() for projection in select.expressions}
    found = {}
    for name in columns:
        aggregate = aggregate_call(nodes[name])
        if aggregate is None or aggregate.name != "COUNT" or not aggregate.is_distinct:
            continue
        values = aggregate.arguments
        conditions: list[exp.Expr] = [
            exp.Not(this=exp.Is(this=value.copy(), expression=exp.null())) for value in values
        ]
        if isinstance(aggregate.node, exp.Filter):
            conditions.append(exp.paren(aggregate.node.expression.this.copy(), copy=False))
        query = select.copy()
        query.set("group", None)
        query.set("having", None)
        named = [(name, nodes[name].copy()) for name in key]
        named += [(f"{_VALUE}{n}", value.copy()) for n, value in enumerate(values)]
        query.set(
            "expressions",
            [exp.alias_(node, exp.to_identifier(n, quoted=True), copy=False) for n, node in named],
        )
        found[name] = spark_text(query.where(*conditions, copy=False))
    return found


def merged_columns(
    found: Sequence[Accumulator | None],
    types: Sequence[DataType | None],
    names: Sequence[str],
    uncast: Collection[int],
) -> dict[str, Accumulator]:
    """The columns of the sink with their accumulators; empty if one has none, or another type than in the query, or a
    sum that depends on the order of rows. `names` are the columns of the sink, of which those at `uncast` have the
    query's type. An average may be cast."""
    for index, (one, type) in enumerate(zip(found, types, strict=True)):
        is_exact = isinstance(type, ScalarType) and type.name in EXACT
        is_sum = one in (Accumulator.SUM, Accumulator.AVERAGE)
        if (
            one is None
            or (index not in uncast and one is not Accumulator.AVERAGE)
            or (is_sum and not is_exact)
        ):
            return {}
    return {name: one for name, one in zip(names, found, strict=True) if one is not None}
