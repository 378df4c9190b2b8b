"""Expressions of a query: their names are resolved, their types derived, and they are translated to Spark SQL.

    resolve   names -> columns of the scope; refuses what is not an expression over one row or an aggregate
    translate types, and Flink's meaning in Spark, from the leaves to the root

Between the two, `select` checks that expressions of an aggregate use grouped columns only.
"""

from __future__ import annotations

from sqlglot import exp

from bridge.ddl.cursor import nearest
from bridge.errors import DdlError, UnsupportedError
from bridge.expressions.failures import is_of_rows, note_of_rows, note_text
from bridge.expressions.refusal import Refusal
from bridge.expressions.signatures import FUNCTIONS
from bridge.expressions.special import CONDITIONS, check_boolean
from bridge.expressions.typed import ARITHMETIC, adapt, type_of
from bridge.sql.aggregates import aggregate_call, aggregate_type, check_aggregate, translate_aggregate
from bridge.sql.refused_parts import unsupported
from bridge.sql.scope import Scope
from bridge.sql.tree import QueryTree

__all__ = ["check_condition", "is_constant", "resolve", "translate", "type_of"]

_TEXT = (exp.Trim, exp.Substring, exp.Overlay, exp.DPipe, exp.Chr)
_STRUCTURE = (
    *(
        exp.Column,
        exp.Identifier,
        exp.Literal,
        exp.Null,
        exp.Paren,
        exp.Neg,
        exp.Cast,
        exp.Case,
        exp.If,
        exp.Dot,
    ),
    *(exp.Anonymous, exp.Filter, exp.Where, exp.Distinct, exp.Bracket, exp.Interval, exp.Var, exp.DataType),
    *(exp.Extract, exp.StrPosition, exp.Floor, exp.Ceil, exp.Array, exp.Star, exp.DataTypeParam),
)
_LEGAL = (*ARITHMETIC, *CONDITIONS, *_TEXT, *_STRUCTURE)
_NAMES: dict[type[exp.Expr], str] = {
    exp.Select: "a subquery in an expression",
    exp.Subquery: "a subquery in an expression",
    exp.Exists: "a subquery in an expression (EXISTS)",
    exp.Tuple: "a row in parentheses (a, b)",
}
_WAY_OUT = {"a subquery in an expression": "write a join"}


def resolve(expression: exp.Expr, scope: Scope, *, aggregates: bool) -> None:
    """Resolves all names in place. `aggregates` says whether aggregate functions are legal here.

    Raises DdlError for unknown names and functions, and UnsupportedError for what is not supported.
    """
    tree = scope.tree
    for node in list(expression.walk()):
        _check_node(tree, node, aggregates)
        if isinstance(node, exp.Column):
            node.meta["type"] = scope.resolve(node)


def translate(expression: exp.Expr, tree: QueryTree) -> exp.Expr:
    """Returns the resolved expression in Spark SQL; `type_of` knows its type. It is replaced in its parent.

    Raises DdlError, with the reason, for what would have another meaning in Spark.
    """
    root = expression
    note_text(root, qualified=True)
    for node in reversed(list(expression.walk(bfs=False))):
        adapted = _adapted(node, tree)
        if is_of_rows(node):
            note_of_rows(adapted)
        if adapted is not node:
            adapted.meta.setdefault(
                "start", next((n.meta["start"] for n in node.walk() if "start" in n.meta), 0)
            )
            if node is root:
                root = adapted
            if node.parent is not None:
                node.replace(adapted)
    return root


def is_constant(node: exp.Expr) -> bool:
    """Returns whether the expression uses neither columns nor aggregates, so that it is the same in all rows."""
    return not any(isinstance(n, (exp.Column, exp.Star)) or aggregate_call(n) for n in node.walk())


def _check_node(tree: QueryTree, node: exp.Expr, aggregates: bool) -> None:
    if isinstance(node, exp.Window):
        name = node.this.name if isinstance(node.this, exp.Anonymous) else node.this.sql()
        raise tree.unsupported(
            f"an OVER window ({name.upper()})",
            "the supported one is ROW_NUMBER() in a subquery whose rows are filtered by it: WHERE rn <= n",
            node,
        )
    if isinstance(node, exp.In) and node.args.get("query") is not None:
        raise tree.unsupported(
            "a subquery in an expression (IN)", "write a join", node.args["query"].unnest()
        )
    if not isinstance(node, _LEGAL) or isinstance(node, exp.Query):
        raise _not_legal(tree, node)
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
        raise tree.error("alias.* is legal in SELECT only; name the columns", node)
    aggregate = aggregate_call(node)
    if aggregate is not None:
        if not aggregates:
            raise tree.error(f"{aggregate.name} is an aggregate function, which is not legal here", node)
        check_aggregate(tree, aggregate)
    elif isinstance(node, exp.Anonymous) and not isinstance(node.parent, exp.Filter):
        _check_function(tree, node)


def _not_legal(tree: QueryTree, node: exp.Expr) -> DdlError | UnsupportedError:
    called = tree.called(node) if isinstance(node, exp.Func) else None
    if called is not None:
        what = f"the function {called.text}"
        return unsupported(tree.source, what, "write it with other functions or operators", called.start)
    what = _NAMES.get(type(node), f"{node.key.upper()} in an expression")
    return tree.unsupported(what, _WAY_OUT.get(what, "write it with other functions or operators"), node)


def _check_function(tree: QueryTree, node: exp.Anonymous) -> None:
    name = str(node.name).upper()
    if name == "ROW_NUMBER":
        raise tree.error("ROW_NUMBER requires OVER (PARTITION BY ... ORDER BY ...)", node)
    if name not in FUNCTIONS:
        hint = nearest(name, FUNCTIONS)
        hint = hint if hint.startswith("did") else "use functions that Flink and Spark share"
        raise tree.unsupported(f"the function {name}", hint, node)


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
    try:
        return adapt(node)
    except Refusal as refusal:
        raise tree.error(str(refusal), refusal.node or node) from None


def check_condition(node: exp.Expr, tree: QueryTree) -> None:
    """Raises DdlError unless the translated expression is BOOLEAN, as far as its type is known."""
    try:
        check_boolean(node, type_of(node))
    except Refusal as refusal:
        raise tree.error(str(refusal), node) from None
