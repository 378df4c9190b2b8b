"""Refuses what Flink supports in queries and this version does not, and stray tokens, before sqlglot parses them.

sqlglot does not parse all of it, and parses some as something else. NON_DETERMINISTIC names functions whose result
differs when the same row is computed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from bridge.ddl.part import Part
from bridge.ddl.tokens import Token
from bridge.errors import DdlError

# Not deterministic. CLOCKS are called without parentheses.
CLOCKS = frozenset({"CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"})
NON_DETERMINISTIC = CLOCKS | {
    *("PROCTIME", "NOW", "CURRENT_ROW_TIMESTAMP", "CURRENT_WATERMARK", "SOURCE_WATERMARK", "CURDATE"),
    *("RAND", "RAND_INTEGER", "RANDN", "RANDOM", "RANDSTR", "UNIFORM", "UUID", "SHUFFLE"),
    *("CURRENT_DATABASE", "CURRENT_CATALOG", "CURRENT_SCHEMA", "CURRENT_USER", "SESSION_USER", "USER"),
    *("CURRENT_TIMEZONE", "MONOTONICALLY_INCREASING_ID", "SPARK_PARTITION_ID", "INPUT_FILE_NAME"),
}


_WINDOWS = (
    "group by window_start and window_end of a window table function: FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(time), "
    "INTERVAL '10' MINUTES))"
)
_OF_WINDOWS = tuple(
    f"{window}_{bound}"
    for window in ("TUMBLE", "HOP", "SESSION")
    for bound in ("START", "END", "ROWTIME", "PROCTIME")
)
_SESSION = "its windows have no fixed bounds; use TUMBLE, HOP or CUMULATE"
_LIMIT = "a result that is kept up to date has no limit; use ROW_NUMBER() OVER (...) <= n"
_ONE_KEY = "group by one set of columns per INSERT"
_BAG = "compute it with a join, or with GROUP BY and HAVING"

# The words that start a part, its name, and what to do instead. `.` stands for any token.
_PARTS: tuple[tuple[str, str, str], ...] = (
    ("MATCH_RECOGNIZE (", "MATCH_RECOGNIZE", "match the rows before they come into the topic"),
    ("TABLE ( SESSION", "the window table function SESSION", _SESSION),
    ("SESSION (", "the window SESSION", _SESSION),
    *(
        (f"{name} (", f"the window {name} outside of FROM", _WINDOWS)
        for name in ("TUMBLE", "HOP", "CUMULATE", *_OF_WINDOWS)
    ),
    ("TABLE (", "a table function", "expand or compute the rows before they come into the topic"),
    ("LATERAL", "LATERAL", "write a join with an equality"),
    ("UNNEST (", "UNNEST", "expand the array before it comes into the topic"),
    (
        "FOR SYSTEM_TIME",
        "a temporal join (FOR SYSTEM_TIME AS OF)",
        "join the tables as they are now: JOIN ... ON",
    ),
    ("NATURAL", "NATURAL JOIN", "name the columns: JOIN ... USING (...)"),
    ("TABLESAMPLE", "TABLESAMPLE", "remove it"),
    ("INTERSECT", "INTERSECT", _BAG),
    ("EXCEPT", "EXCEPT", _BAG),
    ("MINUS", "MINUS", _BAG),
    ("GROUPING SETS", "GROUPING SETS", _ONE_KEY),
    ("ROLLUP (", "ROLLUP", _ONE_KEY),
    ("CUBE (", "CUBE", _ONE_KEY),
    ("EXISTS (", "a subquery in an expression (EXISTS)", "write a join"),
    ("WITHIN GROUP", "WITHIN GROUP", "remove it"),
    ("FETCH FIRST", "FETCH FIRST", _LIMIT),
    ("FETCH NEXT", "FETCH NEXT", _LIMIT),
    ("LIMIT .", "LIMIT", _LIMIT),
    (
        "ON CONFLICT DO",
        "ON CONFLICT",
        "the PRIMARY KEY of the sink is the key of the query; keep one row of each with ROW_NUMBER() OVER (...) = 1",
    ),
    ("SIMILAR TO", "SIMILAR TO", "write REGEXP(text, pattern)"),
    ("IS JSON", "IS JSON", "write JSON_EXISTS(text, path)"),
    ("IS NOT JSON", "IS JSON", "write NOT JSON_EXISTS(text, path)"),
    ("AT TIME ZONE", "AT TIME ZONE", "write CONVERT_TZ(text, zone, zone)"),
    *(
        (f"{name} (", f"the function {name}", "write CAST or TRY_CAST")
        for name in ("CONVERT", "TRY_CONVERT", "SAFE_CAST")
    ),
)


def refuse_parts(part: Part) -> None:
    """Raises an error with line and column for the first part that is not supported, and DdlError for functions whose
    result is another one when the same rows are computed again."""
    tokens = part.tokens
    for at, token in enumerate(tokens):
        if token.kind == "word" and not _is_field(tokens, at):
            _refuse_at(part, at)
        elif token.keyword == "{" and at and tokens[at - 1].text.endswith("$"):
            raise part.error(
                "${...} is replaced in the values of WITH and SET and in strings only, not in the text of a query",
                tokens[at - 1].start,
            )


def _refuse_at(part: Part, at: int) -> None:
    tokens = part.tokens
    for words, what, way_out in _PARTS:
        if _starts(tokens, at, words):
            raise part.unsupported(what, way_out, tokens[at].start)
    word, called = tokens[at].keyword, tokens[at + 1].keyword == "("
    if word in CLOCKS or (called and word in NON_DETERMINISTIC):
        raise part.error(
            f"{word} is not deterministic, but a row that is computed again must be the same; use a column of the "
            "source, such as the time of the record (METADATA FROM 'timestamp')",
            tokens[at].start,
        )


def _starts(tokens: Sequence[Token], at: int, words: str) -> bool:
    wanted = words.split()
    found = tokens[at : at + len(wanted)]
    return len(found) == len(wanted) and all(
        w in (t.keyword, ".") and t.kind != "end" for w, t in zip(wanted, found, strict=True)
    )


def _is_field(tokens: Sequence[Token], at: int) -> bool:
    """Whether a dot before the word makes it a name, like `t.limit`."""
    return at > 0 and tokens[at - 1].keyword == "."


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
        return not _starts_term(before) and not _ends(after, "SELECT", "WITH")
    if word == ",":
        return not _starts_term(before) and before.keyword not in ("DISTINCT", "ALL") and not _ends(after)
    if word in ("AND", "OR"):
        return not _starts_term(before)
    if word == "(" and before.keyword == "FILTER":
        return after.keyword == "WHERE"
    if word in ("+", "-", "/", "%", "=", "<", ">"):
        return not _ends(after, "AS")
    if word == "*":
        return _starts_term(before) or before.keyword in (".", "DISTINCT", "ALL") or not _ends(after, "AS")
    return True


def _is_name(token: Token) -> bool:
    return token.kind in ("name", "word")


def _starts_term(token: Token) -> bool:
    """Whether nothing but an expression, a table or a name can follow the token."""
    return token.kind == "end" or token.keyword in ("(", "[", ",") or token.keyword in _CLAUSES


def _ends(token: Token, *more: str) -> bool:
    """Whether nothing can come between an operator, comma or AS and the token; `more` are further such words."""
    return token.kind == "end" or (token.kind in ("word", "symbol") and token.keyword in (*_CLOSERS, *more))


def _unexpected(part: Part, token: Token) -> DdlError:
    return part.error(
        f"unexpected {token}; remove it, or quote names that are keywords with `...`", token.start
    )
