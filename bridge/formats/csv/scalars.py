"""Scalars from texts, by Flink's rules (CsvToRowDataConverters). Each expression is null for a text that is refused.

Two rules are stricter than Flink's, which would store another value than the one that was sent: a decimal too
large for its type is refused (Flink: null), and so is a day that does not exist (Flink: 2018-02-31 is March 3rd
as DATE and February 28th as TIMESTAMP).
"""

from __future__ import annotations

from bridge.formats.csv.tokens import CONTROLS
from bridge.formats.json.fast_path import temporal_pattern
from bridge.formats.sql import Names, ascii_digits, let, literal
from bridge.schema import ScalarType

# Flink reads days of the years 1 to 9999 only. Those that it writes of other years are read here, too.
_DATE = r"\A(?:[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}|(?:-[0-9]{4}|[+-][0-9]{5,7})-[0-9]{2}-[0-9]{2})\z"
# Longer numbers and exponents would take BigDecimal minutes.
_DECIMAL = r"\A(?=[\s\S]{1,1000}\z)[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,3})?\z"
_NOT_FINITE = r"\A[\x00-\x20]*[+-]?(NaN|Infinity)[\x00-\x20]*\z"
_BASE64 = r"\A[A-Za-z0-9+/]*={0,2}\z"
_DELETE = "'\\u007f'"

_END = r"\z"
# The layout of timestamps; the cast demands digits everywhere but at the end.
_USUAL_DAY = r"\A(?!0000)....-..-."
_USUAL_TIME = "..:..:.[0-9]"
_USUAL_DECIMAL = r"\A[+-]?[0-9]{1,40}+(?:[.][0-9]{1,40}+)?(?:[eE][+-]?[0-9]{1,3})?\z"


def value(text: str, type: ScalarType, names: Names) -> str:
    """Return the value of `type` that `text`, cheap to repeat, names; null where `text` is null."""
    spark = type.spark()
    if type.is_string:
        return text
    if type.name == "BOOLEAN":
        lower = f"lower({_trimmed(text)}) = 'true'"
        return f"CASE WHEN {text} = 'true' THEN true WHEN {text} = 'false' THEN false ELSE {lower} END"
    if type.is_binary:
        return let(names, _trimmed(text), _binary)
    if type.name == "DATE":
        return f"IF({text} RLIKE {literal(_DATE)}, TRY_CAST({text} AS DATE), NULL)"
    if type.name in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return let(names, _trimmed(text), lambda t: _timestamp(t, type))
    if type.name == "DECIMAL":
        return let(
            names,
            ascii_digits(text),
            lambda t: f"IF({t} RLIKE {literal(_DECIMAL)}, TRY_CAST({t} AS {spark}), NULL)",
        )
    if type.name in ("FLOAT", "DOUBLE"):
        # Spark reads 'nan' and 'inf', too.
        words = f"contains({text}, 'n') OR contains({text}, 'N')"
        return f"IF(({words}) AND NOT {text} RLIKE {literal(_NOT_FINITE)}, NULL, TRY_CAST({text} AS {spark}))"
    # Spark trims one character more than Java.
    return f"IF(contains({text}, {_DELETE}), NULL, TRY_CAST({ascii_digits(text)} AS {spark}))"


def usual_value(text: str, type: ScalarType) -> str:
    """Return what `value` does, or null for an unusual text: cheaper, and without a variable."""
    cast = f"TRY_CAST({text} AS {type.spark()})"
    if type.is_string:
        return text
    if type.name == "BOOLEAN":
        return f"CASE WHEN {text} = 'true' THEN true WHEN {text} = 'false' THEN false END"
    if type.is_binary:
        return f"IF({_is_base64(text)}, TRY_TO_BINARY({text}, 'base64'), NULL)"
    if type.name == "DATE":
        return f"IF({text} RLIKE {literal(_USUAL_DAY + '[0-9]' + _END)}, {cast}, NULL)"
    if type.name in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        digits, zone = type.parameters[0], "Z" if type.name == "TIMESTAMP_LTZ" else ""
        fraction = f"(?:[.][0-9]{{1,{digits}}})?" if digits else ""
        layout = f"{_USUAL_DAY}. {_USUAL_TIME}{fraction}{zone}{_END}"
        return f"IF({text} RLIKE {literal(layout)}, {cast}, NULL)"
    if type.name == "DECIMAL":
        # The cast takes digits of any script, and spaces around them.
        plain = (
            f"octet_length({text}) <= 40 AND octet_length({text}) = length({text}) AND {text} >= '!' "
            f"AND right({text}, 1) BETWEEN '0' AND '9' AND NOT contains({text}, 'e') AND NOT contains({text}, 'E')"
        )
        return f"IF(({plain}) OR {text} RLIKE {literal(_USUAL_DECIMAL)}, {cast}, NULL)"
    if type.name in ("FLOAT", "DOUBLE"):
        return f"IF(contains({text}, 'n') OR contains({text}, 'N'), NULL, {cast})"
    return f"IF(contains({text}, {_DELETE}), NULL, {cast})"


def _trimmed(text: str) -> str:
    return f"trim(BOTH {literal(CONTROLS)} FROM {text})"


def _timestamp(text: str, type: ScalarType) -> str:
    """Return the timestamp, with digits beyond the declared precision cut."""
    exact, digits = text, type.parameters[0]
    if digits < 6:
        cut = rf"regexp_replace({text}, '([.][0-9]{{{digits}}})[0-9]+', '$1')"
        longest = len("2018-10-12 12:12:12.") + digits + (type.name == "TIMESTAMP_LTZ")
        exact = f"IF(length({text}) > {longest}, {cut}, {text})"
    matches = f"{text} RLIKE {literal(temporal_pattern(type, iso_8601=False))}"
    return f"IF({matches}, TRY_CAST({exact} AS {type.spark()}), NULL)"


def _binary(text: str) -> str:
    return f"IF({_is_base64(text)}, TRY_TO_BINARY({text}, 'base64'), NULL)"


def _is_base64(text: str) -> str:
    return f"length({text}) % 4 = 0 AND {text} RLIKE {literal(_BASE64)}"
