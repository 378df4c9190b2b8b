"""Calls of functions, drawn from the function table, over columns whose values no function fails for."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from bridge.expressions.signatures import SIGNATURES, Signature

_CONSTANTS: Mapping[str, Sequence[str]] = {
    "part": ("'n'", "'b'", "''", "'-'"),
    "chars": ("'ab'", "' '"),
    "separator": ("','", "'--'"),
    "count": ("1", "2", "3", "-1"),
    "regex": ("'[a-n]'", "'(.)o'", "'x|$'"),
    "replacement": ("'<$0>'", "''"),
    "group": ("0",),
    "base64": ("'aGVsbG8='", "''"),
    "hex": ("'4142'",),
    "charset": ("'UTF-8'",),
    "url": ("'http://h:80/p?query=1#r'", "'a%20b'"),
    "urlpart": ("'HOST'", "'QUERY'"),
    "pairs": ("'a=1,b=2'", "''"),
    "bits": ("256", "512"),
    "numeral": ("'1'", "'x'", "'-1.5'"),
    "digits": ("0", "1"),
    "pattern": ("'yyyy-MM-dd'", "'HH:mm'"),
    "time_text": ("'2024-02-29 12:34:56'", "'2024-02-29'"),
    "seconds": ("0", "1700000000"),
    "zone": ("'UTC'", "'Asia/Tokyo'"),
    "json": ('\'{"a": {"b": 1}}\'',),
    "path": ("'$.a'", "'$.a.b'"),
    "unit": ("HOUR", "DAY", "MONTH"),
    "flag": ("TRUE", "FALSE"),
    "texts": ("CAST(ARRAY['b', 'a', 'b'] AS ARRAY<STRING>)", "CAST(ARRAY['n'] AS ARRAY<STRING>)"),
    "integers": ("ARRAY[3, 1, 2]",),
    "one": ("ARRAY['a']",),
    "map": ("MAP['a', '1', 'b', '2']",),
}
_COLUMNS: Mapping[str, Sequence[str]] = {
    "text": ("STRING",),
    "item": ("STRING",),
    "value": ("STRING",),
    "number": ("INT", "BIGINT", "DECIMAL(10, 2)"),
    "real": ("INT", "BIGINT", "DECIMAL(10, 2)"),
    "exact": ("INT", "BIGINT"),
    "integer": ("INT", "BIGINT"),
    "moment": ("TIMESTAMP(3)",),
    "day": ("TIMESTAMP(3)",),
}
"""The types of columns that an argument takes; all other arguments are constants."""
_LITERALS = {"STR_TO_MAP": ("','", "'='"), "TO_TIMESTAMP_LTZ": ("0",)}


def drawn_call(draw: random.Random, columns: Sequence[tuple[str, str]]) -> str:
    """A call as STRING, of some function of one or more of these columns. A DOUBLE becomes a FLOAT before: its last
    digit is that of the machine, as Java's Math leaves it open."""
    types = {type for _, type in columns}
    fit = [s for s in SIGNATURES if any(types.intersection(_COLUMNS.get(kind, ())) for kind in s.kinds)]
    chosen = draw.choice([s for s in fit if all(types.intersection(_COLUMNS.get(k, types)) for k in s.kinds)])
    call = _called(draw, chosen, columns)
    return f"CAST({f'CAST({call} AS FLOAT)' if chosen.result == 'DOUBLE' else call} AS STRING)"


def _called(draw: random.Random, signature: Signature, columns: Sequence[tuple[str, str]]) -> str:
    count = draw.randrange(signature.least, len(signature.kinds) + 1 + signature.is_open)
    kinds = signature.kinds_of(max(count, 1))
    literals = iter(_LITERALS.get(signature.name, ()))
    arguments = [next(literals) if kind == "literal" else _argument(draw, kind, columns) for kind in kinds]
    if signature.name == "MOD":
        arguments[1] = "7"
    if signature.name == "ATAN2":
        arguments[1] = arguments[0]  # Flink takes no DECIMAL beside another type
    return f"{signature.name}({', '.join(arguments)})"


def _argument(draw: random.Random, kind: str, columns: Sequence[tuple[str, str]]) -> str:
    if kind in _COLUMNS:
        return draw.choice([name for name, type in columns if type in _COLUMNS[kind]])
    return draw.choice(_CONSTANTS[kind])
