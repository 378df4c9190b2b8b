"""Expressions that the grammar has in place of calls: comparisons, CASE, EXTRACT, TRIM, array[1] and the like."""

from __future__ import annotations

import re

from sqlglot import exp

from bridge.expressions.casts import to_text
from bridge.expressions.comparisons import COMPARISONS, TypeOf, compared, without_operand
from bridge.expressions.functions import check_call
from bridge.expressions.numbers import whole
from bridge.expressions.template import Refusal, literal, spark
from bridge.expressions.texts import overlay, substring
from bridge.expressions.times import extracted, rounded
from bridge.expressions.type_rules import INTEGERS, NULL, comparable, fits, one_type, scalar
from bridge.schema import BYTES, ArrayType, DataType, MapType, RowType, ScalarType

_ESCAPES = "\x01!#~^"
_CALLS: dict[type[exp.Expr], tuple[str, tuple[str, ...]]] = {
    exp.Overlay: ("OVERLAY", ("this", "expression", "from_", "for_")),
    exp.StrPosition: ("POSITION", ("substr", "this")),
    exp.Substring: ("SUBSTRING", ("this", "start", "length")),
    exp.Trim: ("TRIM", ("this", "expression")),
}
"""Functions whose arguments may be written with keywords: their names, and the arguments in the order of a call."""
_OTHER_CONDITIONS = (exp.Is, exp.Like, exp.Escape, exp.And, exp.Or, exp.Not, exp.Boolean)
CONDITIONS = (*COMPARISONS, *_OTHER_CONDITIONS)


def special(node: exp.Expr, type_of: TypeOf) -> tuple[exp.Expr, DataType | None]:
    """Returns the Spark expression, and its type in Flink; None where only Spark can derive it."""
    if isinstance(node, COMPARISONS):
        return compared(node, type_of), scalar("BOOLEAN")
    if isinstance(node, _OTHER_CONDITIONS):
        _check_operands(node, type_of)
        return _condition(node, type_of), scalar("BOOLEAN")
    if isinstance(node, exp.Case):
        return _case(node, type_of)
    if isinstance(node, exp.If):
        return _branch(node, type_of)
    if isinstance(node, exp.Where):  # of FILTER
        node.set("this", _boolean(node.this, type_of))
    if isinstance(node, exp.Extract):
        return extracted(node.name, node.expression, type_of(node.expression)), scalar("BIGINT")
    if isinstance(node, (exp.Floor, exp.Ceil)):
        if node.this is None or node.args.get("decimals") is not None:
            raise Refusal(
                f"{node.key.upper()} takes one number, or a time TO a unit; ROUND and TRUNCATE take digits"
            )
        type = type_of(node.this)
        return rounded(node, type) if node.args.get("to") else whole(node.key.upper(), node.this, type)
    if isinstance(node, exp.DPipe):
        return _joined(node, type_of)
    if isinstance(node, tuple(_CALLS)):
        return _called(node, type_of)
    if isinstance(node, exp.Bracket):
        return _item(node, type_of), _element(type_of(node.this))
    if isinstance(node, exp.Array):
        item = one_type([type_of(item) for item in node.expressions])
        if item == NULL:
            raise Refusal(
                "the type of the items of this ARRAY is not known, as none of them has one; CAST one of them"
            )
        return node, None if item is None else ArrayType(item)
    if isinstance(node, exp.Dot):
        inner, name = type_of(node.this), node.expression.name
        fields = {f.name: f.type for f in inner.fields} if isinstance(inner, RowType) else {}
        if inner is not None and name not in fields:
            raise Refusal(f"{inner.flink()} has no field `{name}`")
        return node, fields.get(name)
    return node, None


def _joined(node: exp.DPipe, type_of: TypeOf) -> tuple[exp.Expr, DataType]:
    types = [type_of(side) for side in (node.this, node.expression)]
    are_bytes = [isinstance(type, ScalarType) and type.name in BYTES for type in types]
    if all(are_bytes):
        return node, scalar("BYTES")
    if any(are_bytes):
        raise Refusal("|| joins two texts or two BYTES; CAST one of them")
    sides = [to_text(side, type) for side, type in zip((node.this, node.expression), types, strict=True)]
    return exp.DPipe(this=sides[0], expression=sides[1]), scalar("STRING")


def check_boolean(node: exp.Expr, type: DataType | None) -> None:
    """Raises Refusal unless a condition is BOOLEAN, as far as its type is known."""
    if type not in (None, NULL) and not (isinstance(type, ScalarType) and type.name == "BOOLEAN"):
        raise Refusal(f"a condition is BOOLEAN, and this is {type.flink() if type is not None else ''}", node)


def _condition(node: exp.Expr, type_of: TypeOf) -> exp.Expr:
    if isinstance(node, exp.Escape):
        _check_escape(literal(node.this.expression), literal(node.expression))
    if isinstance(node, exp.Like) and not isinstance(node.parent, exp.Escape):
        # A backslash is a character like any other in Flink, and Spark's default escape.
        pattern = literal(node.expression)
        if pattern is None or "\\" in pattern:
            other = next(c for c in _ESCAPES if c not in (pattern or ""))
            return exp.Escape(this=node.copy(), expression=exp.Literal.string(other))
    return node


def _case(node: exp.Case, type_of: TypeOf) -> tuple[exp.Expr, DataType | None]:
    results = [type_of(branch.args["true"]) for branch in node.args["ifs"]]
    type = one_type([*results, *([type_of(node.args["default"])] if node.args.get("default") else [])])
    return without_operand(node, type_of), type


def _branch(node: exp.If, type_of: TypeOf) -> tuple[exp.Expr, DataType | None]:
    """IF, or WHEN … THEN of a CASE. A simple CASE compares its operand with the values of WHEN."""
    if not isinstance(node.parent, exp.Case) or node.arg_key != "ifs":
        if node.args.get("false") is None:
            raise Refusal("IF takes a condition and two values")
        node.set("this", _boolean(node.this, type_of))
        return node, one_type([type_of(node.args[a]) for a in ("true", "false")])
    if node.parent.this is None:
        node.set("this", _boolean(node.this, type_of))
    return node, None


def _boolean(node: exp.Expr, type_of: TypeOf) -> exp.Expr:
    type = type_of(node)
    check_boolean(node, type)
    return spark("CAST(@0 AS BOOLEAN)", node) if type == NULL else node


def _called(node: exp.Expr, type_of: TypeOf) -> tuple[exp.Expr, DataType]:
    name, places = _CALLS[type(node)]
    arguments = [node.args[place] for place in places if node.args.get(place) is not None]
    check_call(name, [type_of(argument) for argument in arguments])
    if isinstance(node, exp.Substring):
        node = substring(*arguments)
    elif isinstance(node, exp.Overlay):
        node = overlay(*arguments)
    return node, scalar("INT" if name == "POSITION" else "STRING")


def _check_escape(pattern: str | None, escape: str | None) -> None:
    """Raises Refusal for an escape that is not one character, and where another than `%` and `_` is escaped."""
    if escape is None or len(escape) != 1:
        raise Refusal("the escape of LIKE must be a constant of one character")
    if pattern is not None and re.search(f"{re.escape(escape)}(?![%_])", pattern.replace(escape * 2, "")):
        raise Refusal(
            f"the pattern {pattern!r} of LIKE has {escape!r}, its escape, before another character than % and _"
        )


def _check_operands(node: exp.Expr, type_of: TypeOf) -> None:
    """Raises Refusal for a comparison of a number with text and the like, and for conditions that are none."""
    if isinstance(node, (exp.And, exp.Or, exp.Not)):
        for operand in (node.this, node.args.get("expression")):
            if operand is not None:
                check_boolean(operand, type_of(operand))
        return
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Boolean):
        check_boolean(node.this, type_of(node.this))
    if isinstance(node, exp.Like) and not comparable(type_of(node.this), type_of(node.expression)):
        types = [t.flink() for t in (type_of(node.this), type_of(node.expression)) if t is not None]
        raise Refusal(f"LIKE takes two texts, not {' and '.join(types)}; CAST one of them")


def _item(node: exp.Bracket, type_of: TypeOf) -> exp.Expr:
    """array[n] or map[key]: positions start at 1; NULL past the ends and for a missing key."""
    type, key = type_of(node.this), node.expressions[0]
    given = type_of(key)
    is_none = len(node.expressions) > 1 or isinstance(key, exp.Slice) or given == NULL
    if isinstance(type, MapType) and not is_none and fits(given, type.key):
        return spark("TRY_ELEMENT_AT(@0, @1)", node.this, key)
    if type is not None and not isinstance(type, ArrayType):
        legal = f"a key of {type.key.flink()}" if isinstance(type, MapType) else "no item"
        raise Refusal(f"{type.flink()} takes {legal} in brackets")
    position = literal(key)
    is_integer = given is None or (isinstance(given, ScalarType) and given.name in INTEGERS[:3])
    if is_none or not is_integer or (position is not None and int(position) < 1):
        raise Refusal("the position of an item is an INT, and begins at 1; CAST it")
    if position is not None or type is None:
        return spark("TRY_ELEMENT_AT(@0, @1)", node.this, key)
    return spark("IF(@1 > 0, TRY_ELEMENT_AT(@0, @1), NULL)", node.this, key)


def _element(type: DataType | None) -> DataType | None:
    if isinstance(type, ArrayType):
        return type.element
    return type.value if isinstance(type, MapType) else None
