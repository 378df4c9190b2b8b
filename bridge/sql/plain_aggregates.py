"""Aggregates that need no expression: columns of one source as they are, by columns of it that are the key of the sink.

Whoever has the rows can compute these without Spark SQL (see `pipelines.scripts.driver_groups`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from sqlglot import exp

from bridge.sql.accumulators import Accumulator
from bridge.sql.aggregates import aggregate_call

_CLAUSES = {"expressions", "from_", "group"}


class PlainFunction(str, Enum):
    """What a column of the result has of a group."""

    GROUP = "the group"
    COUNT_ROWS = "COUNT(*)"
    COUNT = "COUNT"
    COUNT_DISTINCT = "COUNT(DISTINCT)"
    SUM = "SUM"
    MIN = "MIN"
    MAX = "MAX"


@dataclass(frozen=True)
class PlainColumn:
    """A column of the result, by its name in the sink; `column` is that of the source, empty for COUNT(*)."""

    name: str
    function: PlainFunction
    column: str


@dataclass(frozen=True)
class PlainAggregate:
    """The rows of `source`, grouped by the columns of the sink's key. SUM is cast to the type of the sink's column,
    which is that of the query in Flink."""

    source: str
    columns: tuple[PlainColumn, ...]

    def of(self, *functions: PlainFunction) -> tuple[PlainColumn, ...]:
        """The columns with one of these functions."""
        return tuple(column for column in self.columns if column.function in functions)


def plain_aggregate(
    select: exp.Query, key: Sequence[str], accumulators: Mapping[str, Accumulator]
) -> PlainAggregate | None:
    """Whether all that a query does is to aggregate columns, without WHERE, HAVING, FILTER, an expression or a second
    source; None if it does more. `select` is translated, with the names and casts of the sink; `accumulators` are
    those of its columns."""
    if not isinstance(select, exp.Select) or {name for name, part in select.args.items() if part} != _CLAUSES:
        return None
    table, groups = select.args["from_"].this, select.args["group"]
    if not isinstance(table, exp.Table) or {name for name, part in groups.args.items() if part} != {
        "expressions"
    }:
        return None
    columns = []
    for projection in select.expressions:
        name = projection.alias
        found = _column(projection.unalias(), table) if name in accumulators else None
        if found is None or (found[0] is PlainFunction.GROUP) != (name in key):
            return None
        columns.append(PlainColumn(name, *found))
    plain = PlainAggregate(table.name, tuple(columns))
    grouped = {_name(node, table) for node in groups.expressions}
    is_whole = grouped == {column.column for column in plain.of(PlainFunction.GROUP)}
    return plain if is_whole and len(plain.of(PlainFunction.GROUP)) == len(key) else None


def _column(node: exp.Expr, table: exp.Table) -> tuple[PlainFunction, str] | None:
    """The function and the source's column of a column of SELECT."""
    name = _name(node, table)
    if name is not None:
        return PlainFunction.GROUP, name
    # Columns with accumulators have the type of the query, so a cast of one only gives it Flink's type in Spark.
    aggregate = aggregate_call(node.this if isinstance(node, exp.Cast) else node)
    if aggregate is None or aggregate.node is not aggregate.call or len(aggregate.arguments) != 1:
        return None
    argument = aggregate.arguments[0]
    function = aggregate.name + ("(DISTINCT)" if aggregate.is_distinct else "")
    if function == "COUNT" and isinstance(argument, exp.Star):
        return PlainFunction.COUNT_ROWS, ""
    name = _name(argument, table)
    functions = (
        PlainFunction.COUNT,
        PlainFunction.COUNT_DISTINCT,
        PlainFunction.SUM,
        PlainFunction.MIN,
        PlainFunction.MAX,
    )
    return next(((f, name) for f in functions if f.value == function and name is not None), None)


def _name(node: exp.Expr, table: exp.Table) -> str | None:
    """The name of a column of the table; None for everything else, such as a field of a ROW."""
    if not isinstance(node, exp.Column) or {key for key, part in node.args.items() if part} != {
        "this",
        "table",
    }:
        return None
    return node.name if node.table == table.alias_or_name and isinstance(node.this, exp.Identifier) else None
