"""Splits a script into its statements at `;`, outside of strings, quoted names and comments."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.ddl.part import Part
from bridge.ddl.tokens import Source, Token, tokenize


def split(source: Source) -> Iterator[Part]:
    """Yields each statement that is not empty, in order.

    Raises DdlError for a string, name or comment that is not closed, and for a hint, which would be lost as a comment.
    """
    tokens = tokenize(source)
    _refuse_hints(source, tokens)
    statement: list[Token] = []
    for token in tokens:
        if token.keyword != ";" and token.kind != "end":
            statement.append(token)
            continue
        if statement:
            yield Part(source, (*statement, Token("end", "", token.start, token.start)))
        statement = []


def _refuse_hints(source: Source, tokens: list[Token]) -> None:
    """Raises DdlError for `/*+ ... */` between two tokens: only comments and blanks are there."""
    before = 0
    for token in tokens:
        hint = source.text.find("/*+", before, token.start)
        line = source.text[max(before, source.text.rfind("\n", 0, hint) + 1) : hint] if hint >= 0 else "--"
        if "--" not in line and "//" not in line:
            raise source.error(
                "hints (/*+ ... */) are not supported; write options into WITH of the table, and remove the hint",
                hint,
            )
        before = token.end
