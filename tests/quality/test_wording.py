"""Texts of numbers, durations, expected and observed values."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.quality.wording import age, counted, expected_text, listed, observed_text, percent


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.4, "under a second"),
        (1, "1 second"),
        (59.9, "59 seconds"),
        (60, "1 minute"),
        (3_600, "1 hour"),
        (7_530, "2 hours 5 minutes"),
        (86_400, "1 day"),
        (86_430, "1 day"),
        (3 * 86_400 + 7_200, "3 days 2 hours"),
    ],
)
def test_age(seconds: float, words: str) -> None:
    assert age(seconds) == words


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (0, "0 %"),
        (0.00001, "under 0.01 %"),
        (0.01, "0.01 %"),
        (12.5, "12.5 %"),
        (99.9999, "99.99 %"),
        (100, "100 %"),
    ],
)
def test_percent_is_nothing_or_all_only_when_it_is(part: float, words: str) -> None:
    assert percent(part) == words


def test_counted() -> None:
    assert [counted(n, "row") for n in (0, 1, 2_000)] == ["0 rows", "1 row", "2,000 rows"]


def test_long_lists_are_cut() -> None:
    assert listed([1, None]) == "1, null"
    assert listed(range(1_014)).endswith("10, 11 and 1,002 more")


@pytest.mark.parametrize(
    ("type", "kwargs", "words"),
    [
        ("expect_column_values_to_be_between", {"min_value": 0.0, "max_value": 100_000.0}, "0 to 100,000"),
        ("expect_column_values_to_be_between", {"max_value": 2.5}, "at most 2.5"),
        ("expect_column_values_to_be_in_set", {"value_set": ["a", "b"]}, "a, b"),
        ("expect_column_values_to_not_be_in_set", {"value_set": ["a"]}, "none of: a"),
        ("expect_table_row_count_to_equal", {"value": 3}, "3"),
        ("expect_column_values_to_match_regex", {"regex": "x", "mostly": 0.5}, "true, in 50 % of rows"),
        ("expect_column_values_to_match_regex", {"regex": "x"}, ""),
    ],
)
def test_expected_text(type: str, kwargs: dict[str, Any], words: str) -> None:
    assert expected_text(type, kwargs) == words


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ({"element_count": 12_345, "missing_count": 0, "unexpected_count": 0}, "all 12,345 values pass"),
        ({"element_count": 3, "missing_count": 2, "unexpected_count": 0}, "the one value passes"),
        ({"element_count": 3, "missing_count": 3, "unexpected_count": 0}, "no value to check"),
        ({"element_count": 3, "unexpected_count": 2}, "2 of 3 values fail"),
        ({"observed_value": 12_345.0}, "12,345"),
        ({"observed_value": ["secret", "secret"]}, "2 values"),
        ({"observed_value": None}, ""),
        ({}, ""),
    ],
)
def test_observed_text(result: dict[str, Any], words: str) -> None:
    assert observed_text(result) == words
