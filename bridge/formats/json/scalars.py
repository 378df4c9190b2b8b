"""Scalars from marked tokens, by Flink's rules. Each expression is null for a token that Flink refuses."""

from __future__ import annotations

from collections.abc import Callable

from bridge.format_rules.json_options import JsonOptions, Numbers
from bridge.formats.json.fast_path import temporal_value
from bridge.formats.json.shape import is_temporal
from bridge.formats.sql import Names, ascii_digits, let, literal, struct
from bridge.schema import ScalarType

__all__ = ["NULL", "STRING", "Scalar"]

STRING, NULL = "'\\u0001'", "'\\u0002'"
"""SQL literals of the marks: the first character of a string, and the token of null."""

_BOUNDS = {"INT": (-(2**31), 2**31 - 1), "BIGINT": (-(2**63), 2**63 - 1)}
_INTEGER = "^[+-]?[0-9]+$"
# Java's grammar without its hexadecimal form; a trailing d or f is part of it.
_FLOATING = "^[+-]?(NaN|Infinity|([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)$"
# Longer numbers and exponents would take BigDecimal minutes.
_DECIMAL = "^(?=.{1,1000}$)[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,3})?$"
_EDGES = r"^[\x00-\x20]+|[\x00-\x20]+$"
_SPACES = r"[\x00-\x20]"
# White space may be between groups of four characters, not in one.
_GROUPS = r"^(?:[\x00-\x20]*[^\x00-\x20]{4})*[\x00-\x20]*$"
_CONTAINER = r"^[{\[]"
_EMPTY_LIST = r"^\[\s*\]$"
_FRACTION = "^-?[0-9]+[.eE]|^-0$"
_BASE64 = "^[A-Za-z0-9+/]*={0,2}$"


class Scalar:
    """SQL of one scalar. `marked` is a variable with a token other than null."""

    def __init__(self, options: JsonOptions, names: Names) -> None:
        self.options, self.names = options, names
        self._of_tree = options.numbers is Numbers.TREES

    def value(self, marked: str, plain: str, type: ScalarType) -> str:
        """Return the value of `type`, or null where the token cannot be read as one."""
        number = self._number(marked)
        if is_temporal(type) or type.is_binary or type.name == "BOOLEAN" or number == marked:
            return self._value(marked, plain, type)
        return let(self.names, number, lambda m: self._value(m, plain, type))

    def _number(self, marked: str) -> str:
        if self._of_tree:
            return f"IF({marked} RLIKE {literal(_FRACTION)}, {_stripped(marked, self.names)}, {marked})"
        return f"IF({marked} = '-0', '0', {marked})" if self.options.numbers is Numbers.VALUES else marked

    def _value(self, marked: str, plain: str, type: ScalarType) -> str:
        if type.is_string:
            return f"IF({marked} RLIKE {literal(_CONTAINER)}, {plain}, {_text(marked)})"
        if type.name == "BOOLEAN":
            is_true = f"lower({_trimmed(_text(marked))}) = 'true'"
            # After an empty list Flink's parser loses its place in the document, and fails.
            lost = f"{marked} RLIKE {literal(_EMPTY_LIST)}"
            return is_true if self._of_tree else f"IF({lost}, NULL, {is_true})"
        if is_temporal(type):
            return let(self.names, _text(marked), lambda t: temporal_value(t, type, self.options))
        if type.is_binary:
            return f"IF({_is_string(marked)}, {let(self.names, _spaceless(_text(marked)), _binary)}, NULL)"
        if type.name in ("FLOAT", "DOUBLE"):
            return self._matching(marked, _FLOATING, lambda t: f"regexp_replace({t}, '[fFdD]$', '')", type)
        if type.name == "DECIMAL":
            return self._matching(marked, _DECIMAL, lambda t: t, type, trims=not self._of_tree)
        number = f"TRY_CAST({marked} AS {type.spark()})"
        if type.name in ("INT", "BIGINT"):
            number = f"IF({marked} RLIKE '[.eE]', {self._truncated(marked, type)}, {number})"
        else:  # Flink reads a number as TINYINT or SMALLINT with parseByte, parseShort: no fraction
            number = f"IF({marked} RLIKE '[.eE]', NULL, {number})"
        text = self._matching(marked, _INTEGER, lambda t: t, type)
        return f"CASE WHEN {_is_string(marked)} THEN {text} WHEN {marked} RLIKE '^-?[0-9]' THEN {number} END"

    def _truncated(self, marked: str, type: ScalarType) -> str:
        low, high = _BOUNDS[type.name]
        return let(
            self.names,
            f"CAST({marked} AS DOUBLE)",
            lambda d: f"IF({d} BETWEEN {low:.1f}D AND {high:.1f}D, TRY_CAST({d} AS {type.spark()}), NULL)",
        )

    def _matching(
        self, marked: str, pattern: str, number: Callable[[str], str], type: ScalarType, *, trims: bool = True
    ) -> str:
        def read(t: str) -> str:
            return f"IF({t} RLIKE {literal(pattern)}, TRY_CAST({number(t)} AS {type.spark()}), NULL)"

        text = _trimmed(_text(marked)) if trims else _text(marked)
        if type.name in ("FLOAT", "DOUBLE"):
            return let(self.names, text, read)
        return let(self.names, text, lambda t: let(self.names, ascii_digits(t), read))


def _stripped(number: str, names: Names) -> str:
    """Return a bare number as BigDecimal.stripTrailingZeros().toString() has it; null for an exponent beyond its."""

    def parts(of: str) -> str:
        return struct(
            all=f"trim(LEADING '0' FROM concat(regexp_extract({number}, '^-?([0-9]+)', 1), {of}.fraction))",
            scale=f"length({of}.fraction) - {of}.exponent",
        )

    def shown(of: str) -> str:
        digits = f"trim(TRAILING '0' FROM {of}.all)"
        scale = f"{of}.scale - length({of}.all) + length({digits})"
        return let(names, struct(d=digits, s=f"({scale})", n=f"length({digits})"), sign_and_text)

    def sign_and_text(of: str) -> str:
        exponent = f"{of}.n - 1 - {of}.s"
        point = f"concat(left({of}.d, INT({of}.n - {of}.s)), '.', right({of}.d, INT({of}.s)))"
        small = f"concat('0.', lpad({of}.d, INT({of}.s), '0'))"
        plain = f"CASE WHEN {of}.s = 0 THEN {of}.d WHEN {of}.n > {of}.s THEN {point} ELSE {small} END"
        first = f"IF({of}.n = 1, {of}.d, concat(left({of}.d, 1), '.', substr({of}.d, 2)))"
        scientific = f"concat({first}, 'E', IF({exponent} > 0, '+', ''), {exponent})"
        is_plain = f"{of}.s >= 0 AND {exponent} >= -6"
        return (
            f"IF({of}.n = 0, '0', concat(IF(startswith({number}, '-'), '-', ''), "
            f"IF({is_plain}, {plain}, {scientific})))"
        )

    exponent = f"TRY_CAST(regexp_extract({number}, '[eE](.+)', 1) AS INT)"
    read = struct(
        fraction=f"regexp_extract({number}, '[.]([0-9]+)', 1)",
        exponent=f"CAST(IF({number} RLIKE '[eE]', {exponent}, 0) AS BIGINT)",
    )
    text = let(names, read, lambda of: let(names, parts(of), shown))
    # Beyond DOUBLE, Jackson makes one of it all the same.
    infinite = f"abs(CAST({number} AS DOUBLE)) = DOUBLE('Infinity')"
    return f"IF({infinite}, IF(startswith({number}, '-'), '-Infinity', 'Infinity'), {text})"


def _is_string(marked: str) -> str:
    return f"startswith({marked}, {STRING})"


def _text(marked: str) -> str:
    """Return a scalar token's text, as Jackson's getText does."""
    return f"IF({_is_string(marked)}, substr({marked}, 2), {marked})"


def _trimmed(text: str) -> str:
    """Return `text` after Java's trim, which removes all characters up to the space."""
    return f"regexp_replace({text}, {literal(_EDGES)}, '')"


def _spaceless(text: str) -> str:
    return f"IF({text} RLIKE {literal(_GROUPS)}, regexp_replace({text}, {literal(_SPACES)}, ''), NULL)"


def _binary(text: str) -> str:
    is_base64 = f"length({text}) % 4 = 0 AND {text} RLIKE {literal(_BASE64)}"
    return f"IF({is_base64}, TRY_TO_BINARY({text}, 'base64'), NULL)"
