"""Texts of dates and timestamps to Arrow, by the rules of Flink's formats (flink-formats-common, TimeFormats)."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from bridge.schema import ScalarType

_DAY = len("2020-02-29")
_SECOND = len("2020-02-29 12:00:00")
_MICROS = 6
_MICROSECOND = _SECOND + len(".") + _MICROS
_NANOS = r"[.][0-9]{7,9}$"
_YEAR_1_DAY, _YEAR_1_MICROS = -719_162, -62_135_596_800_000_000
_FLOOR = {
    0: ("second", 1),
    1: ("millisecond", 100),
    2: ("millisecond", 10),
    3: ("millisecond", 1),
    4: ("microsecond", 100),
    5: ("microsecond", 10),
}
"""The unit, and how many of it, for each precision."""


def is_temporal(type: ScalarType) -> bool:
    """Return whether `type` is a date or a timestamp."""
    return type.name in ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ")


def dates(texts: pa.StringArray) -> pa.Date32Array:
    """Return dates of texts such as 2020-02-29, of the years 1 to 9999. Raises ArrowInvalid for any other text."""
    if _other_lengths(texts, _DAY, _DAY):
        raise pa.ArrowInvalid("not a usual date")
    days = texts.cast(pa.date32())
    _check_years(days.view(pa.int32()), _YEAR_1_DAY)
    return days


def moments(texts: pa.StringArray, type: ScalarType, *, iso_8601: bool) -> pa.TimestampArray:
    """Return timestamps of texts such as 2020-02-29 12:00:00.123, of the years 1 to 9999.

    Between date and time is a T by `iso_8601`, else a space; TIMESTAMP_LTZ ends with Z. Up to nine digits of a second
    are cut to the precision of `type`. Raises ArrowInvalid for any other text, also where Flink reads it.
    """
    precision = type.parameters[0]
    zone = int(type.name == "TIMESTAMP_LTZ")
    if zone:
        if pc.all(pc.ends_with(texts, "Z")).as_py() is False:
            raise pa.ArrowInvalid("not in UTC")
        texts = pc.utf8_slice_codeunits(texts, 0, -1)
    # Arrow parses no letters but a T between date and time and a zone, and refuses a zone where the type has none.
    has_t = pc.match_substring(texts, "T")
    if (pc.all(has_t).as_py() is False) if iso_8601 else pc.any(has_t).as_py():
        raise pa.ArrowInvalid("another standard")
    if _other_lengths(texts, _SECOND, _MICROSECOND):
        if _other_lengths(texts, _SECOND, _MICROSECOND + 3):
            raise pa.ArrowInvalid("not a usual timestamp")
        is_short = pc.less_equal(pc.binary_length(texts), _MICROSECOND)
        if pc.all(pc.or_(is_short, pc.match_substring_regex(texts, _NANOS))).as_py() is False:
            raise pa.ArrowInvalid("not a usual timestamp")
        texts = pc.utf8_slice_codeunits(texts, 0, _MICROSECOND)
    times = texts.cast(pa.timestamp("us"))
    if precision < _MICROS and _other_lengths(texts, _SECOND, _SECOND + (precision and 1 + precision)):
        unit, multiple = _FLOOR[precision]
        times = pc.floor_temporal(times, multiple, unit)
    _check_years(times.view(pa.int64()), _YEAR_1_MICROS)
    return times.view(pa.timestamp("us", tz="UTC")) if zone else times


def _other_lengths(texts: pa.StringArray, shortest: int, longest: int) -> bool:
    found = pc.min_max(pc.binary_length(texts))
    low, high = found["min"].as_py(), found["max"].as_py()
    return low is not None and (low < shortest or high > longest)


def _check_years(values: pa.Array, first: int) -> None:
    earliest = pc.min(values).as_py()
    if earliest is not None and earliest < first:
        raise pa.ArrowInvalid("before the year 1")
