"""Spark expressions written as text, in which `@0`, `@1` … stand for operands."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import ClassVar

from sqlglot import exp, parse_one
from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser

_OPERAND = "__operand_"


class Plain(Spark):
    """Spark's grammar; calls of functions are left as written."""

    class Parser(SparkParser):
        FUNCTIONS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {}
        NO_PAREN_FUNCTIONS: ClassVar[dict[object, object]] = {}


def spark(text: str, *operands: exp.Expr) -> exp.Expr:
    """Returns the expression `text`; an operand that it has more than once is copied."""
    root = _parsed(text).copy()
    places = [c for c in root.find_all(exp.Column) if c.name.startswith(_OPERAND)]
    for place in places:
        operand = operands[int(place.name.removeprefix(_OPERAND))].copy()
        alone = place is root or isinstance(place.parent, (exp.Anonymous, exp.Cast, exp.Paren))
        made = operand if alone or _is_closed(operand) else exp.paren(operand, copy=False)
        if place is root:
            return made
        place.replace(made)
    return root


def literal(node: exp.Expr) -> str | None:
    """Returns the text of a constant, which may be a number with a sign; None for all other expressions."""
    if isinstance(node, exp.Paren):
        return literal(node.this)
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal) and not node.this.is_string:
        return f"-{node.this.this}"
    return str(node.this) if isinstance(node, exp.Literal) else None


def _is_closed(node: exp.Expr) -> bool:
    closed = (exp.Column, exp.Identifier, exp.Dot, exp.Literal, exp.Anonymous, exp.Cast, exp.Paren, exp.Case)
    return isinstance(node, (*closed, exp.Null))


@cache
def _parsed(text: str) -> exp.Expr:
    root: exp.Expr = parse_one(text.replace("@", _OPERAND), read=Plain)
    return root
