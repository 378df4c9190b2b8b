"""Operators and column references of an expression: what they mean in Flink, kept in Spark.

Whole numbers divide to whole numbers, array positions count from 1 and a missing element is null, text of a
boolean or a timestamp is not Spark's: each is rebuilt, or refused when it cannot be told what is meant.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from bridge.ddl.cursor import nearest
from bridge.ddl.functions import AGGREGATES, Refusal, call, rebuild
from bridge.schema import DataType, RowType, ScalarType

__all__ = ["adapt", "check"]

_INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_NOT_SCALAR = (
    *(exp.Query, exp.Exists, exp.Window, exp.Star, exp.Placeholder, exp.Parameter, exp.Lambda),
    *(exp.JSONExtract, exp.JSONExtractScalar),
)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.Div, exp.IntDiv)
_BOOLEAN_NODES = (exp.Predicate, exp.Connector, exp.Not, exp.Boolean)


def check(node: exp.Expr, types: Mapping[str, DataType]) -> None:
    """Raise Refusal when `node` itself is more than a function of the columns in `types`."""
    if isinstance(node, _NOT_SCALAR):
        raise Refusal("only columns, constants, operators and functions of one row can be used", node)
    if isinstance(node, exp.Column):
        _resolve(node, types)
    if isinstance(node, (exp.Floor, exp.Ceil)) and node.args.get("to"):
        raise Refusal("Spark has no FLOOR or CEIL to a unit; write DATE_FORMAT with a pattern", node)
    if isinstance(node, exp.Anonymous) and node.name.upper() in AGGREGATES:
        raise Refusal(f"{node.name.upper()} is an aggregate; a computed column sees one row", node)


def adapt(node: exp.Expr, types: Mapping[str, DataType]) -> exp.Expr:
    """`node` (children adapted already) with Flink's meaning in Spark; itself when nothing differs."""
    if isinstance(node, exp.Bracket):
        # Counts from 1 and gives null past the end, as Flink does; null for a key that a map does not hold.
        return call("TRY_ELEMENT_AT", node.this, *node.expressions)
    if isinstance(node, exp.Div):
        return _division(node, types)
    if isinstance(node, exp.Cast) and node.to.is_type("text"):
        _refuse_different_text([node.this], types)
    if isinstance(node, exp.DPipe):
        _refuse_different_text([node.left, node.right], types)
    if isinstance(node, exp.Anonymous):
        if node.name.upper() in ("CONCAT", "CONCAT_WS"):
            _refuse_different_text(node.expressions, types)
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
            raise Refusal(f"`{name}` is no ROW and has no field `{part.name}`", part)
        fields = {f.name: f.type for f in type.fields}
        if part.name not in fields:
            raise Refusal(f"`{name}` has no field `{part.name}`; {nearest(part.name, fields)}", part)
        type, name = fields[part.name], part.name
    return type


def _kind(node: exp.Expr, types: Mapping[str, DataType]) -> str | None:
    """The name of the type of `node` as far as it can be told without Spark; parameters left out."""
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
        return _kind(node.this, types)
    if isinstance(node, _BOOLEAN_NODES):
        return "BOOLEAN"
    if isinstance(node, _ARITHMETIC):
        kinds = [_kind(node.left, types), _kind(node.right, types)]
        if all(k in _INTEGERS for k in kinds):
            return "BIGINT"
        return next((k for k in kinds if k is not None and k not in _INTEGERS), None)
    return None


def _division(node: exp.Div, types: Mapping[str, DataType]) -> exp.Expr:
    kinds = [_kind(node.left, types), _kind(node.right, types)]
    if all(k in _INTEGERS for k in kinds):
        return exp.IntDiv(this=node.left, expression=node.right)
    if any(k is not None and k not in _INTEGERS for k in kinds):
        return node
    raise Refusal(
        "Flink divides whole numbers to a whole number and Spark does not, and the types here are not plain "
        "to see; CAST both operands (to BIGINT, DOUBLE or DECIMAL)",
        node,
    )


def _refuse_different_text(operands: list[exp.Expr], types: Mapping[str, DataType]) -> None:
    """Raise Refusal when one of the operands becomes another text in Spark than in Flink."""
    for operand in operands:
        kind = _kind(operand, types) or ""
        if kind == "BOOLEAN":
            raise Refusal(
                "a boolean is 'TRUE' as text in Flink and 'true' in Spark; write CASE WHEN", operand
            )
        if kind.startswith("TIMESTAMP"):
            raise Refusal(
                "Flink and Spark write timestamps differently; write DATE_FORMAT with a pattern", operand
            )
