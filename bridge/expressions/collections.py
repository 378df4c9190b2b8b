"""Flink's functions of arrays and maps, in Spark."""

from __future__ import annotations

from sqlglot import exp

from bridge.expressions.call import Call, Entries
from bridge.expressions.failures import failed
from bridge.expressions.refusal import Refusal
from bridge.expressions.template import spark
from bridge.schema import ArrayType

__all__ = ["ENTRIES"]

_FIRST = "CASE WHEN @1 > 0 THEN @1 WHEN @1 = 0 THEN 1 WHEN @1 < 0 THEN GREATEST(SIZE(@0) + @1 + 1, 1) END"
_LAST = "IF(@2 < 0, SIZE(@0) + @2 + 1, @2)"


def _only(call: Call) -> exp.Expr:
    type = call.types[0]
    if not isinstance(type, ArrayType):
        raise Refusal("the type of the argument of ELEMENT is not known; CAST it")
    several = failed("several elements", type.element.spark())
    return spark(f"CASE WHEN SIZE(@0) > 1 THEN {several} ELSE TRY_ELEMENT_AT(@0, 1) END", call.arguments[0])


def _slice(call: Call) -> exp.Expr:
    if len(call.arguments) == 2:
        return spark(f"SLICE(@0, {_FIRST}, SIZE(@0))", *call.arguments)
    length = f"({_LAST}) - ({_FIRST}) + 1"
    return spark(
        f"SLICE(@0, {_FIRST}, GREATEST({length}, 0) + IF({length} IS NULL, NULL, 0))", *call.arguments
    )


def _sorted(call: Call) -> exp.Expr:
    flags = [_flag(call, n) for n in range(1, len(call.arguments))]
    ascending = flags[0] if flags else True
    nulls_first = flags[1] if len(flags) > 1 else ascending
    array = call.arguments[0]
    if nulls_first == ascending:
        return spark(f"SORT_ARRAY(@0, {ascending})", array)
    values, nulls = f"SORT_ARRAY(FILTER(@0, v -> v IS NOT NULL), {ascending})", "FILTER(@0, v -> v IS NULL)"
    return spark(f"CONCAT({nulls}, {values})" if nulls_first else f"CONCAT({values}, {nulls})", array)


def _flag(call: Call, n: int) -> bool:
    argument = call.arguments[n]
    if not isinstance(argument, exp.Boolean):
        raise Refusal("the order of ARRAY_SORT must be a constant: TRUE or FALSE")
    return bool(argument.this)


def _union(call: Call) -> exp.Expr:
    made, *others = call.arguments
    for other in others:
        made = spark("MAP_CONCAT(MAP_FILTER(@0, (k, v) -> NOT MAP_CONTAINS_KEY(@1, k)), @1)", made, other)
    return made


ENTRIES: Entries = {
    "ARRAY_CONCAT": lambda call: exp.Anonymous(this="CONCAT", expressions=list(call.arguments)),
    "ARRAY_CONTAINS": "EXISTS(@0, v -> v <=> @1)",
    "ARRAY_REMOVE": "FILTER(@0, v -> NOT (v <=> @1))",
    "ARRAY_REVERSE": "REVERSE(@0)",
    "ARRAY_SLICE": _slice,
    "ARRAY_SORT": _sorted,
    "ELEMENT": _only,
    "MAP_UNION": _union,
}
