"""Flink's functions of arrays and maps, in Spark."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from bridge.expressions.comparisons import null_if
from bridge.expressions.failures import failed
from bridge.expressions.template import Call, Entries, Refusal, spark
from bridge.expressions.type_rules import NULL, one_type
from bridge.schema import ArrayType, DataType, MapType

_FIRST = (
    "CASE WHEN @1 > 0 THEN LEAST(@1, SIZE(@0) + 1) WHEN @1 = 0 THEN 1 "
    "WHEN @1 < 0 THEN GREATEST(SIZE(@0) + @1 + 1, 1) END"
)
_END = (
    "CASE WHEN @2 >= 0 THEN LEAST(GREATEST(@2, 1), SIZE(@0)) WHEN SIZE(@0) + @2 = -1 THEN 1 "
    "WHEN @2 < 0 THEN SIZE(@0) + @2 + 1 END"
)


def _only(call: Call) -> exp.Expr:
    type = call.types[0]
    if not isinstance(type, ArrayType):
        raise Refusal("the type of the argument of ELEMENT is not known; CAST it")
    several = failed("several elements", type.element.spark())
    return spark(f"CASE WHEN SIZE(@0) > 1 THEN {several} ELSE TRY_ELEMENT_AT(@0, 1) END", call.arguments[0])


def _slice(call: Call) -> exp.Expr:
    if len(call.arguments) == 2:
        return spark(f"SLICE(@0, {_FIRST}, SIZE(@0))", *call.arguments)
    length = f"({_END}) - ({_FIRST}) + 1"
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
        kept = "MAP_FILTER(@0, (__k, __v) -> NOT MAP_CONTAINS_KEY(@1, __k))"
        made = spark(f"MAP_CONCAT({kept}, @1)", made, other)
    return made


# A column has no such name as the arguments of the lambdas, which would hide it.
_MAP = "TRY_ELEMENT_AT(TRANSFORM(ARRAY(NAMED_STRUCT('k', @0, 'v', @1)), __m -> {}), 1)"
_IS_LAST = "NOT ARRAY_CONTAINS(SLICE(__m.k, __i + 2, SIZE(__m.k)), TRY_ELEMENT_AT(__m.k, __i + 1))"
_LAST = f"MAP_FROM_ARRAYS(FILTER(__m.k, (__v, __i) -> {_IS_LAST}), FILTER(__m.v, (__v, __i) -> {_IS_LAST}))"
LAST_OF_KEYS = _MAP.format(_LAST)
"""A map of an array of keys and one of as many values; of equal keys the last one counts."""
FROM_ARRAYS = _MAP.format(
    "CASE WHEN __m.k IS NULL OR __m.v IS NULL THEN NULL "
    "WHEN SIZE(__m.k) <> SIZE(__m.v) THEN RAISE_ERROR('another number of keys than of values') "
    "WHEN EXISTS(__m.k, __v -> __v IS NULL) THEN RAISE_ERROR('a NULL key, which no map of Spark has,') "
    f"ELSE {_LAST} END"
)
"""Such a map, which fails for other arrays."""


def map_of(items: Sequence[exp.Expr], types: Sequence[DataType | None]) -> tuple[exp.Expr, DataType | None]:
    """Returns MAP[key, value, …], and its type. Raises Refusal for a key without a value, and for types that do not
    fit."""
    if not items or len(items) % 2:
        raise Refusal("MAP takes pairs of a key and a value: MAP['a', 1, 'b', 2]")
    key, value = one_type(types[::2]), one_type(types[1::2])
    if NULL in (key, value):
        raise Refusal(
            "the types of the keys and values of this MAP are not known, as all are NULL; CAST one of them"
        )
    made = spark(FROM_ARRAYS, *(exp.Array(expressions=list(part)) for part in (items[::2], items[1::2])))
    return made, None if key is None or value is None else MapType(key, value)


ENTRIES: Entries = {
    "ARRAY_CONCAT": lambda call: exp.Anonymous(this="CONCAT", expressions=list(call.arguments)),
    "ARRAY_CONTAINS": "EXISTS(@0, __v -> __v <=> @1)",
    # Spark's compiled code returns NULL for each row if the replacement may be NULL and the others may not.
    "ARRAY_JOIN": {
        2: "ARRAY_JOIN(@0, @1)",
        3: "CASE WHEN @2 IS NOT NULL THEN ARRAY_JOIN(@0, @1, COALESCE(@2, '')) END",
    },
    "ARRAY_REMOVE": "FILTER(@0, __v -> NOT (__v <=> @1))",
    "ARRAY_REVERSE": "REVERSE(@0)",
    "ARRAY_SLICE": _slice,
    "ARRAY_SORT": _sorted,
    "ELEMENT": _only,
    "MAP_FROM_ARRAYS": FROM_ARRAYS,
    "MAP_UNION": _union,
    "NULLIF": lambda call: null_if(call.arguments, call.types),
}
