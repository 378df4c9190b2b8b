"""Adapts operators and column references of an expression, so that they have Flink's meaning in Spark.

In Flink integers divide to integers, array positions start at 1, a missing element is null, casts to times cut digits,
and casts of booleans and timestamps to text differ from Spark's. Such operators are rebuilt, or refused if their types
are not known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from bridge.ddl.cursor import nearest
from bridge.ddl.functions import AGGREGATES, DIFFERENT, Refusal, call, rebuild
from bridge.ddl.precision import cut, written
from bridge.schema import DataType, RowType, ScalarType

__all__ = ["KindOf", "adapt", "check", "kind"]

KindOf = Callable[[exp.Expr], "str | None"]
"""Returns the name of an expression's type without parameters; None if only Spark can derive it."""

_INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_NOT_SCALAR = (
    *(exp.Query, exp.Exists, exp.Window, exp.Star, exp.Placeholder, exp.Parameter, exp.Lambda),
    *(exp.JSONExtract, exp.JSONExtractScalar),
)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.Div, exp.IntDiv)
_BOOLEAN_NODES = (exp.Predicate, exp.Connector, exp.Not, exp.Boolean)


def check(node: exp.Expr, types: Mapping[str, DataType]) -> None:
    """Raises Refusal if `node` is not a scalar expression over the columns in `types`."""
    if isinstance(node, _NOT_SCALAR):
        raise Refusal("only columns, constants, operators and scalar functions are supported", node)
    if isinstance(node, exp.Column):
        _resolve(node, types)
    if isinstance(node, (exp.Floor, exp.Ceil)) and node.args.get("to"):
        raise Refusal(
            "Spark does not support FLOOR and CEIL to a time unit; write DATE_FORMAT with a pattern", node
        )
    # Some functions sqlglot parses as expressions of their own; all others are anonymous, see `adapt`.
    if isinstance(node, exp.Func) and (name := node.sql_name()) in DIFFERENT:
        raise Refusal(f"{name} {DIFFERENT[name]}", node)
    if isinstance(node, exp.Anonymous) and node.name.upper() in AGGREGATES:
        raise Refusal(
            f"{node.name.upper()} is an aggregate function; a computed column is computed from one row", node
        )


def adapt(node: exp.Expr, kind_of: KindOf) -> exp.Expr:
    """Returns `node`, whose children are adapted, with Flink's meaning in Spark; `node` itself if it is the same.

    Raises Refusal if Spark has no such expression, or if the types that decide are not known.
    """
    if isinstance(node, exp.Bracket):
        # Starts at 1 and returns null past the end and for a missing key of a map, as in Flink.
        return call("TRY_ELEMENT_AT", node.this, *node.expressions)
    if isinstance(node, exp.Div):
        return _division(node, kind_of)
    if isinstance(node, exp.Cast) and node.to.is_type("text"):
        _refuse_different_text([node.this], kind_of)
    if isinstance(node, exp.Cast):
        return cut(node, written(node.to))
    if isinstance(node, exp.DPipe):
        _refuse_different_text([node.left, node.right], kind_of)
    if isinstance(node, exp.Anonymous):
        if node.name.upper() in ("CONCAT", "CONCAT_WS"):
            _refuse_different_text(node.expressions, kind_of)
        try:
            return rebuild(node.name.upper(), node.expressions) or node
        except Refusal as refusal:
            raise Refusal(str(refusal), node) from None
    return node


def _resolve(column: exp.Column, types: Mapping[str, DataType]) -> DataType:
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


def kind(node: exp.Expr, types: Mapping[str, DataType]) -> str | None:
    """A `KindOf` for expressions over the columns in `types`."""
    if isinstance(node, exp.Column):
        type = _resolve(node, types)
        return type.name if isinstance(type, ScalarType) else None
    if isinstance(node, exp.Literal):
        if node.is_string:
            return "STRING"
        return "INT" if str(node.this).isdecimal() else "DECIMAL"
    if isinstance(node, exp.Cast):
        return str(node.to.sql("spark")).split("(")[0]
    if isinstance(node, (exp.Paren, exp.Neg)):
        return kind(node.this, types)
    if isinstance(node, _BOOLEAN_NODES):
        return "BOOLEAN"
    if isinstance(node, _ARITHMETIC):
        kinds = [kind(node.left, types), kind(node.right, types)]
        if all(k in _INTEGERS for k in kinds):
            return "BIGINT"
        return next((k for k in kinds if k is not None and k not in _INTEGERS), None)
    return None


def _division(node: exp.Div, kind_of: KindOf) -> exp.Expr:
    kinds = [kind_of(node.left), kind_of(node.right)]
    if all(k in _INTEGERS for k in kinds):
        return exp.IntDiv(this=node.left, expression=node.right)
    if any(k is not None and k not in _INTEGERS for k in kinds):
        return node
    raise Refusal(
        "the types of the operands of this division are not known, and Flink divides integers to an integer while "
        "Spark does not; CAST both operands (to BIGINT, DOUBLE or DECIMAL)",
        node,
    )


def _refuse_different_text(operands: list[exp.Expr], kind_of: KindOf) -> None:
    """Raises Refusal if Spark converts one of the operands to another text than Flink."""
    for operand in operands:
        name = kind_of(operand) or ""
        if name == "BOOLEAN":
            raise Refusal(
                "a boolean is converted to 'TRUE' in Flink and to 'true' in Spark; write CASE WHEN", operand
            )
        if name.startswith("TIMESTAMP"):
            raise Refusal(
                "Flink and Spark convert timestamps to different text; write DATE_FORMAT with a pattern",
                operand,
            )
