"""Aggregate functions: what a query may call, the types of the results in Flink, and the same in Spark SQL.

In Flink SUM and AVG of integers have the type of their argument, and AVG of integers is truncated; Spark widens both.
AVG divides a BIGINT sum, which wraps like that of SUM.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from bridge.expressions.names import AGGREGATES
from bridge.expressions.template import spark
from bridge.expressions.type_rules import INTEGERS, NUMERIC
from bridge.schema import DataType, ScalarType
from bridge.sql.sums import LONGEST, note_sum
from bridge.sql.tree import QueryTree

_SUPPORTED = ("COUNT", "SUM", "MIN", "MAX", "AVG")
_COMPARABLE = (*NUMERIC, "CHAR", "VARCHAR", "STRING", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMP_LTZ")


@dataclass(frozen=True)
class Aggregate:
    """A call of an aggregate function; `node` is the call, or the FILTER around it."""

    node: exp.Expr
    call: exp.Anonymous

    @property
    def name(self) -> str:
        return str(self.call.name).upper()

    @property
    def is_distinct(self) -> bool:
        """Whether the arguments are those of DISTINCT."""
        first = self.call.expressions[:1]
        return bool(first) and isinstance(first[0], exp.Distinct)

    @property
    def arguments(self) -> list[exp.Expr]:
        """The arguments, without DISTINCT."""
        return list(self.call.expressions[0].expressions if self.is_distinct else self.call.expressions)


def aggregate_call(node: exp.Expr) -> Aggregate | None:
    """Returns the aggregate that `node` is, None for all other nodes and for a call inside of its FILTER."""
    inner = node.this if isinstance(node, exp.Filter) else node
    is_whole = not isinstance(node.parent, (exp.Filter, exp.Window)) or node.arg_key != "this"
    if isinstance(inner, exp.Anonymous) and inner.name.upper() in AGGREGATES and is_whole:
        return Aggregate(node, inner)
    return None


def check_aggregate(tree: QueryTree, aggregate: Aggregate) -> None:
    """Raises UnsupportedError for aggregate functions that are not supported, and DdlError for illegal arguments."""
    name, arguments = aggregate.name, aggregate.arguments
    if name not in _SUPPORTED:
        raise tree.unsupported(
            f"the aggregate function {name}",
            f"the supported ones are {', '.join(_SUPPORTED)}",
            aggregate.call,
        )
    distinct = aggregate.is_distinct
    many = name == "COUNT" and distinct
    if not arguments or (len(arguments) > 1 and not many):
        raise tree.error(f"{name} takes one argument, not {len(arguments)}", aggregate.call)
    if isinstance(arguments[0], exp.Star) and (name != "COUNT" or distinct):
        raise tree.error(f"only COUNT(*) takes *; name a column for {name}", aggregate.call)
    for argument in arguments:
        nested = next((n for n in argument.walk() if aggregate_call(n)), None)
        if nested is not None:
            raise tree.error("aggregate functions cannot be nested; aggregate a subquery in FROM", nested)


def aggregate_type(tree: QueryTree, aggregate: Aggregate, argument: DataType | None) -> DataType | None:
    """Returns the type of the result in Flink. Raises DdlError if the function does not take the argument's type."""
    name = aggregate.name
    if name == "COUNT":
        return ScalarType("BIGINT", nullable=False)
    if argument is None:
        return None
    type = argument.name if isinstance(argument, ScalarType) else ""
    legal = NUMERIC if name in ("SUM", "AVG") else _COMPARABLE
    if type not in legal:
        raise tree.error(f"{name} does not take {argument.flink()}", aggregate.call)
    assert isinstance(argument, ScalarType)
    if type == "DECIMAL" and name in ("SUM", "AVG"):
        scale = argument.parameters[1]
        return ScalarType("DECIMAL", (38, scale if name == "SUM" else max(6, scale)))
    return ScalarType(type, argument.parameters)


def translate_aggregate(tree: QueryTree, aggregate: Aggregate, argument: DataType | None) -> exp.Expr:
    """Returns the aggregate in Spark SQL, with the type that it has in Flink.

    Raises DdlError if SUM or AVG is given a type that is not known.
    """
    name = aggregate.name
    if name not in ("SUM", "AVG"):
        return aggregate.node
    result = aggregate_type(tree, aggregate, argument)
    if result is None:
        raise tree.error(f"the type of this argument of {name} is not known; CAST it", aggregate.call)
    assert isinstance(argument, ScalarType)
    if argument.name in ("FLOAT", "DOUBLE"):
        return aggregate.node if result.spark() == "DOUBLE" else _cast(aggregate.node.copy(), result.spark())
    total = _named(aggregate.node, "SUM")
    if argument.name in INTEGERS:
        note_sum(total, argument.name, argument.name if name == "SUM" else "BIGINT")
    elif argument.parameters[0] > LONGEST:
        note_sum(total, argument.name, argument.name)
    if name == "SUM":
        return total if argument.name in INTEGERS else _cast(total, result.spark())
    count = spark("NULLIF(@0, 0)", _named(aggregate.node, "COUNT"))
    if argument.name in INTEGERS:
        return _cast(exp.IntDiv(this=total, expression=count), result.spark())
    count = _cast(count, "DECIMAL(20,0)")
    if argument.parameters[0] > LONGEST:
        return spark(f"TRY_CAST(TRY_DIVIDE(@0, @1) AS {result.spark()})", total, count)
    return _cast(exp.Div(this=total, expression=count), result.spark())


def _named(node: exp.Expr, name: str) -> exp.Expr:
    """Returns a copy of the aggregate, with its DISTINCT and FILTER, that calls another function."""
    copy = node.copy()
    inner = copy.this if isinstance(copy, exp.Filter) else copy
    inner.set("this", name)
    return copy


def _cast(node: exp.Expr, type: str) -> exp.Expr:
    return exp.cast(node, type, dialect="spark")
