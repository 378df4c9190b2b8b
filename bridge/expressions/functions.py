"""Translates calls of Flink's functions to Spark expressions with the same value.

A function without an entry is Spark's of the same name; those of JSON have theirs here. `make flink-vectors` asks Flink
for the values; `tests/expressions` compares them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sqlglot import exp

from bridge.expressions import collections, numbers, texts, times
from bridge.expressions.collections import map_of
from bridge.expressions.comparisons import ROW
from bridge.expressions.numbers import modulo_type, rounded_type, whole_type
from bridge.expressions.precision import loses_digits
from bridge.expressions.signatures import FUNCTIONS, Signature, signature_of, signatures_of
from bridge.expressions.template import Build, Call, Entries, Refusal, spark
from bridge.expressions.times import added_type
from bridge.expressions.type_rules import NULL, fits, one_type, scalar
from bridge.schema import ArrayType, DataType, MapType, RowField, RowType, ScalarType

_PATH = re.compile(r"\$(\.[A-Za-z_]\w*|\[\d+\]|\['[^'\\\]]+'\])*")
_IS_NESTED = "SCHEMA_OF_VARIANT(TRY_VARIANT_GET(TRY_PARSE_JSON(@0), @1)) RLIKE '^(OBJECT|ARRAY)'"


def _call(text: str) -> Build:
    def build(call: Call) -> exp.Expr:
        return spark(text, call.arguments[0], exp.Literal.string(_path(call)))

    return build


def _path(call: Call) -> str:
    text = call.constant(1)
    path = re.sub(r"^\s*(lax|strict)\s+", "", text or "")
    if not _PATH.fullmatch(path):
        raise Refusal(
            f"the path of {call.name} must be a constant of names and positions, such as '$.a.b[0]'; wildcards and "
            "filters are not supported"
        )
    return path


ENTRIES: Entries = {
    "JSON_EXISTS": _call("IF(@0 IS NULL, NULL, GET_JSON_OBJECT(@0, @1) IS NOT NULL)"),
    "JSON_QUERY": _call(f"IF({_IS_NESTED}, GET_JSON_OBJECT(@0, @1), NULL)"),
    "JSON_VALUE": _call(f"IF({_IS_NESTED}, NULL, GET_JSON_OBJECT(@0, @1))"),
}


_OWN = "own"

_ENTRIES: Entries = {
    **texts.ENTRIES,
    **numbers.ENTRIES,
    **times.ENTRIES,
    **collections.ENTRIES,
    **ENTRIES,
}


def called(node: exp.Anonymous, types: Sequence[DataType | None]) -> tuple[exp.Expr, DataType | None]:
    """Returns a call of a scalar function in Spark, and its type. Raises Refusal for arguments that Flink refuses, and
    for what Spark does not have."""
    name = str(node.name).upper()
    if name not in FUNCTIONS or isinstance(node.parent, exp.Dot):
        node.meta[_OWN] = True
        return node, None
    if name == "ROW":
        return _row(node.expressions, types)
    if name == "MAP":
        return map_of(node.expressions, types)
    signature = check_call(name, types)
    _check_items(signature, types)
    decides = {"common": types}.get(signature.result, [])
    if signature.result.startswith("="):
        decides = [types[int(signature.result[1:]) - 1]]
    if decides and all(type == NULL for type in decides):
        return exp.null(), NULL
    call = Call(name, list(node.expressions), [None if t == NULL else t for t in types])
    entry = _ENTRIES.get(name)
    if entry is None:
        made: exp.Expr = node
    elif isinstance(entry, str):
        made = spark(entry, *call.arguments)
    elif isinstance(entry, Mapping):
        made = spark(entry[len(types)], *call.arguments)
    else:
        made = entry(call)
    return made, one_type(types) if signature.result == "common" else result_of(signature, call)


def _row(values: Sequence[exp.Expr], types: Sequence[DataType | None]) -> tuple[exp.Expr, DataType | None]:
    """Two rows of the same types have the same names of fields in Flink; STRUCT would take those of columns."""
    fields = tuple(RowField(f"EXPR${n}", t) for n, t in enumerate(types) if t is not None)
    named = [part for n, v in enumerate(values) for part in (exp.Literal.string(f"EXPR${n}"), v)]
    made = exp.Anonymous(this=ROW, expressions=named)
    return made, RowType(fields) if len(fields) == len(types) else None


def own_functions(root: exp.Expr) -> tuple[str, ...]:
    """Returns the names of the functions in an adapted expression that a user has registered in Spark."""
    return tuple(dict.fromkeys(str(n.name) for n in root.find_all(exp.Anonymous) if _OWN in n.meta))


def check_call(name: str, types: Sequence[DataType | None]) -> Signature:
    """Returns the signature that a call has. Raises Refusal where there is none with arguments of these types."""
    found = signature_of(name, types)
    if found is None:
        given = ", ".join("?" if type is None else type.flink() for type in types)
        legal = [f"{name}({', '.join(s.kinds)}{'…' * s.is_open})" for s in signatures_of(name)]
        raise Refusal(f"{name} does not take ({given}); legal: {'; '.join(legal)}")
    return found


def _check_items(signature: Signature, types: Sequence[DataType | None]) -> None:
    """Raises Refusal where arrays, or an array and an item, have other types of items."""
    elements = [t.element for t in types if isinstance(t, ArrayType)]
    items = [t for t, kind in zip(types, signature.kinds_of(len(types)), strict=True) if kind == "item"]
    others = elements[1:] if signature.name != "MAP_FROM_ARRAYS" else []
    if elements and not all(fits(t, elements[0]) and not _is_cut(t, elements[0]) for t in (*others, *items)):
        raise Refusal(f"{signature.name} takes items of {elements[0].flink()} here; CAST the others")


def _is_cut(given: DataType | None, wanted: DataType) -> bool:
    return given not in (None, NULL) and loses_digits(given, wanted)


def result_of(signature: Signature, call: Call) -> DataType | None:
    """Returns the type that a call without a `common` type has in Flink; None where only Spark can derive it."""
    result, types = signature.result, call.types
    if result.startswith("="):
        return types[int(result[1:]) - 1]
    if result.startswith("item="):
        of = types[int(result[5:]) - 1]
        return of.element if isinstance(of, ArrayType) else None
    if result == "entries":
        of = types[0]
        if isinstance(of, MapType):
            return ArrayType(RowType((RowField("key", of.key), RowField("value", of.value))))
        return None
    if result in ("keys", "values"):
        of = types[0]
        return ArrayType(of.key if result == "keys" else of.value) if isinstance(of, MapType) else None
    if result == "map":
        key, value = (t.element if isinstance(t, ArrayType) else None for t in types)
        return MapType(key, value) if key is not None and value is not None else None
    if result == "added":
        return added_type(call)
    if result == "round":
        return rounded_type(call)
    if result == "whole":
        return whole_type(types[0])
    if result == "%":
        return modulo_type(types)
    if result.startswith("ARRAY"):
        return ArrayType(scalar("STRING"))
    if result.startswith("MAP"):
        return MapType(scalar("STRING"), scalar("STRING"))
    name, _, digits = result.partition("(")
    return ScalarType(name, (int(digits[:-1]),)) if digits else scalar(name)
