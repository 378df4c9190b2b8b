"""Gives each node of an expression its type in Flink, and the Spark expression with Flink's value.

Nodes are adapted from the leaves to the root; `node.meta["type"]` holds the type, None where only Spark can derive it.
"""

from __future__ import annotations

from typing import TypeGuard

from sqlglot import exp

from bridge.expressions.arithmetic import arithmetic, negative, remainder
from bridge.expressions.casts import cast
from bridge.expressions.failures import failure, is_lazy, note_failure
from bridge.expressions.functions import called
from bridge.expressions.intervals import interval, interval_sum
from bridge.expressions.refusal import Refusal
from bridge.expressions.special import special
from bridge.expressions.type_rules import NULL, NUMERIC, literal, scalar
from bridge.expressions.type_rules import arithmetic as arithmetic_type
from bridge.schema import DataType, ScalarType

_LEAST = {"2147483648": ScalarType("INT"), "9223372036854775808": ScalarType("BIGINT")}
"""The types of the smallest integers, whose digits alone would need a larger one."""
ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv)


def type_of(node: exp.Expr) -> DataType | None:
    """Returns the type of an adapted expression; None if only Spark can derive it."""
    type = node.meta.get("type")
    return type if isinstance(type, DataType) else None


def adapt(node: exp.Expr) -> exp.Expr:
    """Returns `node`, whose children are adapted, as a Spark expression with Flink's value, and its type in `meta`.

    A column has its type already. `failures.failure` says for which rows the result fails. Raises Refusal, with the
    node, if Spark has no such expression, or if types are not known that decide.
    """
    operands = (
        None if is_lazy(node) else [f for o in node.iter_expressions() if (f := failure(o)) is not None]
    )
    text = node.meta.get("text")
    try:
        made, type = _adapted(node)
    except Refusal as refusal:
        raise Refusal(str(refusal), refusal.node or node) from None
    made.meta["type"] = type
    note_failure(made, text, operands)
    return made


def _adapted(node: exp.Expr) -> tuple[exp.Expr, DataType | None]:
    if isinstance(node, exp.Column):
        return node, type_of(node)
    if isinstance(node, exp.Literal):
        return node, literal(node)
    if isinstance(node, exp.HexString):
        return node, scalar("BYTES")
    if isinstance(node, exp.Null):
        return node, NULL
    if isinstance(node, exp.Interval):
        return interval(node), ScalarType("INTERVAL")
    if isinstance(node, exp.Cast):
        return cast(node, type_of(node.this))
    if isinstance(node, exp.Paren):
        return node, type_of(node.this)
    if isinstance(node, exp.Neg):
        least = _LEAST.get(str(node.this.this)) if isinstance(node.this, exp.Literal) else None
        type = least or type_of(node.this)
        if type not in (None, NULL) and not (_is_number(type) or type == ScalarType("INTERVAL")):
            raise Refusal(
                f"a sign stands before a number or an INTERVAL, not before {type.flink() if type else ''}"
            )
        return (negative(node.this, type) if _is_number(type) else node), type
    if isinstance(node, ARITHMETIC):
        return _arithmetic(node)
    if isinstance(node, exp.Chr):
        node = exp.Anonymous(this="CHR", expressions=node.expressions)
    if isinstance(node, exp.Anonymous):
        return called(node, [type_of(argument) for argument in node.expressions])
    return special(node, type_of)


def _is_number(type: DataType | None) -> TypeGuard[ScalarType]:
    return isinstance(type, ScalarType) and type.name in NUMERIC


def _arithmetic(node: exp.Expr) -> tuple[exp.Expr, DataType | None]:
    left, right = type_of(node.this), type_of(node.expression)
    type = arithmetic_type(node, left, right)
    if _is_number(type):
        if isinstance(node, exp.Mod) and type.name in ("FLOAT", "DOUBLE"):
            raise Refusal("% takes integers and DECIMAL; CAST both operands")
        return arithmetic(node, type), type
    if isinstance(type, ScalarType):
        return interval_sum(node, type), type
    if NULL in (left, right) and all(t is None or _is_number(t) or t == NULL for t in (left, right)):
        return exp.null(), NULL
    if left is not None and right is not None:
        raise Refusal(f"there is no arithmetic of {left.flink()} and {right.flink()}; CAST one of them")
    if isinstance(node, exp.Div):
        raise Refusal(
            "the types of the operands of this division are not known, and Flink divides integers to an integer while "
            "Spark does not; CAST both operands (to BIGINT, DOUBLE or DECIMAL)"
        )
    if isinstance(node, exp.Mod):
        return remainder(node), None
    return node, None
