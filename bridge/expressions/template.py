"""Spark expressions written as text, in which `@0`, `@1` … stand for operands; calls of functions; what is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

from sqlglot import exp, parse_one
from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser

from bridge.schema import DataType

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


BRANCHES = "write CASE WHEN ... with a constant in each branch"
"""The way out where Spark takes a constant only."""


class Refusal(Exception):
    """Raised for a part of an expression (`node`) that is not supported; the caller adds file, line and column."""

    def __init__(self, message: str, node: exp.Expr | None = None) -> None:
        super().__init__(message)
        self.node = node


@dataclass(frozen=True)
class Call:
    """The name in capitals, the arguments, and their types as far as they are known."""

    name: str
    arguments: Sequence[exp.Expr]
    types: Sequence[DataType | None]

    def constant(self, n: int) -> str | None:
        """Returns the text of argument `n`, None if it is no constant or not there."""
        return literal(self.arguments[n]) if n < len(self.arguments) else None

    def number(self, n: int, what: str) -> int:
        """Returns argument `n`, a constant integer. Raises Refusal for other expressions."""
        text = self.constant(n)
        try:
            return int(text or "")
        except ValueError:
            raise Refusal(
                f"{what} of {self.name} must be a constant, as Spark takes no column there; {BRANCHES}"
            ) from None


Build = Callable[[Call], exp.Expr]
Entries = Mapping[str, "str | Mapping[int, str] | Build"]
"""By the name of the function: a text in which `@0` is the first argument, such a text for each number of arguments, or
what builds the expression."""
