"""Gives each node of an expression its type in Flink, and the Spark expression with Flink's value.

Nodes are adapted from the leaves to the root; `node.meta["type"]` holds the type, None where only Spark can derive it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeGuard

from sqlglot import exp

from bridge.expressions.arithmetic import arithmetic, negative, remainder
from bridge.expressions.casts import cast
from bridge.expressions.failures import failure, is_lazy, note_failure
from bridge.expressions.functions import called
from bridge.expressions.special import special
from bridge.expressions.template import Refusal, spark
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
        return _interval(node), ScalarType("INTERVAL")
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
        return _interval_sum(node, type), type
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


_KINDS = (("YEAR", "MONTH"), ("DAY", "HOUR", "MINUTE", "SECOND"))
"""The units of months and those of milliseconds, which no INTERVAL has together."""
_WORTH = {"YEAR": 12, "MONTH": 1, "DAY": 86_400_000, "HOUR": 3_600_000, "MINUTE": 60_000, "SECOND": 1000}
_BEFORE = {"MONTH": "-", "HOUR": " ", "MINUTE": ":", "SECOND": ":"}
"""What stands before a unit that is not the first one."""
_LESS_THAN = {"MONTH": 12, "HOUR": 24, "MINUTE": 60, "SECOND": 60}
_LEGAL = "YEAR, MONTH, DAY, HOUR, MINUTE, SECOND, and spans such as DAY TO SECOND"
_LONGER = {"WEEK": "'7' DAY", "QUARTER": "'3' MONTH"}


@dataclass(frozen=True)
class _Length:
    """`amount` is a number of months or milliseconds."""

    text: str
    units: tuple[str, ...]
    amount: int


def _interval(node: exp.Interval) -> exp.Interval:
    """Returns the INTERVAL as Spark reads it. Raises Refusal where it is no operand of a sum, no constant, or has a
    unit or a text that Flink or Spark does not take."""
    around = node.parent
    while isinstance(around, (exp.Paren, exp.Neg)):
        around = around.parent
    if not isinstance(around, (exp.Add, exp.Sub)):
        raise Refusal("an INTERVAL is added to a time or taken from one, and is no value of its own")
    length = _read(node)
    first, last = length.units[0], length.units[-1]
    unit = (
        exp.var(first) if first == last else exp.IntervalSpan(this=exp.var(first), expression=exp.var(last))
    )
    return exp.Interval(this=exp.Literal.string(length.text), unit=unit)


def _interval_sum(node: exp.Expr, type: ScalarType) -> exp.Expr:
    """Returns a time plus or minus an INTERVAL. A DATE stays one: of hours only their whole days count. Raises Refusal
    for an INTERVAL minus a time."""
    right = _amount(node.expression)
    if right is None and isinstance(node, exp.Sub):
        raise Refusal("a time cannot be taken from an INTERVAL")
    found = right or _amount(node.this)
    if type.name != "DATE" or found is None:
        return node
    amount, is_months = found
    if is_months:
        return exp.cast(exp.paren(node.copy()), "DATE", dialect="spark")
    days = abs(amount) // _WORTH["DAY"] * (-1 if (amount < 0) != isinstance(node, exp.Sub) else 1)
    value = node.this if right else node.expression
    return spark(f"@0 + INTERVAL '{days}' DAY", value) if days else value


def _amount(node: exp.Expr) -> tuple[int, bool] | None:
    """The amount of an INTERVAL, and whether it is one of months; None for other expressions."""
    if isinstance(node, (exp.Paren, exp.Neg)):
        found = _amount(node.this)
        return (-found[0], found[1]) if found and isinstance(node, exp.Neg) else found
    if not isinstance(node, exp.Interval):
        return None
    length = _read(node)
    return length.amount, length.units[0] in _KINDS[0]


def _read(node: exp.Interval) -> _Length:
    units = _units(node.args.get("unit"))
    shown = units[0] if len(units) == 1 else f"{units[0]} TO {units[-1]}"
    is_negative = isinstance(node.this, exp.Neg)
    value = node.this.this if is_negative else node.this
    if not isinstance(value, exp.Literal):
        raise Refusal(
            "the length of an INTERVAL must be a constant; TIMESTAMPADD(unit, count, time) adds a column"
        )
    text = str(value.this).strip()
    fraction = r"(?:\.\d{1,3})?" if units[-1] == "SECOND" else ""
    pattern = r"([+-]?)(\d{1,8}" + "".join(rf"{_BEFORE[u]}\d{{1,2}}" for u in units[1:]) + f"{fraction})"
    found = re.fullmatch(pattern, text, re.ASCII)
    numbers = [Decimal(part) for part in re.split("[-: ]", found[2])] if found else []
    if found is None or any(n >= _LESS_THAN[u] for n, u in zip(numbers[1:], units[1:], strict=True)):
        example = "1" + "".join(f"{_BEFORE[u]}30" if u != "MONTH" else "-6" for u in units[1:])
        raise Refusal(f"INTERVAL {text!r} {shown} is no interval; write it like INTERVAL '{example}' {shown}")
    total = int(sum(n * _WORTH[u] for n, u in zip(numbers, units, strict=True)))
    sign = -1 if (found[1] == "-") != is_negative else 1
    return _Length(f"{'-' * (sign < 0)}{found[2]}", units, sign * total)


def _units(unit: exp.Expr | None) -> tuple[str, ...]:
    ends = (unit.this, unit.expression) if isinstance(unit, exp.IntervalSpan) else (unit, unit)
    first, last = (end.name.upper().removesuffix("S") if end is not None else "" for end in ends)
    for units in _KINDS:
        if first in units and last in units[units.index(first) :]:
            return units[units.index(first) : units.index(last) + 1]
    if first == last and first in _LONGER:
        raise Refusal(f"Flink adds another length than a {first} for it; write INTERVAL {_LONGER[first]}")
    given = first if first == last else f"{first} TO {last}"
    raise Refusal(f"the unit {given!r} of an INTERVAL is not supported; legal: {_LEGAL}")
