"""Translates the expression of a computed column from Flink SQL to Spark SQL.

    tokens -> text (Spark's type names, no comments) -> sqlglot's tree -> checked, adapted -> Spark SQL

A function that is neither Flink's nor Spark's is a user's, and left to Spark.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import ErrorLevel, exp
from sqlglot.errors import SqlglotError

from bridge.ddl.cursor import Cursor
from bridge.ddl.dialect import parse_tree, respell
from bridge.ddl.legal import check, resolve
from bridge.ddl.part import Part
from bridge.ddl.refused_parts import refuse_parts
from bridge.ddl.stray_tokens import refuse_stray_tokens
from bridge.ddl.tokens import Token
from bridge.ddl.tree import Tree, translated
from bridge.expressions.failures import note_text
from bridge.expressions.refusal import Refusal
from bridge.schema import DataType

__all__ = ["spark_text", "translate"]


def translate(c: Cursor, begin: int, end: int, column: str, types: Mapping[str, DataType]) -> exp.Expr:
    """Translates tokens `begin` to `end` to one Spark expression; `failures.failure` says for which rows it fails.

    `types` are the columns that the expression may use: the physical and metadata columns, as in Flink. Raises
    DdlError if the expression cannot be parsed, uses another column, is not deterministic, or would have another
    meaning in Spark.
    """
    stop = c.tokens[end - 1].end
    part = Part(c.source, (*c.tokens[begin:end], Token("end", "", stop, stop)), column)
    refuse_parts(part)
    refuse_stray_tokens(part)
    respelled = respell(c, begin, end, part.prefix)
    what = f"{part.prefix}this expression"
    root = parse_tree(c, respelled, exp.Condition, what)
    tree = Tree(root, part, respelled)
    for node in list(root.walk()):
        check(tree, node, aggregates=False, own_functions=True)
        if isinstance(node, exp.Column):
            try:
                node.meta["type"] = resolve(node, types)
            except Refusal as refusal:
                raise tree.error(str(refusal), refusal.node or node) from None
    note_text(root, qualified=False)
    root = translated(root, tree.adapted)
    try:
        spark_text(root)
    except SqlglotError as error:
        raise c.source.error(f"{what} has no counterpart in Spark", respelled.origin(0)) from error
    return root


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
