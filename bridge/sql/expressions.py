"""Expressions of a query: their names are resolved, their types derived, and they are translated to Spark SQL.

    resolve   names -> columns of the scope; refuses what is not an expression over one row or an aggregate
    translate types, and Flink's meaning in Spark, from the leaves to the root

Between the two, `query` checks that expressions of an aggregate use grouped columns only.
"""

from __future__ import annotations

from sqlglot import exp

from bridge.ddl.dialect import translated
from bridge.ddl.legal import check
from bridge.expressions.failures import note_text
from bridge.expressions.special import check_boolean
from bridge.expressions.template import Refusal
from bridge.expressions.typed import type_of
from bridge.sql.aggregates import aggregate_call, aggregate_type, check_aggregate, translate_aggregate
from bridge.sql.scope import Scope
from bridge.sql.tree import QueryTree


def resolve(expression: exp.Expr, scope: Scope, *, aggregates: bool) -> None:
    """Resolves all names in place. `aggregates` says whether aggregate functions are legal here.

    Raises DdlError for unknown names and functions, and UnsupportedError for what is not supported.
    """
    tree = scope.tree
    for node in list(expression.walk()):
        check(tree, node, aggregates=aggregates, own_functions=False)
        aggregate = aggregate_call(node)
        if aggregate is not None:
            check_aggregate(tree, aggregate)
        if isinstance(node, exp.Column):
            node.meta["type"] = scope.resolve(node)


def translate(expression: exp.Expr, tree: QueryTree) -> exp.Expr:
    """Returns the resolved expression in Spark SQL; `type_of` knows its type. It is replaced in its parent.

    Raises DdlError, with the reason, for what would have another meaning in Spark.
    """
    note_text(expression, qualified=True)
    return translated(expression, lambda node: _adapted(node, tree))


def is_constant(node: exp.Expr) -> bool:
    """Returns whether the expression uses neither columns nor aggregates, so that it is the same in all rows."""
    return not any(isinstance(n, (exp.Column, exp.Star)) or aggregate_call(n) for n in node.walk())


def _adapted(node: exp.Expr, tree: QueryTree) -> exp.Expr:
    aggregate = aggregate_call(node)
    if aggregate is not None:
        argument = type_of(aggregate.arguments[0])
        type = aggregate_type(tree, aggregate, argument)
        made = translate_aggregate(tree, aggregate, argument)
        made.meta["type"] = type
        return made
    if isinstance(node.parent, exp.Filter) and node.arg_key == "this":
        return node  # its FILTER is the aggregate
    return tree.adapted(node)


def check_condition(node: exp.Expr, tree: QueryTree) -> None:
    """Raises DdlError unless the translated expression is BOOLEAN, as far as its type is known."""
    try:
        check_boolean(node, type_of(node))
    except Refusal as refusal:
        raise tree.error(str(refusal), node) from None
