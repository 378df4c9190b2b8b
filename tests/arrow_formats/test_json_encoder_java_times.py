"""Dates and timestamps as Spark writes them; `test_record_encoder` compares drawn ones with Spark's."""

from __future__ import annotations

from datetime import date, timedelta

import pyarrow as pa
import pytest

from bridge.arrow_formats.json_encoder import date_texts, moment_texts

_NOON = 1_582_977_600_000_000


def _moments(*micros: int | None) -> pa.Array:
    return pa.array(micros, pa.int64()).view(pa.timestamp("us"))


@pytest.mark.parametrize(
    ("precision", "micros", "fraction"),
    [
        (6, 120_000, ".12"),
        (6, 1, ".000001"),
        (3, 100_400, ".1"),
        (3, 400, ""),
        (0, 999_999, ""),
        (5, 123_456, ".12345"),
    ],
)
def test_fractions_have_no_zeros_at_their_end(precision: int, micros: int, fraction: str) -> None:
    values = _moments(_NOON, None, _NOON + micros)
    assert moment_texts(values, precision).to_pylist() == [
        "2020-02-29 12:00:00",
        None,
        f"2020-02-29 12:00:00{fraction}",
    ]


def test_moments_before_1970_are_cut_to_the_one_before() -> None:
    assert moment_texts(_moments(-1), 3).to_pylist() == ["1969-12-31 23:59:59.999"]


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (-62_135_596_800_000_000, "0001-01-01 00:00:00"),
        (-62_135_596_800_000_001, "0000-12-31 23:59:59.999999"),
        (253_402_300_800_000_000, "+10000-01-01 00:00:00"),
        (2**63 - 1, "+294247-01-10 04:00:54.775807"),
        (-(2**63), "-290308-12-21 19:59:05.224192"),
    ],
)
def test_moments_of_years_with_other_digits(micros: int, text: str) -> None:
    assert moment_texts(_moments(None, _NOON, micros), 6).to_pylist() == [None, "2020-02-29 12:00:00", text]


def test_dates() -> None:
    days = [-719_163, -719_162, None, 2_932_896, 2_932_897]
    values = pa.array(days, pa.int32()).view(pa.date32())
    assert date_texts(values).to_pylist() == [
        "0000-12-31",
        "0001-01-01",
        None,
        "9999-12-31",
        "+10000-01-01",
    ]
    # Four centuries are one period of the calendar; a number out of range takes all days the slow way.
    shifted = date(2000, 1, 1) - date(1970, 1, 1)
    for day in range(0, 146_097, 37):
        here = date(2000, 1, 1) + timedelta(day)
        period = pa.array([shifted.days + day + 20 * 146_097], pa.int32()).view(pa.date32())
        assert date_texts(period).to_pylist() == [f"+{here.year + 8000}-{here:%m-%d}"]
