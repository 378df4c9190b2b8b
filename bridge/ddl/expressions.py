"""Translates the expression of a computed column from Flink SQL to Spark SQL.

    tokens -> text (Spark's type names, no comments) -> sqlglot's tree -> checked, adapted -> Spark SQL

A function that is none of Flink's is a user's, and left to Spark.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import ErrorLevel, exp
from sqlglot.errors import SqlglotError

from bridge.ddl.cursor import Cursor
from bridge.ddl.dialect import parse_tree, respell
from bridge.ddl.functions import CLOCKS, NON_DETERMINISTIC
from bridge.ddl.operators import check
from bridge.expressions.failures import note_text
from bridge.expressions.refusal import Refusal
from bridge.expressions.typed import adapt
from bridge.schema import DataType

__all__ = ["spark_text", "translate"]


def translate(c: Cursor, begin: int, end: int, column: str, types: Mapping[str, DataType]) -> exp.Expr:
    """Translates tokens `begin` to `end` to one Spark expression; `failures.failure` says for which rows it fails.

    `types` are the columns that the expression may use: the physical and metadata columns, as in Flink. Raises
    DdlError if the expression cannot be parsed, uses another column, is not deterministic, or would have another
    meaning in Spark.
    """
    prefix = f"computed column `{column}`: "
    _refuse_non_deterministic(c, begin, end, prefix)
    respelled = respell(c, begin, end, prefix)
    what = f"{prefix}this expression"
    root = parse_tree(c, respelled, exp.Condition, what)
    try:
        root = _adapted(root, types)
        spark_text(root)
        return root
    except Refusal as refusal:
        nodes = refusal.node.walk() if refusal.node else ()
        at = min((n.meta["start"] for n in nodes if "start" in n.meta), default=0)
        raise c.source.error(f"{prefix}{refusal}", respelled.origin(at)) from None
    except SqlglotError as error:
        raise c.source.error(f"{what} has no counterpart in Spark", respelled.origin(0)) from error


def _refuse_non_deterministic(c: Cursor, begin: int, end: int, prefix: str) -> None:
    for i in range(begin, end):
        word, called = c.tokens[i].keyword, c.tokens[i + 1].keyword == "("
        if word in CLOCKS or (called and word in NON_DETERMINISTIC):
            c.fail(
                f"{prefix}{word} is not deterministic, but a replayed record must result in the same row; remove the "
                "column, or use the timestamp of the record (METADATA FROM 'timestamp')",
                c.tokens[i],
            )


def spark_text(root: exp.Expr) -> str:
    """Returns Spark SQL in which all column names are quoted. Raises SqlglotError for what it does not have."""
    return str(
        root.sql(
            "spark",
            identify=True,
            normalize_functions=False,
            comments=False,
            unsupported_level=ErrorLevel.RAISE,
        )
    )


def _adapted(root: exp.Expr, types: Mapping[str, DataType]) -> exp.Expr:
    for node in list(root.walk()):
        check(node, types)
    note_text(root, qualified=False)
    # Children come before parents: the translation of a parent depends on the types of its adapted operands.
    for node in reversed(list(root.walk(bfs=False))):
        adapted = adapt(node)
        if adapted is not node:
            root = adapted if node is root else root
            node.replace(adapted)
    return root
