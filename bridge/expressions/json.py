"""Flink's functions of JSON texts, in Spark."""

from __future__ import annotations

import re

from sqlglot import exp

from bridge.expressions.call import Build, Call, Entries
from bridge.expressions.refusal import Refusal
from bridge.expressions.template import spark

__all__ = ["ENTRIES"]

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
