"""Flink SQL as sqlglot reads it: Spark's grammar with Flink's quoting, types and literals.

    tokens -> one line with Spark's type names, no comments -> sqlglot's tree, whose nodes have offsets in that line

`Respelled.origin` turns these offsets into offsets of the source.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from sqlglot import exp, parse_one
from sqlglot.errors import ParseError, SqlglotError

from bridge.ddl.part import Part
from bridge.ddl.tokens import Cursor, Source, Token
from bridge.ddl.types import parse_type
from bridge.errors import DdlError, UnsupportedError
from bridge.expressions.failures import is_of_rows, note_of_rows
from bridge.expressions.precision import spelled
from bridge.expressions.template import Plain, Refusal
from bridge.expressions.typed import adapt
from bridge.schema import ScalarType

_JSON_CALLS = ("JSON_EXISTS(", "JSON_QUERY(", "JSON_VALUE(")
_JSON_CLAUSES = ("RETURNING", "DEFAULT", "WITH", "WITHOUT", "ON")


class Flink(Plain):
    """Spark's grammar with Flink's quoting. Function calls are left as written, for `functions` to translate."""

    class Tokenizer(Plain.Tokenizer):
        QUOTES: ClassVar[list[str | tuple[str, str]]] = ["'"]
        STRING_ESCAPES: ClassVar[list[str]] = ["'"]
        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ["`"]


@dataclass(frozen=True)
class Respelled:
    """A text for sqlglot. `places` are pairs (offset in the text, offset in the source), in ascending order."""

    text: str
    places: tuple[tuple[int, int], ...]

    def origin(self, at: int) -> int:
        """Returns the offset in the source of offset `at` in the text."""
        spelled, source = self.places[bisect_right(self.places, at, key=lambda p: p[0]) - 1]
        return source + at - spelled


def respell(c: Cursor, begin: int, end: int, prefix: str = "") -> Respelled:
    """Writes tokens `begin` to `end` in one line, with Spark's names for types and timestamp literals.

    Raises DdlError, whose message starts with `prefix`, for types and literals that Spark lacks.
    """
    text, places, calls = "", [], [""]
    c.index = begin
    while c.index < end:
        before, token = c.tokens[c.index - 1], c.next()
        if token.start > before.end and text:
            text += " "
        places.append((len(text), token.start))
        spelling = c.source.text[token.start : token.end]
        if token.keyword in ("(", "["):
            calls.append(f"{before.keyword}{token.keyword}")
            spelling = "(" if calls[-1] == "MAP[" else spelling
        elif token.keyword in (")", "]"):
            spelling = ")" if calls[-1] == "MAP[" else spelling
            calls = calls[:-1] or [""]
        elif token.keyword == "AS" and calls[-1] in ("CAST(", "TRY_CAST("):
            spelling = f"AS {_cast_type(c, prefix)}"
        elif token.keyword in _JSON_CLAUSES and calls[-1] in _JSON_CALLS:
            c.fail(
                f"{prefix}{calls[-1][:-1]} takes a text and a path, and not {token.keyword}; CAST its result in place "
                "of RETURNING, and write COALESCE(…, 'x') in place of DEFAULT",
                token,
            )
        elif token.keyword == "TIMESTAMP" and c.token.kind == "string":
            spelling = "TIMESTAMP_NTZ"
        elif token.keyword == "TIME" and c.token.kind == "string":
            c.fail(f"{prefix}Delta does not support TIME; compare strings", token)
        text += spelling
    return Respelled(text, tuple(places))


def parse_tree(c: Cursor, respelled: Respelled, into: type[exp.Expr] | None, what: str) -> exp.Expr:
    """Parses the text with sqlglot. Raises DdlError that says that `what` cannot be parsed, with the position."""
    text = respelled.text
    try:
        with _quiet():
            root: exp.Expr = parse_one(text, read=Flink, into=into, error_message_context=len(text))
    except SqlglotError as error:
        details = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
        word = f" at '{details['highlight']}'" if details.get("highlight") else ""
        at = len(str(details.get("start_context") or ""))
        raise c.source.error(
            f"{what} cannot be parsed{word}; quote names that are keywords with `...`", respelled.origin(at)
        ) from error
    for call in root.find_all(exp.Anonymous):
        if call.name.upper() in ("TIMESTAMPADD", "TIMESTAMPDIFF") and call.expressions:
            unit = call.expressions[0]
            if isinstance(unit, exp.Column):
                unit.replace(exp.var(unit.name))
    return root


@contextmanager
def _quiet() -> Iterator[None]:
    """Hides sqlglot's warning that it reads a text as a command; the caller refuses the command."""
    logger = logging.getLogger("sqlglot")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _cast_type(c: Cursor, prefix: str) -> str:
    start = c.token
    type = parse_type(c, "the type to cast to")
    if isinstance(type, ScalarType) and type.is_binary and type.parameters:
        c.fail(f"{prefix}a cast to BYTES of a length is not supported; cast to BYTES", start)
    return spelled(type)


class Tree:
    """The tree of `part`, which was parsed as `respelled`."""

    def __init__(self, root: exp.Expr, part: Part, respelled: Respelled) -> None:
        self.root, self.part, self._respelled = root, part, respelled

    @property
    def source(self) -> Source:
        return self.part.source

    def start(self, node: exp.Expr) -> int:
        """Returns the offset in the source at which `node` starts."""
        starts = [int(n.meta["start"]) for n in node.walk() if "start" in n.meta]
        if not starts:
            return self.start(node.parent) if node.parent is not None else self.part.tokens[0].start
        return self._respelled.origin(min(starts))

    def called(self, node: exp.Expr) -> Token | None:
        """Returns the word before the parenthesis in which `node` has its arguments."""
        at = self.start(node)
        tokens = self.part.tokens
        calls = [t for t, after in pairwise(tokens) if after.keyword == "(" and t.kind == "word"]
        before = [t for t in calls if t.start <= at]
        return before[-1] if before else None

    def error(self, message: str, node: exp.Expr) -> DdlError:
        """Returns a DdlError at the start of `node`."""
        return self.part.error(message, self.start(node))

    def unsupported(self, what: str, way_out: str, node: exp.Expr) -> DdlError | UnsupportedError:
        """Returns an error that `what`, a part of the query or expression, is not supported, at the start of `node`."""
        return self.part.unsupported(what, way_out, self.start(node))

    def adapted(self, node: exp.Expr) -> exp.Expr:
        """Returns `typed.adapt(node)`. Raises DdlError for what it refuses."""
        try:
            return adapt(node)
        except Refusal as refusal:
            raise self.error(str(refusal), refusal.node or node) from None


def translated(root: exp.Expr, adapted: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """Returns `root` with all nodes `adapted`; it is replaced in its parent, too.

    Children come before parents: the translation of a parent depends on the types of its adapted operands.
    """
    for node in reversed(list(root.walk(bfs=False))):
        made = adapted(node)
        if is_of_rows(node):
            note_of_rows(made)
        if made is not node:
            made.meta.setdefault(
                "start", next((n.meta["start"] for n in node.walk() if "start" in n.meta), 0)
            )
            if node is root:
                root = made
            if node.parent is not None:
                node.replace(made)
    return root
