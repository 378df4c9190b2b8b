"""Comparisons with Flink's values: `=`, `<` and the like, IN, BETWEEN, a CASE with an operand, NULLIF."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal

from sqlglot import exp

from bridge.expressions.precision import loses_digits
from bridge.expressions.template import Refusal, literal, spark
from bridge.expressions.type_rules import (
    EXACT,
    INTEGERS,
    NUMERIC,
    TEXT,
    comparable,
    is_too_long,
    keeps_apart,
)
from bridge.schema import TIMES, ArrayType, DataType, RowType, ScalarType

COMPARISONS = (
    *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ),
    *(exp.In, exp.Between),
)
ROW = "NAMED_STRUCT"
"""The function of Spark that ROW(…) becomes."""
TypeOf = Callable[[exp.Expr], "DataType | None"]
_Typed = tuple[exp.Expr, "DataType | None"]
_EQUAL_ARRAYS = "IF(@0 = @1, NOT EXISTS(@0, __v -> __v IS NULL), @0 = @1)"
"""In Flink an array with a NULL in it equals none, but for the same expression on both sides."""


def compared(node: exp.Expr, type_of: TypeOf) -> exp.Expr:
    """Returns the condition in Spark. Raises Refusal for operands that are not compared without CAST."""
    if isinstance(node, exp.In) and not node.expressions:
        raise Refusal("IN takes a list of values, and there is none")
    given = [node.args.get("expression"), node.args.get("low"), node.args.get("high"), *node.expressions]
    left = node.this, type_of(node.this)
    others = [(other, type_of(other)) for other in given if other is not None]
    for other in others:
        _check(left, other)
    if isinstance(node, exp.In):
        return _in(node, left, others)
    if isinstance(left[1], RowType) and not isinstance(node, exp.EQ):
        raise Refusal("rows are compared by = and IN; compare their fields")
    if isinstance(left[1], ArrayType) and isinstance(node, (exp.EQ, exp.NullSafeEQ)) and _joins(node):
        return node  # the keys of a join are compared by their bytes, NULLs in them, too
    if isinstance(node, (exp.EQ, exp.NEQ)):
        made = _equal(left, others[0])
        if made is None:
            return node
        return exp.Not(this=exp.paren(made)) if isinstance(node, exp.NEQ) else made
    if isinstance(node, (exp.NullSafeEQ, exp.NullSafeNEQ)) and isinstance(left[1], ArrayType):
        both_null = "COALESCE(@2, @0 IS NULL AND @1 IS NULL)"
        made = spark(both_null, left[0], others[0][0], _is_equal(left, others[0]))
        return exp.Not(this=exp.paren(made)) if isinstance(node, exp.NullSafeNEQ) else made
    return node


def without_operand(node: exp.Case, type_of: TypeOf) -> exp.Case:
    """Returns the CASE with conditions in place of an operand where Spark compares the operand in another way. Raises
    Refusal for values of WHEN that are not compared with it."""
    if node.this is None:
        return node
    operand, branches = (node.this, type_of(node.this)), node.args["ifs"]
    values = [(branch.this, type_of(branch.this)) for branch in branches]
    for value in values:
        _check(operand, value)
    if not any(_equal(operand, value) for value in values):
        return node
    ifs = [
        exp.If(this=_is_equal(operand, value), true=branch.args["true"])
        for value, branch in zip(values, branches, strict=True)
    ]
    return exp.Case(ifs=ifs, default=node.args.get("default"))


def null_if(arguments: Sequence[exp.Expr], types: Sequence[DataType | None]) -> exp.Expr:
    """Returns NULLIF in Spark. Raises Refusal for values that are not compared."""
    (left, right) = zip(arguments, types, strict=True)
    _check(left, right)
    made = _equal(left, right)
    if made is None:
        return exp.Anonymous(this="NULLIF", expressions=list(arguments))
    return spark("IF(@1, NULL, @0)", left[0], made)


def _equal(left: _Typed, right: _Typed) -> exp.Expr | None:
    """`left = right` where Spark's `=` has another value; else None."""
    (one, of_one), (other, of_other) = left, right
    if isinstance(of_one, ArrayType) and isinstance(of_other, ArrayType):
        if one == other:
            return spark("IF(@0 IS NULL, NULL, TRUE)", one)
        return spark(_EQUAL_ARRAYS, one, other)
    if isinstance(of_one, RowType) and isinstance(of_other, RowType):
        pairs = zip(_fields(one, of_one), _fields(other, of_other), strict=True)
        return exp.paren(exp.and_(*(_is_equal(a, b) for a, b in pairs), copy=False), copy=False)
    # The other way round both are compared as DOUBLE, and so are < and >.
    if _name(of_one) == "FLOAT" and _name(of_other) == "DOUBLE":
        return exp.EQ(this=one.copy(), expression=spark("CAST(@0 AS FLOAT)", other))
    return None


def _is_equal(left: _Typed, right: _Typed) -> exp.Expr:
    return _equal(left, right) or exp.EQ(this=left[0].copy(), expression=right[0].copy())


def _fields(node: exp.Expr, type: RowType) -> list[_Typed]:
    while isinstance(node, exp.Paren):
        node = node.this
    if not (isinstance(node, exp.Anonymous) and node.name == ROW):
        raise Refusal("only rows that are written as ROW(…) are compared; compare the fields")
    if any(isinstance(field.type, RowType) for field in type.fields):
        raise Refusal("a row in a row is not compared; compare the fields")
    return list(zip(node.expressions[1::2], (field.type for field in type.fields), strict=True))


def _in(node: exp.In, left: _Typed, values: Sequence[_Typed]) -> exp.Expr:
    """IN, of which Flink casts each value to the type of the operand."""
    of = left[1]
    if _name(of) == "FLOAT":
        inexact = ("DECIMAL", "DOUBLE")
        cast = [spark("CAST(@0 AS FLOAT)", v) if _name(t) in inexact else v for v, t in values]
        node.set("expressions", cast)
        return node
    if any(_equal(left, value) for value in values):
        return exp.paren(exp.or_(*(_is_equal(left, value) for value in values), copy=False), copy=False)
    for value, type in values:
        if not isinstance(of, ScalarType) or not isinstance(type, ScalarType):
            continue
        is_cut = of.name in TIMES and type.name in TIMES and type.name != of.name and loses_digits(type, of)
        if is_cut or (of.name in EXACT and type.name in NUMERIC and not _is_kept(value, type, of)):
            raise Refusal(
                f"IN casts each value to {of.flink()}, which {_shown(value, type)} does not fit: CAST it, "
                "or write = and OR"
            )
    return node


def _is_kept(value: exp.Expr, given: ScalarType, wanted: ScalarType) -> bool:
    """Whether a number is the same after a cast."""
    constant = literal(value)
    if constant is None:
        return keeps_apart(given, wanted)
    number = Decimal(constant)
    if wanted.name == "DECIMAL":
        precision, scale = wanted.parameters
        return abs(number) < 10 ** (precision - scale) and number == round(number, scale)
    limit = 2 ** (8 * 2 ** INTEGERS.index(wanted.name) - 1)
    return number == int(number) and -limit <= number < limit


def _check(left: _Typed, right: _Typed) -> None:
    """Raises Refusal for a comparison of a number with text and the like."""
    types = [t for _, t in (left, right) if t is not None]
    if not comparable(left[1], right[1]):
        raise Refusal(f"{' and '.join(t.flink() for t in types)} cannot be compared; CAST one of them")
    if is_too_long(left[1], right[1]):
        raise Refusal(
            f"Spark compares {' and '.join(t.flink() for t in types)} without their last digits, as both together have "
            "more than 38; CAST one of them"
        )
    for (text, of_text), (_, other) in ((left, right), (right, left)):
        if _name(of_text) in TEXT and _name(other) in (*TIMES, "DATE") and not _is_time(text, other):
            raise Refusal(
                f"{_shown(text, of_text)} cannot be compared with {other.flink() if other else ''}; CAST it, or write "
                "a constant such as '2024-02-29'" + " or '2024-02-29 12:34:56'" * (_name(other) != "DATE")
            )


def _is_time(text: exp.Expr, type: DataType | None) -> bool:
    """Whether a text is a constant that any cast reads as the same time."""
    constant = literal(text) or ""
    pattern = r"\d{4}-\d\d-\d\d" + r"( \d\d:\d\d:\d\d([.]\d*)?)?" * (_name(type) != "DATE")
    if not re.fullmatch(pattern, constant, re.ASCII):
        return False
    try:
        datetime.fromisoformat(constant.partition(".")[0])
    except ValueError:
        return False
    return True


def _shown(value: exp.Expr, type: DataType | None) -> str:
    constant = literal(value)
    if constant is not None:
        return f"'{constant}'" if _name(type) in TEXT else constant
    return type.flink() if type is not None else "a value of another type"


def _name(type: DataType | None) -> str:
    return type.name if isinstance(type, ScalarType) else ""


def _joins(node: exp.Expr) -> bool:
    """Whether an equality joins two tables."""
    tables = [{column.table for column in side.find_all(exp.Column)} for side in (node.this, node.expression)]
    return all(len(of) == 1 for of in tables) and tables[0] != tables[1]
