"""Flink's arithmetic in Spark: integers wrap, doubles divide by zero, a DECIMAL that does not fit is NULL.

Spark's ANSI mode raises an error in each of these cases. Sources: Java's operators, which Flink's generated code uses,
and DecimalDataUtils for DECIMAL.
"""

from __future__ import annotations

from sqlglot import exp

from bridge.expressions.failures import failed
from bridge.expressions.template import literal, spark
from bridge.expressions.type_rules import INTEGERS
from bridge.schema import ScalarType

_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32}
_SIGNS: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}
_TRY = {"+": "TRY_ADD", "-": "TRY_SUBTRACT", "*": "TRY_MULTIPLY", "/": "TRY_DIVIDE", "%": "TRY_MOD"}
LONG = 34
"""Spark rounds the negative of a DECIMAL with more digits."""
_BY_ZERO = "division by zero"
_NAN, _INFINITY = "DOUBLE('NaN')", "DOUBLE('Infinity')"


def arithmetic(node: exp.Expr, result: ScalarType) -> exp.Expr:
    """Returns `left OP right` of two numbers, whose type in Flink is `result`. Null if an operand is.

    A division of integers or DECIMALs by zero fails, as in Flink.
    """
    sign = _SIGNS.get(type(node)) or ("%" if isinstance(node, exp.Mod) else "/")
    left, right = node.this, node.expression
    if result.name in INTEGERS:
        return _divided(sign, left, right, _integers(sign, left, right, result.name), result)
    if result.name in ("FLOAT", "DOUBLE"):
        return _floats(sign, left, right, result.name)
    made = spark(f"{_TRY[sign]}(@0, @1)", left, right)
    made = spark(f"TRY_CAST(@0 AS {result.spark()})", made)
    return _divided(sign, left, right, made, result)


def remainder(node: exp.Mod) -> exp.Expr:
    """Returns `left % right` of numbers whose types only Spark can derive; it fails for zero."""
    by_zero = failed(_BY_ZERO, "VOID")
    return spark(f"IF(@1 = 0 AND @0 IS NOT NULL, {by_zero}, @0 % @1)", node.this, node.expression)


def negative(operand: exp.Expr, type: ScalarType) -> exp.Expr:
    """Returns `-operand`; the smallest integer is its own negative, as in Java."""
    if isinstance(operand, exp.Literal):
        return exp.Neg(this=operand)
    if type.name in _BITS:
        return wrapped(spark("-CAST(@0 AS BIGINT)", operand), type.name)
    if type.name == "BIGINT":
        return spark("IF(@0 = -9223372036854775807L - 1L, @0, -@0)", operand)
    if type.name == "DECIMAL" and type.parameters[0] > LONG:
        text = "CAST(@0 AS STRING)"
        return spark(
            f"CAST(IF(@0 < 0, SUBSTRING({text}, 2), CONCAT('-', {text})) AS {type.spark()})", operand
        )
    return exp.Neg(this=operand)


def wrapped(value: exp.Expr, name: str) -> exp.Expr:
    """Returns the lowest bits of a BIGINT as an integer of type `name`."""
    if name == "BIGINT":
        return value
    half, ones = 1 << (_BITS[name] - 1), (1 << _BITS[name]) - 1
    return spark(f"CAST((((@0 & {ones}L) + {half}L) & {ones}L) - {half}L AS {name})", value)


def cut_decimal(value: exp.Expr, given: ScalarType, name: str) -> exp.Expr:
    """Returns the lowest bits of the whole part of a DECIMAL, as an integer of type `name`."""
    precision, scale = given.parameters
    if precision - scale <= 18:
        return wrapped(spark("CAST(@0 AS BIGINT)", value), name)
    whole = "IF(@0 < 0, CEIL(@0), FLOOR(@0))" if scale else "@0"
    half, every = "9223372036854775808BD", "18446744073709551616BD"
    # Added after the remainder, as a sum of 38 digits may not fit.
    rest = f"(({whole} % {every}) + {every} + {half}) % {every} - {half}"
    return wrapped(spark(f"CAST({rest} AS BIGINT)", value), name)


def _divided(sign: str, left: exp.Expr, right: exp.Expr, made: exp.Expr, result: ScalarType) -> exp.Expr:
    """`made`, which fails where it divides by zero; a constant of the query is looked at now."""
    constant = literal(right)
    if sign not in "/%" or (constant is not None and float(constant)):
        return made
    by_zero = failed(_BY_ZERO, result.spark())
    return spark(f"IF(@1 = 0 AND @0 IS NOT NULL, {by_zero}, @2)", left, right, made)


def _integers(sign: str, left: exp.Expr, right: exp.Expr, name: str) -> exp.Expr:
    if sign == "%":
        return spark(f"CAST(IF(@1 = -1, @0 - @0, @0 % @1) AS {name})", left, right)
    if sign == "/":
        if name != "BIGINT":
            return wrapped(spark("CAST(@0 AS BIGINT) DIV @1", left, right), name)
        return spark("IF(@1 = -1, @2, @0 DIV @1)", left, right, negative(left, ScalarType("BIGINT")))
    if name != "BIGINT":
        return wrapped(spark(f"CAST(@0 AS BIGINT) {sign} @1", left, right), name)
    wide = "DECIMAL(19, 0)" if sign == "*" else "DECIMAL(20, 0)"
    exact = spark(f"CAST(@0 AS {wide}) {sign} CAST(@1 AS {wide})", left, right)
    bits = cut_decimal(exact, ScalarType("DECIMAL", (38, 0)), name)
    return spark(f"COALESCE({_TRY[sign]}(CAST(@0 AS BIGINT), CAST(@1 AS BIGINT)), @2)", left, right, bits)


def _floats(sign: str, left: exp.Expr, right: exp.Expr, name: str) -> exp.Expr:
    if name == "FLOAT":  # Spark divides them as DOUBLE
        left, right = (spark("CAST(@0 AS FLOAT)", side) for side in (left, right))
        return spark("CAST(@0 AS FLOAT)", _doubles(sign, left, right))
    return _doubles(sign, left, right)


def _doubles(sign: str, left: exp.Expr, right: exp.Expr) -> exp.Expr:
    left, right = (spark("CAST(@0 AS DOUBLE)", side) for side in (left, right))
    if sign in "+-*":
        return spark(f"@0 {sign} @1", left, right)
    divisor = right.this if isinstance(right, exp.Cast) else right
    if isinstance(divisor, exp.Literal) and not divisor.is_string and float(divisor.this):
        return spark("@0 / @1", left, right)
    at_zero = (
        f"CASE WHEN ISNAN(@0) OR @0 = 0 THEN {_NAN} WHEN (@0 > 0) = (CAST(@1 AS STRING) = '0.0') THEN {_INFINITY} "
        f"WHEN @0 IS NOT NULL THEN -{_INFINITY} END"
    )
    return spark(f"CASE WHEN @1 = 0 THEN {at_zero} ELSE @0 / @1 END", left, right)
