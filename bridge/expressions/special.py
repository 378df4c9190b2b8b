"""Expressions that the grammar has in place of calls: comparisons, CASE, EXTRACT, TRIM, array[1] and the like."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from bridge.expressions.casts import to_text
from bridge.expressions.refusal import Refusal
from bridge.expressions.template import literal, spark
from bridge.expressions.texts import overlay, substring
from bridge.expressions.times import extracted, rounded
from bridge.expressions.type_rules import common, comparable, scalar
from bridge.schema import ArrayType, DataType, MapType, RowType, ScalarType

__all__ = ["CONDITIONS", "special"]

_ESCAPES = "\x01!#~^"
TypeOf = Callable[[exp.Expr], "DataType | None"]
CONDITIONS = (
    *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is, exp.In),
    *(exp.Between, exp.Like, exp.Escape, exp.And, exp.Or, exp.Not, exp.Boolean),
)


def special(node: exp.Expr, type_of: TypeOf) -> tuple[exp.Expr, DataType | None]:
    """Returns the Spark expression, and its type in Flink; None where only Spark can derive it."""
    if isinstance(node, CONDITIONS):
        _check_operands(node, type_of)
        return _condition(node, type_of), scalar("BOOLEAN")
    if isinstance(node, exp.Case):
        return node, _case(node, type_of)
    if isinstance(node, exp.If) and not isinstance(node.parent, exp.Case):
        return node, common(
            [type_of(node.args[a]) for a in ("true", "false") if node.args.get(a) is not None]
        )
    if isinstance(node, (exp.Decode, exp.Encode)):
        raise Refusal(f"{node.key.upper()} is not supported")
    if isinstance(node, exp.Extract):
        return extracted(node.name, node.expression, type_of(node.expression)), scalar("BIGINT")
    if isinstance(node, (exp.Floor, exp.Ceil)):
        return rounded(node, type_of(node.this))
    if isinstance(node, (exp.Trim, exp.Substring, exp.Overlay, exp.DPipe, exp.StrPosition)):
        return _text(node, type_of)
    if isinstance(node, exp.Bracket):
        return _item(node, type_of(node.this)), _element(type_of(node.this))
    if isinstance(node, exp.Array):
        item = common([type_of(item) for item in node.expressions])
        return node, None if item is None else ArrayType(item)
    if isinstance(node, exp.Dot):
        inner = type_of(node.this)
        fields = {f.name: f.type for f in inner.fields} if isinstance(inner, RowType) else {}
        return node, fields.get(node.expression.name)
    return node, None


def _condition(node: exp.Expr, type_of: TypeOf) -> exp.Expr:
    if isinstance(node, exp.Like) and not isinstance(node.parent, exp.Escape):
        # A backslash is a character like any other in Flink, and Spark's default escape.
        pattern = literal(node.expression)
        if pattern is None or "\\" in pattern:
            other = next(c for c in _ESCAPES if c not in (pattern or ""))
            return exp.Escape(this=node.copy(), expression=exp.Literal.string(other))
    if isinstance(node, (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)):
        types = [type_of(side) for side in (node.this, node.expression)]
        names = [type.name if isinstance(type, ScalarType) else "" for type in types]
        if sorted(names) == ["DOUBLE", "FLOAT"]:  # compared as FLOAT
            side = "this" if names[0] == "DOUBLE" else "expression"
            node.set(side, spark("CAST(@0 AS FLOAT)", node.args[side]))
    return node


def _case(node: exp.Case, type_of: TypeOf) -> DataType | None:
    results = [type_of(branch.args["true"]) for branch in node.args["ifs"]]
    return common([*results, *([type_of(node.args["default"])] if node.args.get("default") else [])])


def _text(node: exp.Expr, type_of: TypeOf) -> tuple[exp.Expr, DataType]:
    if isinstance(node, exp.DPipe):
        sides = [to_text(side, type_of(side)) for side in (node.this, node.expression)]
        return exp.DPipe(this=sides[0], expression=sides[1]), scalar("STRING")
    if isinstance(node, exp.Substring):
        return substring(node.this, node.args["start"], node.args.get("length")), scalar("STRING")
    if isinstance(node, exp.Overlay):
        size = node.args.get("for_")
        return overlay(node.this, node.expression, node.args["from_"], size), scalar("STRING")
    return node, scalar("INT" if isinstance(node, exp.StrPosition) else "STRING")


def _check_operands(node: exp.Expr, type_of: TypeOf) -> None:
    """Raises Refusal for a comparison of a number with text and the like, and for conditions that are none."""
    if isinstance(node, (exp.And, exp.Or, exp.Not)):
        for operand in (node.this, node.args.get("expression")):
            type = None if operand is None else type_of(operand)
            if isinstance(type, ScalarType) and type.name not in ("BOOLEAN", "NULL"):
                raise Refusal(f"a condition is BOOLEAN, and this is {type.flink()}", operand)
        return
    if isinstance(node, (exp.Escape, exp.Is, exp.Boolean)):
        return
    others = [node.args.get("expression"), node.args.get("low"), node.args.get("high"), *node.expressions]
    for other in others:
        if other is not None and not comparable(type_of(node.this), type_of(other)):
            types = [t.flink() for t in (type_of(node.this), type_of(other)) if t is not None]
            raise Refusal(f"{' and '.join(types)} cannot be compared; CAST one of them")


def _item(node: exp.Bracket, type: DataType | None) -> exp.Expr:
    """array[n] or map[key]: positions start at 1; NULL past the ends and for a missing key."""
    (key,) = node.expressions
    position = literal(key)
    if not isinstance(type, ArrayType) or (position is not None and int(position) > 0):
        return spark("TRY_ELEMENT_AT(@0, @1)", node.this, key)
    return spark("IF(@1 > 0, TRY_ELEMENT_AT(@0, @1), NULL)", node.this, key)


def _element(type: DataType | None) -> DataType | None:
    if isinstance(type, ArrayType):
        return type.element
    return type.value if isinstance(type, MapType) else None
