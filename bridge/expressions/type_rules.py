"""Flink's rules for types: of constants, of operators, of several values, and which type fits into which column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isinf

from sqlglot import exp

from bridge.expressions.precision import loses_digits
from bridge.expressions.template import Refusal
from bridge.schema import BYTES, TIMES, ArrayType, DataType, MapType, RowType, ScalarType

INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
EXACT = (*INTEGERS, "DECIMAL")
NULL = ScalarType("NULL")
"""The type of the constant NULL, which fits into every column."""

_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 19}
NUMERIC = (*INTEGERS, "DECIMAL", "FLOAT", "DOUBLE")
TEXT = ("CHAR", "VARCHAR", "STRING")
# Flink's LogicalTypeCasts: the types that each type is assigned from without CAST.
_IMPLICIT = {
    "TINYINT": ("TINYINT",),
    "SMALLINT": INTEGERS[:2],
    "INT": INTEGERS[:3],
    "BIGINT": INTEGERS,
    "DECIMAL": NUMERIC,
    "FLOAT": (*INTEGERS, "FLOAT", "DECIMAL"),
    "DOUBLE": NUMERIC,
    "CHAR": ("CHAR",),
    "VARCHAR": TEXT,
    "STRING": TEXT,
    "BINARY": ("BINARY",),
    "VARBINARY": BYTES,
    "BYTES": BYTES,
    "DATE": ("DATE", "TIMESTAMP"),
    "TIMESTAMP": TIMES,
    "TIMESTAMP_LTZ": TIMES,
}


def scalar(name: str) -> ScalarType:
    """Returns a type by its name in Flink, with the default parameters."""
    return ScalarType(name, (6,)) if name in TIMES else ScalarType(name)


def literal(node: exp.Literal) -> ScalarType:
    """Returns the type of a constant: STRING, or the smallest of INT, BIGINT, DECIMAL; DOUBLE with an exponent.

    Raises Refusal for a number that none of them holds.
    """
    text = str(node.this)
    if node.is_string:
        return ScalarType("STRING", nullable=False)
    if "e" in text.lower():
        if isinf(float(text)):
            raise Refusal(f"the number {text} is larger than a DOUBLE", node)
        return ScalarType("DOUBLE", nullable=False)
    if text.isdecimal():
        name = "INT" if int(text) < 1 << 31 else "BIGINT" if int(text) < 1 << 63 else ""
        if name:
            return ScalarType(name, nullable=False)
    whole, _, fraction = text.partition(".")
    precision = max(1, len(whole.lstrip("0")) + len(fraction))
    if precision > 38:
        raise Refusal(f"the number {text} has more than the 38 digits of a DECIMAL", node)
    return ScalarType("DECIMAL", (precision, len(fraction)), nullable=False)


def arithmetic(node: exp.Expr, left: DataType | None, right: DataType | None) -> DataType | None:
    """Returns the type of `+ - * / %` of two types; None if only Spark can derive it."""
    if not isinstance(left, ScalarType) or not isinstance(right, ScalarType):
        return None
    for time, other in ((left, right), (right, left)):
        if time.name in (*TIMES, "DATE"):
            return time if other.name == "INTERVAL" else None
    if left.name not in NUMERIC or right.name not in NUMERIC:
        return None
    names = [left.name, right.name]
    inexact = [name for name in names if name in ("FLOAT", "DOUBLE")]
    if inexact:  # of both, Flink takes the left one; FLOAT and DECIMAL is DOUBLE
        return ScalarType("DOUBLE" if "DECIMAL" in names else inexact[0])
    if left.name in INTEGERS and right.name in INTEGERS:
        if isinstance(node, exp.Mod):
            return ScalarType(right.name)
        return ScalarType(max(left.name, right.name, key=INTEGERS.index))
    (p1, s1), (p2, s2) = _decimal(left), _decimal(right)
    if isinstance(node, (exp.Add, exp.Sub)):
        scale = max(s1, s2)
        return _bounded(max(p1 - s1, p2 - s2) + scale + 1, scale)
    if isinstance(node, exp.Mul):
        return _bounded(p1 + p2 + 1, s1 + s2)
    if isinstance(node, exp.Div):
        scale = max(6, s1 + p2 + 1)
        return _bounded(p1 - s1 + s2 + scale, scale)
    return _bounded(min(p1 - s1, p2 - s2) + max(s1, s2), max(s1, s2))


def common(types: Iterable[DataType | None]) -> DataType | None:
    """Returns the type to which all values of CASE, COALESCE or UNION ALL fit; None if there is none or it is unknown.

    NULL adds nothing; all NULL is NULL.
    """
    found: DataType = NULL
    for type in types:
        if type is None:
            return None
        if found == NULL:
            found = type
        elif type != NULL:
            both = _common(found, type)
            if both is None:
                return None
            found = both
    return found


def one_type(types: Sequence[DataType | None]) -> DataType | None:
    """Returns the `common` type; None if one is not known. Raises Refusal if there is none."""
    found = common(types)
    if found is None and None not in types and not all(isinstance(t, RowType) for t in types):
        given = ", ".join(dict.fromkeys(t.flink() for t in types if t is not None))
        raise Refusal(f"values of the types {given} have no type in common; CAST them")
    return found


def comparable(left: DataType | None, right: DataType | None) -> bool:
    """Returns whether two types are compared without CAST, as in Flink; times are compared with text, too."""
    if left is None or right is None or NULL in (left, right):
        return True
    if _has_map(left) or _has_map(right):
        return False
    if not isinstance(left, ScalarType) or not isinstance(right, ScalarType):
        return left.spark() == right.spark()
    if "DATE" in (left.name, right.name) and {left.name, right.name} & set(TIMES):
        return False
    families = [_family(left), _family(right)]
    return families[0] == families[1] or set(families) == {"time", "text"}


def compare_exactly(one: DataType, other: DataType | None) -> bool:
    """Returns whether values of two types are equal only if they are the same, whatever Spark casts them to."""
    if other is None or not isinstance(one, ScalarType) or not isinstance(other, ScalarType):
        return other is not None and one.spark() == other.spark()
    if one.name in EXACT and other.name in EXACT:
        return not is_too_long(one, other)
    families = {_family(one), _family(other)}
    return (
        one.spark() == other.spark() or {one.name, other.name} == {"FLOAT", "DOUBLE"} or families == {"time"}
    )


def is_too_long(one: DataType | None, other: DataType | None) -> bool:
    """Returns whether two exact numbers have more than 38 digits together, the most that Spark compares."""
    if not isinstance(one, ScalarType) or not isinstance(other, ScalarType):
        return False
    if one.name not in EXACT or other.name not in EXACT:
        return False
    (p1, s1), (p2, s2) = _decimal(one), _decimal(other)
    return max(p1 - s1, p2 - s2) + max(s1, s2) > 38


def fits(given: DataType | None, wanted: DataType) -> bool:
    """Returns whether a value is assigned without CAST, as in Flink; an unknown type is left to Spark's cast."""
    if given is None or given == NULL:
        return True
    if isinstance(given, ScalarType) and isinstance(wanted, ScalarType):
        return given.name == wanted.name or given.name in _IMPLICIT.get(wanted.name, ())
    if isinstance(given, ArrayType) and isinstance(wanted, ArrayType):
        return fits(given.element, wanted.element)
    if isinstance(given, MapType) and isinstance(wanted, MapType):
        return fits(given.key, wanted.key) and fits(given.value, wanted.value)
    if isinstance(given, RowType) and isinstance(wanted, RowType):
        pairs = zip(given.fields, wanted.fields, strict=False)
        return len(given.fields) == len(wanted.fields) and all(fits(g.type, w.type) for g, w in pairs)
    return False


def is_unchanged(given: DataType | None, wanted: DataType) -> bool:
    """Returns whether a value of `wanted` is the value of `given` in Spark, without a cast."""
    return given is not None and given.spark() == wanted.spark() and not loses_digits(given, wanted)


def keeps_apart(given: DataType | None, wanted: DataType) -> bool:
    """Returns whether values that differ still differ after a cast, so that a key stays one."""
    if is_unchanged(given, wanted):
        return True
    if not isinstance(given, ScalarType) or not isinstance(wanted, ScalarType):
        return False
    if given.name in EXACT and wanted.name in EXACT:
        (p1, s1), (p2, s2) = _decimal(given), _decimal(wanted)  # a number of too many digits is NULL
        return s1 <= s2 and p1 - s1 <= p2 - s2
    if given.name in TIMES and wanted.name in TIMES:
        return not loses_digits(given, ScalarType(given.name, wanted.parameters))
    return (given.name, wanted.name) in (
        ("FLOAT", "DOUBLE"),
        ("DATE", "TIMESTAMP"),
        ("DATE", "TIMESTAMP_LTZ"),
    )


def _common(left: DataType, right: DataType) -> DataType | None:
    if not isinstance(left, ScalarType) or not isinstance(right, ScalarType):
        return left if fits(left, right) and fits(right, left) else None
    if left.name in TEXT and right.name in TEXT:
        return ScalarType("STRING")
    if left.name in NUMERIC and right.name in NUMERIC:
        if "DECIMAL" in (left.name, right.name) and not {"FLOAT", "DOUBLE"} & {left.name, right.name}:
            (p1, s1), (p2, s2) = _decimal(left), _decimal(right)
            whole = min(38, max(p1 - s1, p2 - s2))
            scale = min(38 - whole, max(s1, s2))
            return ScalarType("DECIMAL", (whole + scale, scale))
        if "DECIMAL" in (left.name, right.name):
            return ScalarType("DOUBLE")
        return ScalarType(max(left.name, right.name, key=NUMERIC.index))
    if left.name in BYTES and right.name in BYTES:
        return ScalarType("BYTES")
    if left.name == right.name and left.name in TIMES:
        return max(left, right, key=lambda type: type.parameters)
    return left if left.name == right.name and left.parameters == right.parameters else None


def _has_map(type: DataType) -> bool:
    if isinstance(type, ArrayType):
        return _has_map(type.element)
    return isinstance(type, MapType) or (
        isinstance(type, RowType) and any(_has_map(f.type) for f in type.fields)
    )


def _family(type: ScalarType) -> str:
    if type.name in NUMERIC:
        return "number"
    if type.name in BYTES:
        return "bytes"
    if type.name in TEXT:
        return "text"
    return "time" if type.name in (*TIMES, "DATE") else type.name


def _decimal(type: ScalarType) -> tuple[int, int]:
    if type.name == "DECIMAL":
        return type.parameters[0], type.parameters[1]
    return _DIGITS[type.name], 0


def _bounded(precision: int, scale: int) -> ScalarType:
    """Returns a DECIMAL of at most 38 digits; digits of the whole part are kept, and at least 6 of the fraction."""
    if precision > 38:
        scale = max(38 - (precision - scale), min(scale, 6))
    return ScalarType("DECIMAL", (min(precision, 38), scale))
