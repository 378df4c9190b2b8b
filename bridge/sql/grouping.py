"""GROUP BY: its expressions, and that the other expressions use nothing else outside of aggregate functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from bridge.expressions.failures import note_of_rows
from bridge.sql.aggregates import aggregate_call
from bridge.sql.expressions import resolve
from bridge.sql.scope import Scope
from bridge.sql.tree import QueryTree, comparable_text


@dataclass(frozen=True)
class Group:
    """An expression of GROUP BY; `text` is the same for equal expressions."""

    node: exp.Expr
    text: str


def group_expressions(select: exp.Select, scope: Scope) -> list[Group]:
    """Resolves the expressions of GROUP BY; empty without GROUP BY.

    Raises UnsupportedError for GROUPING SETS and the like, and DdlError for positions, which only Spark knows.
    """
    group = select.args.get("group")
    if group is None:
        return []
    for clause, value in group.args.items():
        if value and clause != "expressions":
            what = f"GROUP BY {clause.replace('_', ' ').upper()}"
            raise scope.tree.unsupported(what, "list the columns", group)
    for node in group.expressions:
        if isinstance(node, (exp.GroupingSets, exp.Cube, exp.Rollup)):
            raise scope.tree.unsupported(f"GROUP BY {node.key.upper()}", "group by one set of columns", node)
        if isinstance(node.unnest(), exp.Literal):
            raise scope.tree.error("GROUP BY takes columns, not positions; write the expression", node)
        resolve(node, scope, aggregates=False)
    return [Group(node, comparable_text(node)) for node in group.expressions]


def check_grouped(tree: QueryTree, expressions: Sequence[exp.Expr], groups: Sequence[Group]) -> None:
    """Raises DdlError, with Flink's message, for a column that is neither grouped nor in an aggregate function. Notes
    which parts are grouped or aggregates: they have their values before the rest is computed of a group."""
    texts = {group.text for group in groups}
    for expression in expressions:
        _check(tree, expression, texts)


def _check(tree: QueryTree, node: exp.Expr, texts: set[str]) -> None:
    if aggregate_call(node) is not None or comparable_text(node) in texts:
        note_of_rows(node)
        return
    if isinstance(node, exp.Column):
        raise tree.error(
            f"Expression '{node.name}' is not being grouped; add it to GROUP BY, or use it in an aggregate function",
            node,
        )
    for child in node.iter_expressions():
        if not isinstance(child, exp.Identifier):
            _check(tree, child, texts)
