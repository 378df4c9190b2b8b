"""Drawn expressions in one another, so that Flink also says what operands that are no columns give."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from bridge.expressions.signatures import SIGNATURES, Signature

_NUMBERS = ("INT", "BIGINT", "DECIMAL", "DOUBLE")
_COLUMNS: Mapping[str, Sequence[str]] = {
    "STRING": ("text", "text2", "chars", "numeral", "time_text"),
    "INT": ("i", "i2", "count"),
    "BIGINT": ("l", "l2"),
    "DECIMAL": ("m", "m2"),
    "DOUBLE": ("d", "d2"),
    "BOOLEAN": ("b", "b2"),
    "DATE": ("day",),
    "TIMESTAMP": ("ts",),
    "ARRAY": ("texts", "texts2"),
    "MAP": ("map", "map2"),
}
_OF_KINDS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("text", "part", "chars", "separator", "item", "time_text"), ("STRING",)),
    **dict.fromkeys(("count", "count2"), ("INT",)),
    **{"integer": ("INT", "BIGINT"), "seconds": ("INT",), "number": _NUMBERS, "exact": ("INT", "BIGINT")},
    **{"moment": ("TIMESTAMP",), "day": ("DATE", "TIMESTAMP"), "texts": ("ARRAY",), "map": ("MAP",)},
}
"""The types of an argument that may be another expression."""
_LONG_TEXTS = ("REPEAT", "LPAD", "RPAD")
"""Their counts are columns, as a text of two billion characters stops Flink."""
_CONSTANTS: Mapping[str, Sequence[str]] = {
    "digits": ("1", "0", "-1"),
    "group": ("0",),
    "regex": ("'l+'", "'[a-c]'", "'\\d'"),
    "replacement": ("'x'", "'$1'"),
    "pattern": ("'yyyy-MM-dd HH:mm:ss'", "'yyyy-MM-dd'"),
    "bits": ("256",),
    "flag": ("TRUE", "FALSE"),
}
_RESULTS = {"TIMESTAMP(3)": "TIMESTAMP", "ARRAY<STRING>": "ARRAY"}
_ANY = ("STRING", *_NUMBERS[:3], "BOOLEAN", "DATE", "TIMESTAMP")
_FORMS: Mapping[str, Sequence[str]] = {
    "STRING": (
        *("({STRING} || {STRING})", "TRIM({STRING})", "SUBSTRING({STRING} FROM {INT} FOR {INT})"),
        *(f"CAST({{{type}}} AS STRING)" for type in _ANY),
        *("{ARRAY}[1]", "{MAP}['a']", "MAP['l', {STRING}, 'a', {STRING}]['l']"),
    ),
    "INT": (
        *(
            "TRY_CAST({STRING} AS INT)",
            "CAST({BIGINT} AS INT)",
            "CAST({DOUBLE} AS INT)",
            "CAST({BOOLEAN} AS INT)",
        ),
        *("TIMESTAMPDIFF(DAY, {TIMESTAMP}, {TIMESTAMP})", "POSITION({STRING} IN {STRING})"),
    ),
    "BIGINT": (
        *("CAST({DECIMAL} AS BIGINT)", "({INT} + {BIGINT})", "TRY_CAST({STRING} AS BIGINT)"),
        *("EXTRACT(YEAR FROM {DATE})", "EXTRACT(HOUR FROM {TIMESTAMP})"),
    ),
    "DECIMAL": (
        *("({INT} * {DECIMAL})", "({DECIMAL} * {DECIMAL})", "({DECIMAL} / NULLIF({DECIMAL}, 0))"),
        *("CAST({BIGINT} AS DECIMAL(10, 2))", "TRY_CAST({STRING} AS DECIMAL(10, 2))", "CEILING({DECIMAL})"),
    ),
    "DOUBLE": ("({DOUBLE} / {DOUBLE})", "CAST({DECIMAL} AS DOUBLE)", "({DOUBLE} + {INT})"),
    "BOOLEAN": (
        *("({BOOLEAN} AND {BOOLEAN})", "({BOOLEAN} OR {BOOLEAN})", "(NOT {BOOLEAN})", "({BOOLEAN} IS TRUE)"),
        *("({STRING} LIKE '%l%')", "({STRING} IN ('hello', '', 'x'))", "({INT} BETWEEN {INT} AND {INT})"),
        *(f"({{{type}}} = {{{type}}})" for type in _ANY),
        *(f"({{{type}}} < {{{type}}})" for type in _ANY),
        *(f"({{{type}}} IS NULL)" for type in _ANY),
    ),
    "DATE": ("CAST({TIMESTAMP} AS DATE)", "({DATE} + INTERVAL '1' DAY)", "TRY_CAST({STRING} AS DATE)"),
    "TIMESTAMP": (
        *("CAST({DATE} AS TIMESTAMP(3))", "({TIMESTAMP} - INTERVAL '13' HOUR)", "FLOOR({TIMESTAMP} TO HOUR)"),
        *("TRY_CAST({STRING} AS TIMESTAMP(3))",),
    ),
    "ARRAY": ("ARRAY[{STRING}, {STRING}]",),
    "MAP": ("MAP['a', {STRING}, 'b', {STRING}]",),
}
_OF_NUMBERS = ("({0} + {0})", "({0} - {0})", "({0} * {0})", "ABS({0})", "(-{0})")
_OF_ALL = ("CASE WHEN {{BOOLEAN}} THEN {0} ELSE {0} END", "COALESCE({0}, {0})", "IF({{BOOLEAN}}, {0}, {0})")
_PLACE = re.compile("{(" + "|".join(_COLUMNS) + ")}")


def nested(count: int, seed: int) -> Iterator[str]:
    """Expressions of two or three levels over the columns of the corpus."""
    draw, forms = random.Random(f"{seed} nested"), _forms()
    for _ in range(count):
        wanted = draw.choice(list(_COLUMNS))
        yield _filled(draw, forms, draw.choice(forms[wanted]), draw.choice((1, 2)))


def _filled(draw: random.Random, forms: Mapping[str, Sequence[str]], form: str, below: int) -> str:
    """The form with an expression of so many levels in at least one place, a column or less levels in others."""
    places = len(_PLACE.findall(form))
    deep = draw.randrange(places) if places else 0
    seen = -1

    def fill(place: re.Match[str]) -> str:
        nonlocal seen
        seen += 1
        levels = below if seen == deep else draw.randint(0, below)
        if levels:
            return _filled(draw, forms, draw.choice(forms[place[1]]), levels - 1)
        return f"c_{draw.choice(_COLUMNS[place[1]])}"

    return _PLACE.sub(fill, form)


def _forms() -> Mapping[str, Sequence[str]]:
    """By the type of the result: operators, and calls whose arguments are of known types."""
    found: dict[str, list[str]] = defaultdict(list)
    for type, forms in _FORMS.items():
        found[type] += forms
        found[type] += [form.format(f"{{{type}}}") for form in (*_OF_NUMBERS * (type in _NUMBERS), *_OF_ALL)]
    for signature in SIGNATURES:
        for type, form in _calls(signature):
            found[type].append(form)
    return found


def _calls(signature: Signature) -> Iterator[tuple[str, str]]:
    for length in range(signature.least + signature.is_open, len(signature.kinds) + 1 + signature.is_open):
        kinds = signature.kinds_of(length)
        if not kinds or any(kind not in _OF_KINDS and kind not in _CONSTANTS for kind in kinds):
            continue
        if signature.name == "INSTR" and length > 2:
            continue  # takes constants only
        for first in _OF_KINDS.get(kinds[0], ("",)):
            result = first if signature.result in ("=1", "round") else signature.result
            result = _RESULTS.get(result, result)
            if result in _COLUMNS:
                rest = [_argument(signature.name, kind, length) for kind in kinds[1:]]
                yield result, f"{signature.name}({', '.join([f'{{{first}}}', *rest])})"


def _argument(name: str, kind: str, n: int) -> str:
    if kind in _CONSTANTS:
        return _CONSTANTS[kind][n % len(_CONSTANTS[kind])]
    return "c_count" if kind == "count" and name in _LONG_TEXTS else f"{{{_OF_KINDS[kind][0]}}}"
