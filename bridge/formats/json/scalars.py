"""Scalars from marked tokens, by Flink's rules. Each expression is null for a token that Flink refuses."""

from __future__ import annotations

from collections.abc import Callable

from bridge.format_rules.json_options import JsonOptions
from bridge.formats.json.fast_path import temporal_value
from bridge.formats.json.shape import is_temporal
from bridge.formats.sql import Names, let, literal
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
_BASE64 = "^[A-Za-z0-9+/]*={0,2}$"


class Scalar:
    """SQL of one scalar. `marked` is a variable with a token other than null."""

    def __init__(self, options: JsonOptions, names: Names) -> None:
        self.options, self.names = options, names

    def value(self, marked: str, plain: str, type: ScalarType) -> str:
        """Return the value of `type`, or null where the token cannot be read as one."""
        if type.is_string:
            return f"IF({marked} RLIKE {literal(_CONTAINER)}, {plain}, {_text(marked)})"
        if type.name == "BOOLEAN":
            return f"lower({_trimmed(_text(marked))}) = 'true'"
        if is_temporal(type):
            return let(self.names, _text(marked), lambda t: temporal_value(t, type, self.options))
        if type.is_binary:
            return f"IF({_is_string(marked)}, {let(self.names, _spaceless(_text(marked)), _binary)}, NULL)"
        if type.name in ("FLOAT", "DOUBLE"):
            return self._matching(marked, _FLOATING, lambda t: f"regexp_replace({t}, '[fFdD]$', '')", type)
        if type.name == "DECIMAL":
            return self._matching(marked, _DECIMAL, lambda t: t, type)
        number = f"TRY_CAST({marked} AS {type.spark()})"
        if type.name in ("INT", "BIGINT"):
            number = f"IF({marked} RLIKE '[.eE]', {self._truncated(marked, type)}, {number})"
        else:  # Flink reads a fraction as TINYINT or SMALLINT with parseByte, parseShort: refused
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

    def _matching(self, marked: str, pattern: str, number: Callable[[str], str], type: ScalarType) -> str:
        return let(
            self.names,
            _trimmed(_text(marked)),
            lambda t: f"IF({t} RLIKE {literal(pattern)}, TRY_CAST({number(t)} AS {type.spark()}), NULL)",
        )


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
