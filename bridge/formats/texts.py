"""Values as the texts that Java and Flink write for them, where Spark's own differ."""

from __future__ import annotations

from collections.abc import Callable

from bridge.formats.sql import Names, let
from bridge.schema import ScalarType

__all__ = ["PLAIN_PLACES", "decimal", "stripped", "timestamp"]

PLAIN_PLACES = 6
"""Decimal places up to which Java writes the smallest number without exponent."""


def timestamp(value: str, type: ScalarType) -> str:
    """`value` in Flink's SQL format: digits beyond the declared precision cut, no zeros at the end, UTC with Z."""
    text, precision = f"CAST({value} AS STRING)", type.parameters[0]
    if precision < 6:
        kept = rf"([.][0-9]{{{precision}}})[0-9]+" if precision else "[.][0-9]+"
        cut = f"regexp_replace({text}, '{kept}', '{'$1' if precision else ''}')"
        # Cutting .1004 to three digits leaves zeros that Flink does not write.
        text = f"regexp_replace({cut}, '[.]0*$|(?<=[.][0-9]{{1,6}})0+$', '')"
    return f"concat({text}, 'Z')" if type.name == "TIMESTAMP_LTZ" else text


def decimal(value: str, scale: int, names: Names) -> str:
    """Java's BigDecimal.stripTrailingZeros().toString() of a DECIMAL of `scale`."""
    # Under ANSI, which the bridge sets, Spark writes all digits and no exponent.
    return stripped(f"CAST({value} AS STRING)", scale, names)


def stripped(text: str, scale: int, names: Names) -> str:
    """The same of the plain text of a DECIMAL of `scale`, which has all its digits and no exponent."""
    if scale:
        text = f"regexp_replace({text}, '[.]?0+$', '')"

    def scientific(t: str) -> str:
        size = f"length(replace({t}, '-', ''))"
        big = _scientific(t, f"regexp_replace({t}, '^-|0+$', '')", lambda u: f"{size} - 1", names)
        tiny = _scientific(
            t, f"regexp_replace({t}, '^-?0[.]0+', '')", lambda u: f"length({u}) + 1 - {size}", names
        )
        return (
            f"CASE WHEN {t} RLIKE '^-?[1-9][0-9]*0$' THEN {big} "
            f"WHEN {t} RLIKE '^-?0[.]0{{{PLAIN_PLACES}}}' THEN {tiny} ELSE {t} END"
        )

    return let(names, text, scientific)


def _scientific(text: str, digits: str, exponent: Callable[[str], str], names: Names) -> str:
    def joined(u: str) -> str:
        sign = f"IF(startswith({text}, '-'), '-', '')"
        mantissa = f"IF(length({u}) > 1, concat(left({u}, 1), '.', substr({u}, 2)), {u})"
        power = f"concat(IF({exponent(u)} > 0, '+', ''), {exponent(u)})"
        return f"concat({sign}, {mantissa}, 'E', {power})"

    return let(names, digits, joined)
