"""Expressions that the grammar has in place of calls: comparisons, CASE, EXTRACT, TRIM, array[1] and the like."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from bridge.expressions.casts import to_text
from bridge.expressions.numbers import whole
from bridge.expressions.refusal import Refusal
from bridge.expressions.template import literal, spark
from bridge.expressions.texts import overlay, substring
from bridge.expressions.times import extracted, rounded
from bridge.expressions.type_rules import INTEGERS, NULL, TEXT, comparable, one_type, scalar
from bridge.schema import ArrayType, DataType, MapType, RowType, ScalarType

__all__ = ["CONDITIONS", "check_boolean", "special"]

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
    if isinstance(node, exp.If):
        return _branch(node, type_of)
    if isinstance(node, exp.Extract):
        return extracted(node.name, node.expression, type_of(node.expression)), scalar("BIGINT")
    if isinstance(node, (exp.Floor, exp.Ceil)):
        type = type_of(node.this)
        return rounded(node, type) if node.args.get("to") else whole(node.key.upper(), node.this, type)
    if isinstance(node, (exp.Trim, exp.Substring, exp.Overlay, exp.DPipe, exp.StrPosition)):
        return _text(node, type_of)
    if isinstance(node, exp.Bracket):
        return _item(node, type_of(node.this)), _element(type_of(node.this))
    if isinstance(node, exp.Array):
        item = one_type([type_of(item) for item in node.expressions])
        return node, None if item is None else ArrayType(item)
    if isinstance(node, exp.Dot):
        inner = type_of(node.this)
        fields = {f.name: f.type for f in inner.fields} if isinstance(inner, RowType) else {}
        return node, fields.get(node.expression.name)
    return node, None


def check_boolean(node: exp.Expr, type: DataType | None) -> None:
    """Raises Refusal unless a condition is BOOLEAN, as far as its type is known."""
    if type not in (None, NULL) and not (isinstance(type, ScalarType) and type.name == "BOOLEAN"):
        raise Refusal(f"a condition is BOOLEAN, and this is {type.flink() if type is not None else ''}", node)


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
    return one_type([*results, *([type_of(node.args["default"])] if node.args.get("default") else [])])


def _branch(node: exp.If, type_of: TypeOf) -> tuple[exp.Expr, DataType | None]:
    """IF, or WHEN … THEN of a CASE. A simple CASE compares its operand with the values of WHEN."""
    if not isinstance(node.parent, exp.Case):
        node.set("this", _boolean(node.this, type_of))
        return node, one_type(
            [type_of(node.args[a]) for a in ("true", "false") if node.args.get(a) is not None]
        )
    if node.parent.this is None:
        node.set("this", _boolean(node.this, type_of))
    elif not comparable(type_of(node.parent.this), type_of(node.this)):
        raise Refusal("the operand of this CASE and a value of WHEN cannot be compared; CAST one of them")
    return node, None


def _boolean(node: exp.Expr, type_of: TypeOf) -> exp.Expr:
    type = type_of(node)
    check_boolean(node, type)
    return spark("CAST(@0 AS BOOLEAN)", node) if type == NULL else node


def _text(node: exp.Expr, type_of: TypeOf) -> tuple[exp.Expr, DataType]:
    if isinstance(node, exp.DPipe):
        sides = [to_text(side, type_of(side)) for side in (node.this, node.expression)]
        return exp.DPipe(this=sides[0], expression=sides[1]), scalar("STRING")
    if isinstance(node, exp.Substring):
        start, size = node.args["start"], node.args.get("length")
        _check_arguments("SUBSTRING", [node.this], [start, size], type_of)
        return substring(node.this, start, size), scalar("STRING")
    if isinstance(node, exp.Overlay):
        start, size = node.args["from_"], node.args.get("for_")
        _check_arguments("OVERLAY", [node.this, node.expression], [start, size], type_of)
        return overlay(node.this, node.expression, start, size), scalar("STRING")
    if isinstance(node, exp.Trim):
        _check_arguments("TRIM", [node.this, node.args.get("expression")], [], type_of)
    if isinstance(node, exp.StrPosition):
        _check_arguments("POSITION", [node.this, node.args["substr"]], [], type_of)
    return node, scalar("INT" if isinstance(node, exp.StrPosition) else "STRING")


def _check_arguments(
    name: str, texts: Sequence[exp.Expr | None], numbers: Sequence[exp.Expr | None], type_of: TypeOf
) -> None:
    legal = [(node, TEXT) for node in texts] + [(node, INTEGERS[:3]) for node in numbers]
    for node, names in legal:
        type = type_of(node) if node is not None else None
        if type not in (None, NULL) and not (isinstance(type, ScalarType) and type.name in names):
            given = type.flink() if type is not None else ""
            raise Refusal(
                f"{name} takes {'a text' if names is TEXT else 'an INT'} here, not {given}; CAST it", node
            )


def _check_operands(node: exp.Expr, type_of: TypeOf) -> None:
    """Raises Refusal for a comparison of a number with text and the like, and for conditions that are none."""
    if isinstance(node, (exp.And, exp.Or, exp.Not)):
        for operand in (node.this, node.args.get("expression")):
            if operand is not None:
                check_boolean(operand, type_of(operand))
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
