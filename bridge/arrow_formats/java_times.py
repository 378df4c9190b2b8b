"""Dates and timestamps as the texts that Spark makes of them, in any year that Spark has."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["date_texts", "moment_texts"]

_MICROS = 6
_SECOND = 10**_MICROS
_DAY = 86_400
_FIRST_DAY, _END_DAY = -719_162, 2_932_897
"""Days since 1970 of 0001-01-01 and of 10000-01-01: between them a year has four digits."""
_UNITS = {0: "s", 3: "ms", 6: "us"}


def date_texts(values: pa.Array) -> pa.Array:
    """Return the texts of DATEs, such as 2020-02-29; null stays null."""
    days = values.view(pa.int32())
    odd = _others(days, _FIRST_DAY, _END_DAY)
    if odd is None:
        return values.cast(pa.string())
    made = [_date(day) for day in days.filter(odd).to_pylist()]
    usual = pc.if_else(odd, pa.scalar(0, pa.int32()), days).view(pa.date32())
    return pc.replace_with_mask(usual.cast(pa.string()), odd, pa.array(made, pa.string()))


def moment_texts(values: pa.Array, precision: int) -> pa.Array:
    """Return the texts of timestamps, such as 2020-02-29 12:00:00.12, in UTC and without a zone; null stays null.

    Digits of a second beyond `precision` are cut, and zeros at its end are not written.
    """
    micros = values.view(pa.int64())
    floored, digits = _floored(micros, precision)
    odd = _others(floored, _FIRST_DAY * _DAY * _SECOND, _END_DAY * _DAY * _SECOND)
    if odd is None:
        return _usual(floored, digits)
    made = [_moment(moment) for moment in floored.filter(odd).to_pylist()]
    usual = _usual(pc.if_else(odd, pa.scalar(0, pa.int64()), floored), digits)
    return pc.replace_with_mask(usual, odd, pa.array(made, pa.string()))


def _floored(micros: pa.Array, precision: int) -> tuple[pa.Array, int]:
    """Return microseconds cut to `precision`, and how many digits (0, 3 or 6) the fraction of a second needs."""
    numbers = micros.fill_null(0).to_numpy() if micros.null_count else micros.to_numpy()
    rest = numbers % _SECOND
    if not rest.any():
        return micros, 0
    step = 10 ** (_MICROS - precision)
    cut = rest - rest % step
    made = pa.array(numbers - rest + cut, mask=micros.is_null().to_numpy(zero_copy_only=False))
    if not cut.any():
        return made, 0
    return made, 6 if (cut % 1000).any() else 3


def _usual(micros: pa.Array, digits: int) -> pa.Array:
    """Return texts of moments in the years 1 to 9999."""
    texts = micros.view(pa.timestamp("us")).cast(pa.timestamp(_UNITS[digits])).cast(pa.string())
    return pc.ascii_rtrim(pc.ascii_rtrim(texts, "0"), ".") if digits else texts


def _others(numbers: pa.Array, first: int, end: int) -> pa.Array | None:
    """Return which numbers are not from `first` up to `end`, exclusive; None where all are."""
    found = pc.min_max(numbers)
    low, high = found["min"].as_py(), found["max"].as_py()
    if low is None or (low >= first and high < end):
        return None
    return pc.or_(pc.less(numbers, first), pc.greater_equal(numbers, end)).fill_null(False)


def _moment(micros: int) -> str:
    seconds, fraction = divmod(micros, _SECOND)
    days, second = divmod(seconds, _DAY)
    minutes, hours = second // 60, second // 3600
    text = f"{_date(days)} {hours:02}:{minutes % 60:02}:{second % 60:02}"
    return f"{text}.{fraction:06}".rstrip("0") if fraction else text


def _date(days: int) -> str:
    year, month, day = _civil(days)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04}-{month:02}-{day:02}"


def _civil(days: int) -> tuple[int, int, int]:
    """Return year, month and day of the proleptic Gregorian calendar, whose year 0 is before year 1."""
    era, day_of_era = divmod(days + 719_468, 146_097)  # eras of 400 years begin with a March
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    day, month = day_of_year - (153 * shifted + 2) // 5 + 1, shifted + 3 if shifted < 10 else shifted - 9
    return year_of_era + era * 400 + (month <= 2), month, day
