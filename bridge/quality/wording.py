"""Formats expected and observed values, counts, ages and sizes as text. Plain Python."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))
_MAX_LISTED = 12
_HUNDREDTH = 0.01
_BETWEEN_TEMPLATE = "greater than or equal to $min_value and less than or equal to $max_value"
_GROUPED_FROM = 10_000
_EXPECTED_TEXTS = {
    "expect_change_feed_to_give_table": "the same rows",
    "expect_history_to_be_whole": "each row ends where it may",
    "expect_key_to_be_unique": "each key once",
    "expect_keys_to_stay_in_their_partition": "each key in one partition",
    "expect_rows_to_refer_to_table": "a matching row for each reference",
    "expect_table_to_equal_topic": "the same rows",
}


def counted(number: int, noun: str) -> str:
    """Formats a count: `1 row`, `2,000 rows`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def age(seconds: float) -> str:
    """Formats a duration in its two largest units: `1 day 2 hours`, `40 seconds`, `under a second`."""
    if seconds < 1:
        return "under a second"
    rest, parts = int(seconds), list[tuple[int, str]]()
    for size, unit in _UNITS:
        count, rest = divmod(rest, size)
        if count or parts:
            parts.append((count, unit))
    return " ".join(counted(n, unit) for n, unit in parts[:2] if n)


def size(bytes: int) -> str:
    """Formats a size in powers of ten: `850 bytes`, `1.5 MB`."""
    for unit, letter in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if bytes >= unit:
            return f"{bytes / unit:,.1f} {letter}"
    return counted(bytes, "byte")


def moment(at: datetime, *, seconds: bool = False) -> str:
    """Formats a point in time: `6 May 2024, 07:08 UTC`."""
    return f"{at.day} {at:%B %Y, %H:%M:%S} UTC" if seconds else f"{at.day} {at:%b %Y, %H:%M} UTC"


def percent(part: float) -> str:
    """Formats a percentage with up to two decimals. Never rounds other values to 0 or 100."""
    if 0 < part < _HUNDREDTH:
        return f"under {_HUNDREDTH} %"
    if part in (0, 100):
        return f"{part:.0f} %"
    return f"{min(part, 100 - _HUNDREDTH):.2f}".rstrip("0").rstrip(".") + " %"


def listed(values: Any) -> str:
    """Joins up to twelve values with commas, and counts the others."""
    values = list(values)
    shown = ", ".join("null" if v is None else str(v) for v in values[:_MAX_LISTED])
    return shown + (f" and {len(values) - _MAX_LISTED:,} more" if len(values) > _MAX_LISTED else "")


def sentence(rendered: Sequence[Any] | None) -> str:
    """Converts Great Expectations' inline rendering to one sentence of plain text; "" where it has none."""
    if not rendered:
        return ""
    text = str(rendered[0].value.template or "").replace(
        _BETWEEN_TEMPLATE, "between $min_value and $max_value"
    )
    text = re.sub(r"(\$v__\d+) (?=\$v__)", r"\1, ", text)
    params: Mapping[str, Any] = rendered[0].value.params or {}
    for name in sorted(params, key=len, reverse=True):
        text = text.replace(f"${name}", _plain(params[name]["value"]))
    return " ".join(text.split()).rstrip(":. ") + "."


def expected_text(type: str, kwargs: Mapping[str, Any]) -> str:
    """Returns the expected value in a few words; "" where only the sentence describes it."""
    low, high = kwargs.get("min_value"), kwargs.get("max_value")
    text = ""
    if "max_age_seconds" in kwargs:
        text = f"at most {age(kwargs['max_age_seconds'])} old"
    elif type == "expect_column_values_to_not_be_null":
        text = "no nulls"
    elif type in _EXPECTED_TEXTS:
        text = _EXPECTED_TEXTS[type]
    elif "min_ratio" in kwargs or "max_ratio" in kwargs:
        text = f"{percent(100 * kwargs.get('min_ratio', 0))} to {percent(100 * kwargs.get('max_ratio', 1))}"
    elif low is not None and high is not None:
        text = f"{_plain(low)} to {_plain(high)}"
    elif low is not None or high is not None:
        text = f"at least {_plain(low)}" if high is None else f"at most {_plain(high)}"
    elif kwargs.get("value_set") is not None:
        text = ("none of: " if "_not_" in type else "") + listed(kwargs["value_set"])
    elif "value" in kwargs:
        text = _plain(kwargs["value"])
    mostly = kwargs.get("mostly")
    if isinstance(mostly, int | float) and mostly < 1:
        text = f"{text or 'true'}, in {percent(100 * mostly)} of rows"
    return text


def observed_text(result: Mapping[str, Any]) -> str:
    """Returns the observed value: a count or a single aggregate. Lists of values are counted, not shown."""
    if "observed_value" in result:
        value = result["observed_value"]
        if isinstance(value, list | tuple | set | dict):
            return counted(len(value), "value")
        return "" if value is None else _plain(value)
    if result.get("unexpected_count") is None:
        return ""
    checked = (result.get("element_count") or 0) - (result.get("missing_count") or 0)
    wrong = result["unexpected_count"]
    if not checked:
        return "no value to check"
    if not wrong:
        return "the one value passes" if checked == 1 else f"all {checked:,} values pass"
    return f"{wrong:,} of {counted(checked, 'value')} {'fails' if wrong == 1 else 'fail'}"


def _plain(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}" if abs(value) >= _GROUPED_FROM else str(value)
    return listed(value) if isinstance(value, list | tuple | set) else str(value)
