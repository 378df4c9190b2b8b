"""Expressions of a query: their names are resolved, their types derived, and they are translated to Spark SQL.

    resolve   names -> columns of the scope; refuses what is not an expression over one row or an aggregate
    translate types, and Flink's meaning in Spark, from the leaves to the root

Between the two, `select` checks that expressions of an aggregate use grouped columns only.
"""

from __future__ import annotations

from sqlglot import exp

from bridge.ddl.cursor import nearest
from bridge.ddl.functions import DIFFERENT, Refusal, rebuild
from bridge.ddl.operators import adapt
from bridge.errors import DdlError, UnsupportedError
from bridge.schema import ArrayType, DataType, MapType, RowType, ScalarType
from bridge.sql.aggregates import aggregate_call, aggregate_type, check_aggregate, translate_aggregate
from bridge.sql.refused_parts import unsupported
from bridge.sql.scalar_functions import FUNCTIONS, result_type
from bridge.sql.scope import Scope
from bridge.sql.tree import QueryTree
from bridge.sql.type_rules import NULL, arithmetic, cast_type, common, comparable, literal, scalar

__all__ = ["check_condition", "is_constant", "resolve", "translate", "type_of"]

_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv)
_COMPARISONS = (
    *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is, exp.In),
    *(exp.Between, exp.Like, exp.Escape, exp.And, exp.Or, exp.Not, exp.Boolean),
)
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
_LEGAL = (*_ARITHMETIC, *_COMPARISONS, *_TEXT, *_STRUCTURE)
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
    for node in reversed(list(expression.walk(bfs=False))):
        type = _type(node, tree)
        adapted = _adapted(node, tree)
        adapted.meta["type"] = type
        if adapted is not node:
            adapted.meta.setdefault(
                "start", next((n.meta["start"] for n in node.walk() if "start" in n.meta), 0)
            )
            if node is root:
                root = adapted
            if node.parent is not None:
                node.replace(adapted)
    return root


def type_of(node: exp.Expr) -> DataType | None:
    """Returns the type of a translated expression; None if only Spark can derive it."""
    type = node.meta.get("type")
    return type if isinstance(type, DataType) else None


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
    if isinstance(node, (exp.Floor, exp.Ceil)) and node.args.get("to"):
        raise tree.error("Spark has no FLOOR and CEIL to a time unit; write DATE_FORMAT with a pattern", node)
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
    if called is not None and called.text in DIFFERENT:
        return tree.source.error(f"{called.text} {DIFFERENT[called.text]}", called.start)
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
        try:
            rebuild(name, node.expressions)
        except Refusal as reason:
            raise tree.error(str(reason), node) from None
        hint = nearest(name, FUNCTIONS)
        hint = hint if hint.startswith("did") else "use functions that Flink and Spark share"
        raise tree.unsupported(f"the function {name}", hint, node)


def _adapted(node: exp.Expr, tree: QueryTree) -> exp.Expr:
    aggregate = aggregate_call(node)
    if aggregate is not None:
        argument = aggregate.arguments[0]
        return translate_aggregate(tree, aggregate, type_of(argument))
    try:
        return adapt(node, _kind)
    except Refusal as refusal:
        raise tree.error(str(refusal), refusal.node or node) from None


def _kind(node: exp.Expr) -> str | None:
    type = type_of(node)
    return type.name if isinstance(type, ScalarType) else None


def _type(node: exp.Expr, tree: QueryTree) -> DataType | None:
    """Returns the type of a node from the types of its children, which are translated."""
    aggregate = aggregate_call(node)
    if aggregate is not None:
        return aggregate_type(tree, aggregate, type_of(aggregate.arguments[0]))
    if isinstance(node, exp.Column):
        return type_of(node)
    if isinstance(node, exp.Literal):
        return literal(node)
    if isinstance(node, exp.Null):
        return NULL
    if isinstance(node, exp.Interval):
        return ScalarType("INTERVAL")
    if isinstance(node, exp.Cast):
        return cast_type(node.to)
    if isinstance(node, _ARITHMETIC):
        return arithmetic(node, type_of(node.left), type_of(node.right))
    if isinstance(node, (exp.Paren, exp.Neg)):
        return type_of(node.this)
    return _type_of_special(node, tree)


def _type_of_special(node: exp.Expr, tree: QueryTree) -> DataType | None:
    if isinstance(node, _COMPARISONS):
        _check_operands(node, tree)
        return ScalarType("BOOLEAN")
    if isinstance(node, _TEXT):
        return scalar("STRING")
    if isinstance(node, exp.StrPosition):
        return scalar("INT")
    if isinstance(node, exp.Extract):
        return scalar("BIGINT")
    if isinstance(node, exp.Case):
        results = [branch.args["true"] for branch in node.args["ifs"]]
        return common(
            [type_of(r) for r in results] + [type_of(node.args["default"])] * bool(node.args.get("default"))
        )
    if isinstance(node, exp.If) and not isinstance(node.parent, exp.Case):
        return common([type_of(node.args[a]) for a in ("true", "false") if node.args.get(a) is not None])
    if isinstance(node, exp.Anonymous):
        return result_type(node.name.upper(), [type_of(a) for a in node.expressions])
    if isinstance(node, exp.Bracket):
        return _element(type_of(node.this))
    if isinstance(node, exp.Dot):
        inner = type_of(node.this)
        fields = {f.name: f.type for f in inner.fields} if isinstance(inner, RowType) else {}
        return fields.get(node.expression.name)
    return None


def _check_operands(node: exp.Expr, tree: QueryTree) -> None:
    """Raises DdlError for a comparison of a number with text and the like, and for conditions that are none."""
    if isinstance(node, (exp.And, exp.Or, exp.Not)):
        for operand in (node.this, node.args.get("expression")):
            if operand is not None:
                check_condition(operand, tree)
        return
    if isinstance(node, (exp.Escape, exp.Is, exp.Boolean)):
        return
    if isinstance(node, exp.Like) and not isinstance(node.parent, exp.Escape):
        _check_pattern(node, tree)
    others = [node.args.get("expression"), node.args.get("low"), node.args.get("high"), *node.expressions]
    for other in others:
        if other is not None and not comparable(type_of(node.this), type_of(other)):
            types = [t.flink() for t in (type_of(node.this), type_of(other)) if t is not None]
            raise tree.error(f"{' and '.join(types)} cannot be compared; CAST one of them", node)


def _check_pattern(node: exp.Like, tree: QueryTree) -> None:
    pattern = node.expression
    if not isinstance(pattern, exp.Literal) or "\\" in pattern.name:
        raise tree.error(
            "without ESCAPE, a backslash in a pattern of LIKE is a character in Flink and the escape in Spark; "
            "write ESCAPE with another character",
            node,
        )


def check_condition(node: exp.Expr, tree: QueryTree) -> None:
    """Raises DdlError unless the translated expression is BOOLEAN, as far as its type is known."""
    type = type_of(node)
    if type is not None and type != NULL and not (isinstance(type, ScalarType) and type.name == "BOOLEAN"):
        raise tree.error(f"a condition is BOOLEAN, and this is {type.flink()}", node)


def _element(type: DataType | None) -> DataType | None:
    if isinstance(type, ArrayType):
        return type.element
    return type.value if isinstance(type, MapType) else None
