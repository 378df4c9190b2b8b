"""The texts that Java and Flink write for values, where Spark writes others."""

from __future__ import annotations

from bridge.formats.sql import Names, let
from bridge.schema import ScalarType

PLAIN_PLACES = 6
"""Decimal places up to which Java writes the smallest number without an exponent."""


# The length of a timestamp without a fraction.
_SECONDS = len("2020-02-29 12:00:00")


def timestamp(text: str, type: ScalarType) -> str:
    """Return a timestamp's text in Flink's SQL format: digits beyond the declared precision cut, no zeros at the end, Z
    for UTC. `text` is Spark's cast of it to STRING, cheap to repeat."""
    precision = type.parameters[0]
    if precision < 6:
        fraction = rf"([.][0-9]{{{precision}}})[0-9]+" if precision else "[.][0-9]+"
        cut = f"regexp_replace({text}, '{fraction}', '{'$1' if precision else ''}')"
        # Cutting .1004 to three digits leaves zeros that Flink does not write.
        cut = f"regexp_replace({cut}, '[.]0*$|(?<=[.][0-9]{{1,6}})0+$', '')"
        # With a longer year the pattern is tried in vain.
        text = f"IF(octet_length({text}) > {_SECONDS + (precision and precision + 1)}, {cut}, {text})"
    return f"concat({text}, 'Z')" if type.name == "TIMESTAMP_LTZ" else text


def decimal(value: str, scale: int, names: Names) -> str:
    """Return Java's BigDecimal.stripTrailingZeros().toString() of a DECIMAL of `scale`."""
    # Under ANSI, which the bridge sets, Spark writes all digits and no exponent.
    return stripped(f"CAST({value} AS STRING)", scale, names)


def stripped(text: str, scale: int, names: Names) -> str:
    """Return the same for the plain text of a DECIMAL of `scale`, which has all its digits and no exponent."""
    return let(names, _shortened(text, scale), lambda t: _scientific(t, scale))


def _shortened(text: str, scale: int) -> str:
    """Return the plain text of a DECIMAL of `scale` without zeros at the end of its fraction."""
    return f"trim(TRAILING '.' FROM trim(TRAILING '0' FROM {text}))" if scale else text


def _scientific(text: str, scale: int) -> str:
    """Return a `_shortened` text, cheap to repeat, with an exponent where Java writes one."""
    size = f"length(trim(LEADING '-' FROM {text}))"
    digits = f"trim(LEADING '-' FROM trim(TRAILING '0' FROM {text}))"
    cases = f"WHEN endswith({text}, '0') AND {text} <> '0' THEN {_power(text, digits, f'{size} - 1', '+')} "
    if scale > PLAIN_PLACES:
        zeros = "0." + "0" * PLAIN_PLACES
        tiny = f"startswith({text}, '{zeros}') OR startswith({text}, '-{zeros}')"
        digits = f"trim(LEADING '-0.' FROM {text})"
        cases += f"WHEN {tiny} THEN {_power(text, digits, f'length({digits}) + 1 - {size}', '')} "
    return f"CASE {cases}ELSE {text} END"


def _power(text: str, digits: str, exponent: str, plus: str) -> str:
    sign = f"IF(startswith({text}, '-'), '-', '')"
    rest = f"IF(length({digits}) > 1, concat('.', substr({digits}, 2)), '')"
    return f"concat({sign}, left({digits}, 1), {rest}, 'E{plus}', {exponent})"
