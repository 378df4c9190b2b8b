"""What an expression may have, in a query and in a computed column alike: constants, operators, functions, columns."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from bridge.ddl.dialect import Tree
from bridge.ddl.tokens import nearest
from bridge.errors import DdlError, UnsupportedError
from bridge.expressions.names import AGGREGATES, RANKS, RESERVED, TABLES
from bridge.expressions.signatures import FUNCTIONS
from bridge.expressions.special import CONDITIONS
from bridge.expressions.template import Refusal
from bridge.expressions.typed import ARITHMETIC
from bridge.schema import DataType, RowType

_TEXT = (exp.Trim, exp.Substring, exp.Overlay, exp.DPipe, exp.Chr)
_STRUCTURE = (
    *(
        exp.Column,
        exp.Identifier,
        exp.Literal,
        exp.HexString,
        exp.Null,
        exp.Paren,
        exp.Neg,
        exp.Cast,
        exp.Case,
    ),
    *(
        exp.If,
        exp.Dot,
        exp.Anonymous,
        exp.Filter,
        exp.Where,
        exp.Distinct,
        exp.Bracket,
        exp.Interval,
        exp.Var,
    ),
    *(
        exp.DataType,
        exp.DataTypeParam,
        exp.Extract,
        exp.StrPosition,
        exp.Floor,
        exp.Ceil,
        exp.Array,
        exp.Star,
    ),
    exp.ColumnDef,
)
_LEGAL = (*ARITHMETIC, *CONDITIONS, *_TEXT, *_STRUCTURE)
_OF_AGGREGATE: dict[type[exp.Expr], str] = {exp.Star: "*", exp.Distinct: "DISTINCT", exp.Filter: "FILTER"}
_NAMES: dict[type[exp.Expr], str] = {
    exp.Select: "a subquery in an expression",
    exp.Subquery: "a subquery in an expression",
    exp.Tuple: "a row in parentheses (a, b)",
}
_WAY_OUT = {"a subquery in an expression": "write a join"}
_OTHERWISE = "write it with other functions or operators"
_OVER = "the supported one is ROW_NUMBER() in a subquery whose rows are filtered by it: WHERE rn <= n"


def check(tree: Tree, node: exp.Expr, *, aggregates: bool, own_functions: bool) -> None:
    """Raises an error, with the place, if `node` is not legal in an expression.

    `aggregates` says whether aggregate functions are legal here, `own_functions` whether those are that a user has
    registered in Spark.
    """
    if isinstance(node, exp.Window):
        name = node.this.name if isinstance(node.this, exp.Anonymous) else node.this.sql()
        raise tree.unsupported(f"an OVER window ({name.upper()})", _OVER, node)
    if isinstance(node, exp.In) and node.args.get("query") is not None:
        raise tree.unsupported(
            "a subquery in an expression (IN)", "write a join", node.args["query"].unnest()
        )
    if not isinstance(node, _LEGAL) or isinstance(node, exp.Query):
        raise _not_legal(tree, node)
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
        raise tree.error("alias.* is legal in SELECT only; name the columns", node)
    if isinstance(node, exp.Is) and not isinstance(node.expression, (exp.Null, exp.Boolean)):
        raise tree.error("IS takes NULL, TRUE, FALSE and UNKNOWN, with or without NOT", node)
    if isinstance(node, exp.Cast) and any(node.args.get(part) for part in ("format", "default", "action")):
        raise tree.unsupported("a CAST with more than a type", "remove what is behind the type", node)
    if type(node) in _OF_AGGREGATE and not _is_of_aggregate(node):
        raise tree.error(
            f"{_OF_AGGREGATE[type(node)]} is legal with an aggregate function only; remove it", node
        )
    if isinstance(node, exp.Anonymous):
        _check_function(tree, node, aggregates, own_functions)


def resolve(column: exp.Column, types: Mapping[str, DataType]) -> DataType:
    """Returns the type of a column or of a field of it. Raises Refusal if there is none."""
    first, *rest = column.parts
    if first.name not in types:
        raise Refusal(
            f"there is no physical or metadata column `{first.name}`; {nearest(first.name, types)}", first
        )
    type, name = types[first.name], first.name
    for part in rest:
        if not isinstance(type, RowType):
            raise Refusal(f"`{name}` is not a ROW and has no field `{part.name}`", part)
        fields = {f.name: f.type for f in type.fields}
        if part.name not in fields:
            raise Refusal(f"`{name}` has no field `{part.name}`; {nearest(part.name, fields)}", part)
        type, name = fields[part.name], part.name
    return type


def _is_of_aggregate(node: exp.Expr) -> bool:
    """Whether a star or DISTINCT is what an aggregate function takes, and whether a FILTER is of one."""
    if isinstance(node, exp.Star) and isinstance(node.parent, exp.Column):
        return True  # of alias.*, which has an error of its own
    call = node.this if isinstance(node, exp.Filter) else node.parent
    if isinstance(call, exp.Distinct):
        call = call.parent
    return isinstance(call, exp.Anonymous) and call.name.upper() in AGGREGATES


def _not_legal(tree: Tree, node: exp.Expr) -> DdlError | UnsupportedError:
    called = tree.called(node) if isinstance(node, exp.Func) and not isinstance(node, exp.Binary) else None
    if called is not None:
        return tree.part.unsupported(f"the function {called.keyword}", _OTHERWISE, called.start)
    what = _NAMES.get(type(node), f"{node.key.upper()} in an expression")
    return tree.unsupported(what, _WAY_OUT.get(what, _OTHERWISE), node)


def _check_function(tree: Tree, node: exp.Anonymous, aggregates: bool, own_functions: bool) -> None:
    name = str(node.name).upper()
    is_qualified = isinstance(node.parent, exp.Dot)
    if name in FUNCTIONS and not is_qualified:
        return
    if name in AGGREGATES and not is_qualified:
        if not aggregates:
            raise tree.error(
                f"{name} is an aggregate function, which is not legal here; call it in the SELECT or HAVING of a query",
                node,
            )
        return
    if name in RANKS and not is_qualified:
        raise tree.error(f"{name} requires OVER (PARTITION BY ... ORDER BY ...); {_OVER}", node)
    if name in TABLES and not is_qualified:
        raise tree.unsupported(
            f"{name}, which gives several rows,", "expand the rows before they come into the topic", node
        )
    if own_functions and (is_qualified or name not in RESERVED):
        return
    hint = nearest(name, FUNCTIONS)
    hint = hint if hint.startswith("did") else "use functions that Flink and Spark share"
    more = "; a function of your own needs another name" if own_functions else ""
    raise tree.unsupported(f"the function {name}", f"{hint}{more}", node)
