"""Refuses tokens that sqlglot skips where they have no meaning: `SELECT a,, b`, `FROM t ?`, `FROM . t`."""

from __future__ import annotations

from itertools import pairwise

from bridge.ddl.part import Part
from bridge.ddl.tokens import Token
from bridge.errors import DdlError

_SYMBOLS = frozenset("( ) [ ] , . * + - / % = < > ! |".split())
_CLAUSES = frozenset(
    "SELECT FROM WHERE GROUP BY HAVING UNION ON AND OR WITH VALUES JOIN WHEN THEN ELSE CASE AS OVER USING".split()
)
_NESTED = frozenset({"ARRAY", "MAP", "ROW"})
"""Types whose parts are in `<...>`."""
_CLOSERS = frozenset(
    (")", "]", ",", "FROM", "WHERE", "GROUP", "HAVING", "UNION", "JOIN", "ON", "USING", "ORDER", "")
)
"""What may follow neither a comma, nor AS, nor an operator; the empty keyword of the end is among them."""


def refuse_stray_tokens(part: Part) -> None:
    """Raises DdlError at the first token of a query or expression that cannot stand between its neighbours."""
    before, opened = Token("end", "", 0, 0), 0
    for token, after in pairwise(part.tokens):
        if token.keyword == "<" and before.keyword in _NESTED:
            opened += 1
        elif token.keyword == ">" and opened:
            opened -= 1
        elif not _is_legal(before, token, after):
            raise _unexpected(part, token)
        before = token
    _refuse_case_without_then(part)
    _refuse_star_of_a_table(part)


def _refuse_case_without_then(part: Part) -> None:
    whens = [t for t in part.tokens if t.keyword == "WHEN"]
    if len(whens) != sum(t.keyword == "THEN" for t in part.tokens):
        raise part.error("each WHEN of CASE has one THEN", whens[0].start if whens else part.tokens[0].start)


def _refuse_star_of_a_table(part: Part) -> None:
    for first, name, star in zip(part.tokens, part.tokens[1:], part.tokens[2:], strict=False):
        if first.keyword in ("FROM", "JOIN") and _is_name(name) and star.keyword == "*":
            raise _unexpected(part, star)


def _is_legal(before: Token, token: Token, after: Token) -> bool:
    word = token.keyword
    if token.kind == "symbol" and word not in _SYMBOLS:
        return False
    if word == "!":
        return after.keyword == "="
    if word == "|":
        return "|" in (before.keyword, after.keyword)
    if word == ".":
        return (
            _is_name(before) and before.keyword not in _CLAUSES and (_is_name(after) or after.keyword == "*")
        )
    if word == "AS":
        return not _starts(before) and not _ends(after, "SELECT", "WITH")
    if word == ",":
        return not _starts(before) and before.keyword not in ("DISTINCT", "ALL") and not _ends(after)
    if word in ("AND", "OR"):
        return not _starts(before)
    if word == "(" and before.keyword == "FILTER":
        return after.keyword == "WHERE"
    if word in ("+", "-", "/", "%", "=", "<", ">"):
        return not _ends(after, "AS")
    if word == "*":
        return _starts(before) or before.keyword in (".", "DISTINCT", "ALL") or not _ends(after, "AS")
    return True


def _is_name(token: Token) -> bool:
    return token.kind in ("name", "word")


def _starts(token: Token) -> bool:
    """Whether nothing but an expression, a table or a name can follow the token."""
    return token.kind == "end" or token.keyword in ("(", "[", ",") or token.keyword in _CLAUSES


def _ends(token: Token, *more: str) -> bool:
    """Whether nothing can come between an operator, comma or AS and the token; `more` are further such words."""
    return token.kind == "end" or (token.kind in ("word", "symbol") and token.keyword in (*_CLOSERS, *more))


def _unexpected(part: Part, token: Token) -> DdlError:
    return part.error(
        f"unexpected {token}; remove it, or quote names that are keywords with `...`", token.start
    )
