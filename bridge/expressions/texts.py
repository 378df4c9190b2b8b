"""Builds Flink's functions of texts in Spark.

PARSE_URL parses as java.net.URL; Spark's as java.net.URI, which takes other texts.
"""

from __future__ import annotations

import re

from sqlglot import exp

from bridge.expressions.casts import to_text
from bridge.expressions.collections import LAST_OF_KEYS
from bridge.expressions.failures import failed
from bridge.expressions.patterns import Regex, regex
from bridge.expressions.template import Build, Call, Entries, Refusal, literal, spark

_AUTHORITY = r"(?:([^\\x40/?#]*)\\x40)?(\\[[^\\]/?#]*\\]|[^:\\x40/?#\\[]*)(?::[0-9]*)?"
"""An @ would be an operand of `spark`."""
_URL = (
    rf"'(?s)^(?!(?i:jar):(?![^#]*!/))(?i:(https?|ftp|file|jar|mailto)):(?://({_AUTHORITY})(?=[/?#]|$)|(?!//))"
    r"(([^?#]*)(?:[?]([^#]*))?)(?:#(.*))?$'"
)
_TRIMMED = r"REGEXP_REPLACE(@0, '^[\\x00-\\x20]+|[\\x00-\\x20]+$', '')"


def _group(number: int) -> str:
    return f"REGEXP_EXTRACT({_TRIMMED}, {_URL}, {number})"


_PARTS = {
    "HOST": _group(4),
    "PATH": _group(6),
    "QUERY": f"IF(CONTAINS({_group(5)}, '?'), {_group(7)}, NULL)",
    "REF": f"IF(CONTAINS(@0, '#'), {_group(8)}, NULL)",
    "PROTOCOL": f"LOWER({_group(1)})",
    "FILE": _group(5),
    "AUTHORITY": f"IF(@0 RLIKE '^[^:]*://', {_group(2)}, NULL)",
    "USERINFO": f"IF(CONTAINS({_group(2)}, CHR(64)), {_group(3)}, NULL)",
}
_KEY = "IF(@0 RLIKE CONCAT('(&|^)', @1, '='), REGEXP_EXTRACT(@0, CONCAT('(&|^)', @1, '=([^&]*)'), 2), NULL)"


def parse_url(call: Call) -> exp.Expr:
    """Returns a part of a URL, or the value of a key of its query; NULL for a text that is none."""
    url, part, *key = call.arguments
    wanted = call.constant(1)
    if wanted is not None:
        found = _PARTS.get(wanted, "CAST(NULL AS STRING)")
    else:
        found = f"CASE @1 {' '.join(f'WHEN {name!r} THEN {text}' for name, text in _PARTS.items())} END"
    made = spark(f"CASE WHEN {_TRIMMED} RLIKE {_URL} THEN {found} END", url, part)
    if not key:
        return made
    return spark(f"IF(@2 = 'QUERY', {_KEY}, NULL)", made, key[0], part)


_QUOTED = r"CONCAT('\\Q', REPLACE(@1, '\\E', '\\E\\\\E\\Q'), '\\E')"
_REPLACEMENT = r"REPLACE(REPLACE(@2, '\\', '\\\\'), '$', '\\$')"
"""A text as REGEXP_REPLACE of Spark takes it: there, a backslash and a dollar mean something, in Flink they do not."""


def substring(text: exp.Expr, start: exp.Expr, length: exp.Expr | None = None) -> exp.Expr:
    """Returns SUBSTRING. It is empty if it would begin before the text, and NULL if its length is negative."""
    first, size = (_integer(e) for e in (start, length))
    if first is not None and first >= 0 and (length is None or (size is not None and size >= 0)):
        return exp.Anonymous(
            this="SUBSTRING", expressions=[e for e in (text, start, length) if e is not None]
        )
    if length is None:
        return spark("IF(@1 < 0 AND @1 < -CHAR_LENGTH(@0), '', SUBSTRING(@0, @1))", text, start)
    return spark(
        "CASE WHEN @2 < 0 THEN NULL WHEN @1 < 0 AND @1 < -CHAR_LENGTH(@0) AND @2 IS NOT NULL THEN '' "
        "ELSE SUBSTRING(@0, @1, @2) END",
        *(text, start, length),
    )


def overlay(text: exp.Expr, other: exp.Expr, start: exp.Expr, length: exp.Expr | None = None) -> exp.Expr:
    """Returns OVERLAY, which leaves the text as it is where it does not begin in it."""
    size = spark("CHAR_LENGTH(@0)", other) if length is None else length
    return spark(
        "CASE WHEN @3 IS NULL OR @1 IS NULL THEN NULL WHEN @2 <= 0 OR @2 > CHAR_LENGTH(@0) THEN @0 WHEN @3 > "
        "CHAR_LENGTH(@0) - @2 OR @3 <= 0 THEN CONCAT(LEFT(@0, @2 - 1), @1) ELSE CONCAT(LEFT(@0, @2 - 1), @1, "
        "SUBSTRING(@0, @2 + @3)) END",
        *(text, other, start, size),
    )


def _integer(node: exp.Expr | None) -> int | None:
    """A constant integer; None for all else."""
    text = literal(node) if node is not None else None
    return int(text) if text is not None and text.lstrip("-").isdecimal() else None


def _concatenated(call: Call) -> exp.Expr:
    values = [to_text(a, t) for a, t in zip(call.arguments, call.types, strict=True)]
    return exp.Anonymous(this=call.name, expressions=values)


def _replaced(call: Call) -> exp.Expr:
    if call.constant(1):
        return exp.Anonymous(this="REPLACE", expressions=list(call.arguments))
    return spark(f"IF(@1 = '', REGEXP_REPLACE(@0, '', {_REPLACEMENT}), REPLACE(@0, @1, @2))", *call.arguments)


def _regexp_replace(call: Call) -> exp.Expr:
    regex(call.constant(1))
    constant = call.constant(2)
    is_plain = constant is not None and not set(constant) & {"\\", "$"}
    return spark(f"REGEXP_REPLACE(@0, @1, {'@2' if is_plain else _REPLACEMENT})", *call.arguments)


def _regexp_extract(call: Call) -> exp.Expr:
    pattern = regex(call.constant(1))
    group = call.number(2, "the group") if len(call.arguments) > 2 else 0
    if not 0 <= group <= pattern.groups:
        return exp.cast(exp.null(), "STRING", dialect="spark")
    return _matched(pattern, group, call)


def _matched(pattern: Regex, group: int, call: Call) -> exp.Expr:
    """A group of the first match. Where there is none, or the group takes no part, Spark has an empty text, Flink
    NULL."""
    made = f"REGEXP_EXTRACT(@0, @1, {group})"
    if not pattern.may_be_empty(group):
        return spark(f"NULLIF({made}, '')", *call.arguments[:2])
    if group and pattern.may_be_absent(group):
        raise Refusal(
            f"group {group} of {pattern.text!r} may be absent or empty, which Spark does not tell apart; let it "
            "have a character"
        )
    return spark(f"CASE WHEN REGEXP_LIKE(@0, @1) THEN {made} END", *call.arguments[:2])


def _regexp_extract_all(call: Call) -> exp.Expr:
    pattern = regex(call.constant(1))
    group = call.number(2, "the group") if len(call.arguments) > 2 else 1
    if not 0 <= group <= pattern.groups:
        return exp.cast(exp.null(), "ARRAY<STRING>", dialect="spark")
    if group and pattern.may_be_absent(group):
        raise Refusal(
            f"group {group} of {pattern.text!r} may be absent, which Spark does not say; let it be there"
        )
    return spark(f"REGEXP_EXTRACT_ALL(@0, @1, {group})", *call.arguments[:2])


def _with_regex(text: str) -> Build:
    def build(call: Call) -> exp.Expr:
        regex(call.constant(1))
        return spark(text, *call.arguments)

    return build


def _regexp(call: Call) -> exp.Expr:
    regex(call.constant(1))
    # An empty pattern matches nothing in Flink.
    return spark(
        "REGEXP_LIKE(@0, @1)" if call.constant(1) else "IF(@0 IS NULL, NULL, FALSE)", *call.arguments
    )


_LOCATE = "IF(@2 IS NULL, NULL, LOCATE(@1, @0, IF(@2 = -2147483648, 2147483647, GREATEST(@2, 1))))"
"""The least INT is behind the end in Flink."""
_SPACES = r"'[\\s\\x1c-\\x1f\\p{Z}&&[^\\xa0\\u2007\\u202f]]'"
"""Character.isWhitespace of Java."""


def _position(call: Call) -> exp.Expr:
    """INSTR and LOCATE, whose search may begin behind the first character, INSTR's at a later occurrence."""
    text, part, *more = call.arguments
    if call.name == "LOCATE":
        text, part = part, text
        return spark(_LOCATE if more else "LOCATE(@1, @0)", text, part, *more)
    start = call.number(2, "the position") if more else 1
    times = call.number(3, "the occurrence") if len(more) > 1 else 1
    if start < 1 or times < 1:
        raise Refusal("the position and the occurrence of INSTR begin at 1")
    found = spark(f"LOCATE(@1, @0, {start})", text, part)
    for _ in range(times - 1):
        found = spark(
            "CASE WHEN @2 = 0 THEN 0 WHEN @2 > 0 THEN LOCATE(@1, @0, @2 + 1) END", text, part, found
        )
    return found


def _split(call: Call) -> exp.Expr:
    if call.constant(1):  # FILTER is interpreted, and so would be all expressions beside it
        return spark("IF(@0 = '', CAST(ARRAY() AS ARRAY<STRING>), @1)", call.arguments[0], _parts(call))
    return spark(
        "IF(@1 IS NULL, NULL, IF(@0 = '' OR @1 = '', FILTER(SPLIT(@0, ''), p -> p <> ''), @2))",
        *call.arguments,
        _parts(call),
    )


def _split_index(call: Call) -> exp.Expr:
    text, separator, index = call.arguments
    parts = _parts(call)
    if not call.constant(1):
        parts = spark(f"IF(@1 = '', SPLIT(@0, {_SPACES}), @2)", text, separator, parts)
    return spark("IF(@1 < 0 OR @0 = '', NULL, TRY_ELEMENT_AT(@2, TRY_ADD(@1, 1)))", text, index, parts)


def _parts(call: Call) -> exp.Expr:
    """The parts of a text between separators, which may not be empty."""
    separator = call.constant(1)
    if separator:
        return spark("SPLIT(@0, @1)", call.arguments[0], exp.Literal.string(re.escape(separator)))
    return spark(f"SPLIT(@0, {_QUOTED})", *call.arguments[:2])


def _elt(call: Call) -> exp.Expr:
    count = len(call.arguments) - 1
    whole = exp.Anonymous(this="ELT", expressions=list(call.arguments))
    return spark(f"IF(@0 BETWEEN 1 AND {count}, @1, NULL)", call.arguments[0], whole)


def _sha2(call: Call) -> exp.Expr:
    if call.name == "SHA2":
        bits = call.constant(1)
        if bits not in ("224", "256", "384", "512"):
            raise Refusal("the bits of SHA2 must be a constant: 224, 256, 384, 512")
        return spark(f"SHA2(@0, {bits})", call.arguments[0])
    return spark(f"SHA2(@0, {call.name.removeprefix('SHA')})", call.arguments[0])


def _pairs(call: Call) -> exp.Expr:
    separators = [call.constant(1), call.constant(2)] if len(call.arguments) > 1 else [",", "="]
    if None in separators:
        raise Refusal("the separators of STR_TO_MAP must be constants")
    for text in separators:
        regex(text)
    entries, between = (exp.Literal.string(text) for text in separators)
    # Empty parts are none.
    parts = spark("FILTER(SPLIT(@0, @1), p -> p <> '')", call.arguments[0], entries)
    items = [
        spark(f"TRANSFORM(@0, p -> TRY_ELEMENT_AT(SPLIT(p, @1, 2), {n}))", parts, between) for n in (1, 2)
    ]
    return spark(LAST_OF_KEYS, *items)


ENTRIES: Entries = {
    "ASCII": "CASE WHEN ASCII(@0) < 128 THEN ASCII(@0) ELSE CAST(CONV(LEFT(HEX(@0), 2), 16, 10) AS INT) - 256 END",
    "CONCAT": _concatenated,
    "CONCAT_WS": _concatenated,
    "ELT": _elt,
    "FROM_BASE64": (
        r"COALESCE(IF(@0 RLIKE '\\s', NULL, MAKE_VALID_UTF8(CAST(TRY_TO_BINARY(@0, 'base64') AS STRING))), "
        f"IF(@0 IS NULL, NULL, {failed('a text that is no base64', 'STRING')}))"
    ),
    "INSTR": _position,
    "IS_ALPHA": "COALESCE(REGEXP_LIKE(@0, '^\\\\p{L}+$'), FALSE)",
    "IS_DECIMAL": r"TRY_CAST(REGEXP_REPLACE(@0, '\\p{Nd}', '1') AS DOUBLE) IS NOT NULL",
    "IS_DIGIT": r"COALESCE(REGEXP_LIKE(@0, '^\\p{Nd}+$'), FALSE)",
    "LOCATE": _position,
    "LPAD": "CASE WHEN @1 < 0 OR @2 = '' THEN NULL ELSE LPAD(@0, @1, @2) END",
    "LTRIM": {1: "LTRIM(@0)", 2: "TRIM(LEADING @1 FROM @0)"},
    "PARSE_URL": parse_url,
    "REGEXP": _regexp,
    "REGEXP_COUNT": _with_regex("REGEXP_COUNT(@0, @1)"),
    "REGEXP_EXTRACT": _regexp_extract,
    "REGEXP_EXTRACT_ALL": _regexp_extract_all,
    "REGEXP_INSTR": _with_regex("REGEXP_INSTR(@0, @1)"),
    "REGEXP_REPLACE": _regexp_replace,
    "REGEXP_SUBSTR": lambda call: _matched(regex(call.constant(1)), 0, call),
    "REPLACE": _replaced,
    "RPAD": "CASE WHEN @1 < 0 OR @2 = '' THEN NULL ELSE RPAD(@0, @1, @2) END",
    "RTRIM": {1: "RTRIM(@0)", 2: "TRIM(TRAILING @1 FROM @0)"},
    **dict.fromkeys(("SHA2", "SHA224", "SHA256", "SHA384", "SHA512"), _sha2),
    "SPLIT": _split,
    "SPLIT_INDEX": _split_index,
    "STR_TO_MAP": _pairs,
    "TO_BASE64": r"REPLACE(BASE64(@0), '\r\n', '')",  # Spark breaks lines after 76 characters
    "TRANSLATE": "IF(@1 IS NULL, @0, TRANSLATE(@0, @1, COALESCE(@2, '')))",
    "UNHEX": "IF(LENGTH(@0) % 2 = 1, UNHEX(CONCAT('00', SUBSTRING(@0, 2))), UNHEX(@0))",
    "URL_DECODE": "TRY_URL_DECODE(@0)",
}
