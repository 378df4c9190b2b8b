"""Refuses parts of queries and expressions that Flink supports and this version does not, before they are parsed.

sqlglot does not parse all of them, and some it would parse as something else.

Names of functions whose result is another one when the same row is computed again.
"""

from __future__ import annotations

from collections.abc import Sequence

from bridge.ddl.part import Part
from bridge.ddl.tokens import Token

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
