"""Times that lose digits: TIMESTAMP(p) and TIMESTAMP_LTZ(p), of which Spark keeps all six, are cut as Flink casts them.

Down to milliseconds digits are cut downwards; below, the milliseconds since 1970 are divided as Java does it, towards
1970 (DateTimeUtils.truncate; CAST(TIMESTAMP '1969-12-31 23:59:58.5' AS TIMESTAMP(0)) is 23:59:59).
"""

from __future__ import annotations

from sqlglot import exp, parse_one

from bridge.expressions.template import Refusal
from bridge.schema import TIMES, ArrayType, DataType, MapType, RowField, RowType, ScalarType, quote

_MICROS, _MILLIS = 6, 3
_LONGEST = 2**31 - 1
"""The length of STRING."""
_OF_SPARK = {"TIMESTAMP_NTZ": "TIMESTAMP", "TIMESTAMP": "TIMESTAMP_LTZ", "BINARY": "BYTES"}
_VALUE, _IS_CUT = "__value", "is_cut"


def cut(value: exp.Expr, type: DataType, *, down: bool = False) -> exp.Expr:
    """Returns `value`, which has the Spark type of `type`, with times cut to their digits; `value` itself where there
    are none to cut. Null stays null. With `down` all digits are cut downwards, as Flink's formats write them."""
    made = _cut(_VALUE, type, 1, down)
    if made == _VALUE:
        return value
    root: exp.Expr = parse_one(made, read="spark")
    operand = value if isinstance(value, (exp.Column, exp.Func, exp.Paren)) else exp.paren(value, copy=False)
    for column in [c for c in root.find_all(exp.Column) if c.parts[0].name == _VALUE]:
        fields = [exp.to_identifier(part.name, quoted=True) for part in column.parts[1:]]
        column.replace(exp.Dot.build([operand.copy(), *fields]) if fields else operand.copy())
    root.meta[_IS_CUT] = True
    return root


def cuts(query: exp.Expr) -> bool:
    """Returns whether a part of a query was `cut`."""
    return any(node.meta.get(_IS_CUT) for node in query.walk())


def spelled(type: DataType) -> str:
    """Returns the type of a CAST in Spark SQL, in which times have their digits; sqlglot keeps them for `written`."""
    if isinstance(type, ArrayType):
        return f"ARRAY<{spelled(type.element)}>"
    if isinstance(type, MapType):
        return f"MAP<{spelled(type.key)},{spelled(type.value)}>"
    if isinstance(type, RowType):
        return "STRUCT<" + ",".join(f"{quote(f.name)}: {spelled(f.type)}" for f in type.fields) + ">"
    assert isinstance(type, ScalarType)
    is_sized = type.name in ("CHAR", "VARCHAR") and type.parameters and type.parameters[0] < _LONGEST
    if is_sized:
        return f"N{type.name}({type.parameters[0]})"  # sqlglot takes VARCHAR(n) of Spark for STRING
    return f"{type.spark()}({type.parameters[0]})" if type.name in TIMES else type.spark()


def written(to: exp.DataType) -> DataType:
    """Returns the type of a CAST that was `spelled`; types without times by their name in Spark.

    Raises Refusal for an ARRAY or MAP without the types of its items.
    """
    parts = list(to.expressions)
    if len(parts) < {"array": 1, "map": 2}.get(to.this.value.lower(), 0):
        raise Refusal(f"the type {to.sql('spark')} of this cast is not complete", to)
    if to.is_type("array"):
        return ArrayType(written(parts[0]))
    if to.is_type("map"):
        return MapType(written(parts[0]), written(parts[1]))
    if to.is_type("struct"):
        return RowType(tuple(RowField(part.name, written(part.args["kind"])) for part in parts))
    name = str(to.sql("spark"))
    if name in _OF_SPARK:
        digits = (int(parts[0].name) if parts else _MICROS,)
        return ScalarType(_OF_SPARK[name], digits if _OF_SPARK[name] in TIMES else ())
    found, _, parameters = name.partition("(")
    return ScalarType(found, tuple(int(p) for p in parameters.rstrip(")").split(",") if p))


def loses_digits(given: DataType | None, wanted: DataType) -> bool:
    """Returns whether a time of type `given`, None if it is not known, may have digits that `wanted` has not."""
    if isinstance(wanted, ArrayType):
        return loses_digits(given.element if isinstance(given, ArrayType) else None, wanted.element)
    if isinstance(wanted, MapType):
        key, value = (given.key, given.value) if isinstance(given, MapType) else (None, None)
        return loses_digits(key, wanted.key) or loses_digits(value, wanted.value)
    if isinstance(wanted, RowType):
        fields = given.fields if isinstance(given, RowType) else ()
        types = [f.type for f in fields] if len(fields) == len(wanted.fields) else [None] * len(wanted.fields)
        return any(loses_digits(g, w.type) for g, w in zip(types, wanted.fields, strict=True))
    assert isinstance(wanted, ScalarType)
    if wanted.name not in TIMES:
        return False
    digits = given.parameters[0] if isinstance(given, ScalarType) and given.name in TIMES else _MICROS
    return digits > wanted.parameters[0] and not (
        isinstance(given, ScalarType) and given.name in ("DATE", "NULL")
    )


def _cut(value: str, type: DataType, depth: int, down: bool) -> str:
    item = f"v{depth}"
    if isinstance(type, ArrayType):
        made = _cut(item, type.element, depth + 1, down)
        return value if made == item else f"TRANSFORM({value}, {item} -> {made})"
    if isinstance(type, MapType):
        made = _cut(item, type.value, depth + 1, down)
        value = value if made == item else f"TRANSFORM_VALUES({value}, (k{depth}, {item}) -> {made})"
        made = _cut(f"k{depth}", type.key, depth + 1, down)
        return value if made == f"k{depth}" else f"TRANSFORM_KEYS({value}, (k{depth}, {item}) -> {made})"
    if isinstance(type, RowType):
        parts = [f"{value}.{quote(f.name)}" for f in type.fields]
        made_parts = [_cut(p, f.type, depth, down) for p, f in zip(parts, type.fields, strict=True)]
        if parts == made_parts:
            return value
        pairs = ", ".join(f"{_literal(f.name)}, {m}" for f, m in zip(type.fields, made_parts, strict=True))
        return f"IF({value} IS NULL, CAST(NULL AS {type.spark()}), NAMED_STRUCT({pairs}))"
    assert isinstance(type, ScalarType)
    if type.name not in TIMES or type.parameters[0] >= _MICROS:
        return value
    digits, instant = type.parameters[0], f"CAST({value} AS TIMESTAMP)"
    if digits > _MILLIS or down:
        step, micros = 10 ** (_MICROS - digits), f"UNIX_MICROS({instant})"
        made = f"TIMESTAMP_MICROS({micros} - PMOD({micros}, {step}L))"
    else:
        step = 10 ** (_MILLIS - digits)
        millis = f"UNIX_MILLIS({instant})"
        made = f"TIMESTAMP_MILLIS({millis if step == 1 else f'({millis} DIV {step}L) * {step}L'})"
    return f"CAST({made} AS {type.spark()})"


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
