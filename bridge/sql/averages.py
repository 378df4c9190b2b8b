"""AVG over rows that are only added: the sum and the count that a result keeps beside it.

An average does not say of how many, so a result that has one keeps both in columns of its own, which no topic gets.
They are merged like any SUM and COUNT, and the average is computed from them by the expression of the query.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from bridge.expressions.type_rules import INTEGERS
from bridge.schema import DataType, ScalarType
from bridge.sql.accumulators import KEPT, Accumulator, Averages
from bridge.sql.aggregates import Aggregate, aggregate_call
from bridge.sql.expressions import type_of
from bridge.sql.sums import MORE_DIGITS
from bridge.sql.tree import spark_text

__all__ = ["plan_averages"]


def plan_averages(select: exp.Query, accumulators: Mapping[str, Accumulator]) -> Averages | None:
    """Returns what a result keeps for its averages; None if it has none, or if Spark's type of a sum is not known.

    `select` is the translated aggregate with the names of the sink; it stays as it is.
    """
    names = [name for name, how in accumulators.items() if how is Accumulator.AVERAGE]
    if not names or not isinstance(select, exp.Select):
        return None
    query = select.copy()
    columns: dict[str, DataType] = {}
    values = {}
    for projection in list(query.expressions):
        if projection.alias not in names:
            continue
        value = projection.copy()
        for node in [node for node in value.walk() if aggregate_call(node) is not None]:
            aggregate = aggregate_call(node)
            assert aggregate is not None
            type = _type(query, aggregate)
            kept = f"{KEPT[aggregate.name == 'COUNT']}{projection.alias}"
            if type is None:
                return None
            columns[kept] = type
            name = exp.to_identifier(kept, quoted=True)
            total = exp.cast(node.copy(), type.spark(), dialect="spark")
            query.append("expressions", exp.alias_(total, name.copy(), copy=False))
            node.replace(exp.Column(this=name))
        values[projection.alias] = spark_text(value.unalias())
    return Averages(tuple(columns.items()), spark_text(query), values)


def _type(select: exp.Select, aggregate: Aggregate) -> ScalarType | None:
    """The type that Spark gives a SUM or COUNT. A sum of another one would be divided with other digits."""
    if aggregate.name == "COUNT":
        return ScalarType("BIGINT")
    argument = aggregate.arguments[0]
    type = type_of(argument)
    if not isinstance(type, ScalarType):
        return None
    if type.name in INTEGERS:
        return ScalarType("BIGINT")
    source = select.args.get("from_")
    is_stored = isinstance(argument, exp.Column) and source is not None and isinstance(source.this, exp.Table)
    if type.name != "DECIMAL" or not (is_stored or isinstance(argument, exp.Cast)):
        return None
    precision, scale = type.parameters  # at most LONGEST: sums of more digits are not merged
    return ScalarType("DECIMAL", (precision + MORE_DIGITS, scale))
