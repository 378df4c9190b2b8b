"""PARSE_URL, as java.net.URL parses: Spark's takes what java.net.URI parses, which are other texts."""

from __future__ import annotations

from sqlglot import exp

from bridge.expressions.call import Call
from bridge.expressions.template import spark

__all__ = ["parse_url"]

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
