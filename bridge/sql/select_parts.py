"""The parts of a translated SELECT that fail each for itself, and which columns they read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from sqlglot import exp

from bridge.expressions.failures import failure, failure_where, first_failure
from bridge.sql.aggregates import aggregate_call
from bridge.sql.joins import conjuncts
from bridge.sql.tree import leftmost

__all__ = [
    "Needed",
    "arguments",
    "has_aggregate",
    "is_equality",
    "is_of_several",
    "items",
    "names",
    "owners",
    "places",
    "sides",
]

Needed = Collection[int] | None
"""The columns of a query that are read, by their place; None for all."""


def items(select: exp.Select) -> list[exp.Expr]:
    """Returns the tables and subqueries in FROM."""
    return [select.args["from_"].this, *(join.this for join in select.args.get("joins") or [])]


def has_aggregate(node: exp.Expr) -> bool:
    """Returns whether an aggregate function is called."""
    return any(aggregate_call(part) for part in node.walk())


def is_of_several(rows: exp.Select) -> bool:
    """Returns whether it depends on several rows of a table which rows there are, or what they have."""
    return (
        has_aggregate(rows)
        or rows.find(exp.Group, exp.Window, exp.Distinct) is not None
        or any(join.side for join in rows.find_all(exp.Join))
        or any(union.args.get("distinct") for union in rows.find_all(exp.Union))
    )


def arguments(parts: list[exp.Expr]) -> Iterator[exp.Expr | None]:
    """Yields why what aggregates compute for each row fails: with FILTER only for rows that it takes."""
    for node in (node for part in parts for node in part.walk()):
        aggregate = aggregate_call(node)
        if aggregate is None:
            continue
        fails = first_failure(failure(argument) for argument in aggregate.arguments)
        is_filtered = isinstance(aggregate.node, exp.Filter)
        yield failure_where(aggregate.node.expression.this, fails) if is_filtered else fails


def names(parts: list[exp.Expr]) -> Mapping[str, set[str]] | None:
    """Returns the columns that are read, by the alias of their table; None if it may be any."""
    found: dict[str, set[str]] = {}
    for node in (node for part in parts for node in part.walk()):
        if isinstance(node, exp.Star) and not isinstance(node.parent, exp.Anonymous):
            return None
        if isinstance(node, exp.Column):
            table, *names = (part.name for part in node.parts)
            if not names:
                return None
            found.setdefault(table, set()).add(names[0])
    return found


def places(item: exp.Subquery, read: Mapping[str, set[str]] | None) -> Needed:
    """Returns the columns of a subquery that are `read`, which are `names`."""
    columns = leftmost(item).expressions
    if read is None or any(isinstance(column, exp.Star) for column in columns):
        return None
    own = read.get(item.alias, set())
    return {n for n, column in enumerate(columns) if column.alias_or_name in own}


def sides(condition: exp.Expr) -> Iterator[exp.Expr]:
    """Yields the conditions of ON, and both sides of those that compare tables."""
    for part in conjuncts(condition):
        if isinstance(part, (exp.EQ, exp.NullSafeEQ)) and len(owners(part)) > 1:
            yield from (part.left, part.right)
        else:
            yield part


def is_equality(part: exp.Expr, joined: str) -> bool:
    """Returns whether rows of the table that is `joined` are found by it: one side has its columns, the other not."""
    if not isinstance(part, (exp.EQ, exp.NullSafeEQ)):
        return False
    one, other = owners(part.left), owners(part.right)
    return {joined} in (one, other) and bool(one and other) and one.isdisjoint(other)


def owners(part: exp.Expr) -> set[str]:
    """Returns the aliases of the tables whose columns it has."""
    return {column.parts[0].name for column in part.find_all(exp.Column)}
