"""Translates the expression of a computed column from Flink SQL to Spark SQL.

    tokens -> text (Spark's type names, no comments) -> sqlglot's tree -> checked, adapted -> Spark SQL

Unknown functions and wrong arguments are left to Spark, which refuses them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from typing import ClassVar

from sqlglot import ErrorLevel, exp, parse_one
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.parsers.spark import SparkParser

from bridge.ddl.cursor import Cursor
from bridge.ddl.functions import CLOCKS, NON_DETERMINISTIC, Refusal
from bridge.ddl.operators import adapt, check
from bridge.ddl.types import parse_type
from bridge.schema import DataType, ScalarType

__all__ = ["translate"]


class _Flink(Spark):
    """Spark's grammar with Flink's quoting. Function calls are left as written, for `functions` to translate."""

    class Tokenizer(Spark.Tokenizer):
        QUOTES: ClassVar[list[str | tuple[str, str]]] = ["'"]
        STRING_ESCAPES: ClassVar[list[str]] = ["'"]
        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ["`"]

    class Parser(SparkParser):
        FUNCTIONS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {}
        NO_PAREN_FUNCTIONS: ClassVar[dict[object, object]] = {}


def translate(c: Cursor, begin: int, end: int, column: str, types: Mapping[str, DataType]) -> str:
    """Translates tokens `begin` to `end` to one Spark SQL expression in which all column names are quoted.

    `types` are the columns that the expression may use: the physical and metadata columns, as in Flink. Raises
    DdlError if the expression cannot be parsed, uses another column, is not deterministic, or would have another
    meaning in Spark.
    """
    prefix = f"computed column `{column}`: "
    _refuse_non_deterministic(c, begin, end, prefix)
    text, places = _respell(c, begin, end, prefix)

    def origin(at: int) -> int:
        spelled, source = places[bisect_right(places, at, key=lambda p: p[0]) - 1]
        return source + at - spelled

    try:
        return _to_spark(text, types)
    except Refusal as refusal:
        nodes = refusal.node.walk() if refusal.node else ()
        at = min((n.meta["start"] for n in nodes if "start" in n.meta), default=0)
        raise c.source.error(f"{prefix}{refusal}", origin(at)) from None
    except SqlglotError as error:
        details = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
        word = f" at '{details['highlight']}'" if details.get("highlight") else ""
        at = len(str(details.get("start_context") or ""))
        raise c.source.error(
            f"{prefix}this expression cannot be parsed{word}; quote names that are keywords with `...`",
            origin(at),
        ) from error


def _refuse_non_deterministic(c: Cursor, begin: int, end: int, prefix: str) -> None:
    for i in range(begin, end):
        word, called = c.tokens[i].keyword, c.tokens[i + 1].keyword == "("
        if word in CLOCKS or (called and word in NON_DETERMINISTIC):
            c.fail(
                f"{prefix}{word} is not deterministic, but a replayed record must result in the same row; remove the "
                "column, or use the timestamp of the record (METADATA FROM 'timestamp')",
                c.tokens[i],
            )


def _respell(c: Cursor, begin: int, end: int, prefix: str) -> tuple[str, list[tuple[int, int]]]:
    """Returns the expression in one line with Spark's type names, and the origins of its parts.

    The origins are pairs (offset in the text, offset in the source), in ascending order.
    """
    text, places, casts = "", [], [False]
    c.index = begin
    while c.index < end:
        before, token = c.tokens[c.index - 1], c.next()
        if token.start > before.end and text:
            text += " "
        places.append((len(text), token.start))
        spelling = c.source.text[token.start : token.end]
        if token.keyword in ("(", "["):
            casts.append(before.keyword in ("CAST", "TRY_CAST"))
        elif token.keyword in (")", "]"):
            casts.pop()
        elif token.keyword == "AS" and casts[-1]:
            spelling = f"AS {_cast_type(c, prefix)}"
        elif token.keyword == "TIMESTAMP" and c.token.kind == "string":
            spelling = "TIMESTAMP_NTZ"
        elif token.keyword == "TIME" and c.token.kind == "string":
            c.fail(f"{prefix}Delta does not support TIME; compare strings", token)
        elif token.keyword == "MAP" and c.at("["):
            c.fail(f"{prefix}write MAP_FROM_ARRAYS(ARRAY[keys], ARRAY[values])", token)
        text += spelling
    return text, places


def _cast_type(c: Cursor, prefix: str) -> str:
    start = c.token
    type = parse_type(c, "the type to cast to")
    if isinstance(type, ScalarType) and (type.is_string or type.is_binary) and type.parameters:
        wide = "STRING" if type.is_string else "BYTES"
        c.fail(
            f"{prefix}Spark's casts ignore the length; cast to {wide} and truncate with LEFT or SUBSTRING",
            start,
        )
    return type.spark()


def _to_spark(text: str, types: Mapping[str, DataType]) -> str:
    root: exp.Expr = parse_one(text, read=_Flink, into=exp.Condition, error_message_context=len(text))
    for call in root.find_all(exp.Anonymous):
        if call.name.upper() in ("TIMESTAMPADD", "TIMESTAMPDIFF") and call.expressions:
            unit = call.expressions[0]
            unit.replace(exp.var(unit.name))
    for node in list(root.walk()):
        check(node, types)
    # Children come before parents: the translation of a parent depends on the types of its adapted operands.
    for node in reversed(list(root.walk(bfs=False))):
        adapted = adapt(node, types)
        if adapted is not node:
            root = adapted if node is root else root
            node.replace(adapted)
    return str(
        root.sql(
            "spark",
            identify=True,
            normalize_functions=False,
            comments=False,
            unsupported_level=ErrorLevel.RAISE,
        )
    )
