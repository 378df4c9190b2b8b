"""Flink's functions of numbers, in Spark."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from bridge.expressions.arithmetic import LONG, arithmetic, cut_decimal, negative
from bridge.expressions.casts import IS_NO_NUMBER, NO_NUMBER
from bridge.expressions.failures import failed
from bridge.expressions.template import Call, Entries, Refusal, spark
from bridge.expressions.type_rules import INTEGERS, NULL, NUMERIC, common
from bridge.expressions.type_rules import arithmetic as arithmetic_type
from bridge.schema import DataType, ScalarType


def rounded_type(call: Call) -> DataType | None:
    """Returns the type of ROUND and TRUNCATE."""
    type = call.types[0]
    if not isinstance(type, ScalarType) or type.name != "DECIMAL":
        return type
    precision, scale = type.parameters
    digits = call.number(1, "the digits") if len(call.arguments) > 1 else 0
    if digits >= scale:
        return type
    kept = max(digits, 0)
    return ScalarType("DECIMAL", (min(38, precision - scale + kept + 1), kept))


def whole_type(type: DataType | None) -> DataType | None:
    """Returns the type of FLOOR, CEIL and CEILING of a number."""
    if isinstance(type, ScalarType) and type.name == "DECIMAL":
        return ScalarType("DECIMAL", (type.parameters[0], 0))
    return type


def whole(name: str, value: exp.Expr, type: DataType | None) -> tuple[exp.Expr, DataType | None]:
    """Returns FLOOR or CEIL of a number, which has its type. Raises Refusal for other values."""
    if type is None or type == NULL:
        return spark(f"{name}(@0)", value), None
    if not isinstance(type, ScalarType) or type.name not in NUMERIC:
        raise Refusal(f"{name} takes a number, or a time TO a unit, not {type.flink()}; CAST it")
    if type.name in ("FLOAT", "DOUBLE"):
        # Spark's result is a BIGINT, which most doubles do not fit into.
        small = "ABS(@0) < DOUBLE(9007199254740992)"
        return spark(f"IF({small}, CAST({name}(@0) AS {type.name}), @0)", value), type
    if type.name in INTEGERS:
        return value, type
    result = whole_type(type)
    return spark(f"CAST({name}(@0) AS DECIMAL({type.parameters[0]}, 0))", value), result


def modulo_type(types: Sequence[DataType | None]) -> DataType | None:
    """Returns the type of MOD."""
    return arithmetic_type(exp.Mod(), types[0], types[1])


def _modulo(call: Call) -> exp.Expr:
    left, right = call.arguments
    result = modulo_type(call.types)
    node = exp.Mod(this=left.copy(), expression=right.copy())
    return arithmetic(node, result) if isinstance(result, ScalarType) else node


def _rounded(call: Call) -> exp.Expr:
    digits = call.number(1, "the digits") if len(call.arguments) > 1 else 0
    type, value = call.types[0], call.arguments[0]
    if not isinstance(type, ScalarType):
        raise Refusal(f"the type of the argument of {call.name} is not known; CAST it")
    result = rounded_type(call)
    assert isinstance(result, ScalarType)
    if type.name in INTEGERS and digits >= 0:
        return value
    cuts = call.name == "TRUNCATE"
    made = f"IF(@0 < 0, CEIL(@0, {digits}), FLOOR(@0, {digits}))" if cuts else f"ROUND(@0, {digits})"
    if type.name in INTEGERS:  # the result wraps
        wide = ScalarType("DECIMAL", (21, 0))
        exact = spark(f"CAST({made} AS {wide.spark()})", spark(f"CAST(@0 AS {wide.spark()})", value))
        return cut_decimal(exact, wide, type.name)
    if type.name == "DECIMAL" and digits >= type.parameters[1]:
        return value
    if type.name in ("FLOAT", "DOUBLE"):
        if cuts:
            value = spark("CAST(@0 AS DOUBLE)", value)
            made = f"IF(ABS(@0) < DOUBLE(1000000000000000), {made}, @0)"
        no_number = failed(NO_NUMBER, result.spark())
        return spark(f"IF({IS_NO_NUMBER}, {no_number}, CAST({made} AS {result.spark()}))", value)
    if not cuts and type.parameters == (38, 0) and digits >= -38:
        most = 10**38 - 5 * 10 ** (-digits - 1)  # Spark's ROUND fails where it would be one with more digits
        made = f"IF(@0 >= {most}BD OR @0 <= CAST('-{most}' AS DECIMAL(38, 0)), NULL, {made})"
    return spark(f"TRY_CAST({made} AS {result.spark()})", value)


def _angle(call: Call) -> exp.Expr:
    """ATAN2 of Java. Spark's takes -0.0 for 0.0."""
    if not any(isinstance(t, ScalarType) and t.name in ("FLOAT", "DOUBLE") for t in call.types):
        return exp.Anonymous(this="ATAN2", expressions=call.arguments)
    is_less = "CAST({} AS STRING) = '-0.0'"
    made = f"IF(@0 = 0 AND {is_less.format('@1')}, PI(), ATAN2(@0, @1))"
    return spark(f"IF({is_less.format('@0')}, -1 * {made}, {made})", *call.arguments)


def _absolute(call: Call) -> exp.Expr:
    type, value = call.types[0], call.arguments[0]
    is_long = isinstance(type, ScalarType) and type.name == "DECIMAL" and type.parameters[0] > LONG
    if isinstance(type, ScalarType) and (type.name in INTEGERS or is_long):
        return spark("IF(@0 < 0, @1, @0)", value, negative(value, type))
    return spark("ABS(@0)", value)


def _sign(call: Call) -> exp.Expr:
    type = call.types[0]
    return spark(
        f"CAST(SIGN(@0) AS {type.spark() if isinstance(type, ScalarType) else 'DOUBLE'})", call.arguments[0]
    )


def _extreme(call: Call) -> exp.Expr:
    """GREATEST and LEAST: NULL if one is, while Spark leaves nulls out."""
    if len(call.arguments) == 1:
        return call.arguments[0]
    nulls = " OR ".join(f"@{n} IS NULL" for n in range(len(call.arguments)))
    result = common(call.types)
    values = [
        a
        if result is None or t == result or not isinstance(result, ScalarType)
        else spark(f"CAST(@0 AS {result.spark()})", a)
        for a, t in zip(call.arguments, call.types, strict=True)
    ]
    made = exp.Anonymous(this=call.name, expressions=values)
    return spark(f"IF({nulls}, NULL, @{len(values)})", *call.arguments, made)


def _logarithm(name: str, value: exp.Expr) -> exp.Expr:
    """Of 0 and below, Java's logarithm; Spark's is NULL."""
    return spark(
        f"CASE WHEN @0 = 0 THEN DOUBLE('-Infinity') WHEN @0 < 0 THEN DOUBLE('NaN') ELSE {name}(@0) END", value
    )


def _log(call: Call) -> exp.Expr:
    if len(call.arguments) == 1:
        return _logarithm("LN", call.arguments[0])
    base, value = (_logarithm("LN", a) for a in call.arguments)
    return arithmetic(exp.Div(this=value, expression=base), ScalarType("DOUBLE"))


def _ceiling(call: Call) -> exp.Expr:
    return whole("CEIL", call.arguments[0], call.types[0])[0]


ENTRIES: Entries = {
    "ABS": _absolute,
    "ATAN2": _angle,
    "CEILING": _ceiling,
    "GREATEST": _extreme,
    "LEAST": _extreme,
    "LN": _log,
    "LOG": _log,
    "LOG10": lambda call: _logarithm("LOG10", call.arguments[0]),
    "LOG2": lambda call: _logarithm("LOG2", call.arguments[0]),
    "MOD": _modulo,
    "ROUND": _rounded,
    "SIGN": _sign,
    "SQRT": "POWER(@0, 0.5D)",
    "TRUNCATE": _rounded,
}
