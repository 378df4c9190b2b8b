"""Texts of values: the usual ones are read, others are left to Spark's path.

Texts of dates and timestamps to Arrow.
"""

from __future__ import annotations

from datetime import date, datetime, timezone
from typing import Any

import pyarrow as pa
import pytest

from bridge.arrow_formats.arrow_types import arrow_type
from bridge.arrow_formats.text_values import dates, is_temporal, moments, text_row, typed_values, usual_values
from bridge.schema import ArrayType
from bridge.ways import NotThisWay
from tests.formats.support import row_type, scalar

_ROW = row_type(a=scalar("INT"), b=ArrayType(scalar("INT")), c=scalar("BOOLEAN"))


@pytest.mark.parametrize(
    ("type", "usual", "unusual"),
    [
        (scalar("TINYINT"), ["127", "-128", "007", "-0"], ["128", "+1", " 1", "1.0", "", "١"]),
        (scalar("BIGINT"), ["9223372036854775807"], ["9223372036854775808", "1e3"]),
        (scalar("DECIMAL", 5, 2), ["1", "-999.99", "0.5"], ["1000", "1.005", ".5", "1.", "1e2"]),
        (scalar("DOUBLE"), ["1", "-0.5", "1e10", "4.9E-324"], ["1e400", "NaN", "1d", "0x1", ".5"]),
        (scalar("BOOLEAN"), ["true", "false"], ["True", "1", ""]),
        (scalar("DATE"), ["2026-02-28"], ["2026-02-29", "2026-2-28"]),
        (scalar("TIMESTAMP", 3), ["2026-02-28 10:00:00.1234"], ["2026-02-28T10:00:00"]),
        (scalar("STRING"), ["", "x", "1"], []),
    ],
)
def test_usual_texts(type: Any, usual: list[str], unusual: list[str]) -> None:
    values = usual_values(pa.array([*usual, None]), type)
    assert (len(values), values.null_count) == (len(usual) + 1, 1)
    for text in unusual:
        with pytest.raises(pa.ArrowInvalid):
            usual_values(pa.array([*usual, text]), type)


def test_rows_of_texts() -> None:
    assert text_row(_ROW) == row_type(a=scalar("STRING"), b=ArrayType(scalar("INT")), c=scalar("STRING"))
    given = [{"a": "1", "b": [2], "c": "1"}, None, {"a": None, "b": None, "c": "true"}]
    texts = pa.array(given, arrow_type(text_row(_ROW)))
    rows = [{"a": 1, "b": [2], "c": False}, None, {"a": None, "b": None, "c": True}]
    assert typed_values(texts, _ROW, iso_8601=False).to_pylist() == rows
    lists = pa.array([given, None, []], arrow_type(ArrayType(text_row(_ROW))))
    assert typed_values(lists, ArrayType(_ROW), iso_8601=False).to_pylist() == [rows, None, []]
    with pytest.raises(NotThisWay, match="field 'a' has an unusual INT"):
        typed_values(pa.array([{"a": "x", "b": None, "c": None}], texts.type), _ROW, iso_8601=False)


_PLAIN, _UTC = scalar("TIMESTAMP", 6), scalar("TIMESTAMP_LTZ", 6)


def test_types() -> None:
    assert [is_temporal(scalar(n)) for n in ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "STRING")] == [
        True
    ] * 3 + [False]


def test_dates() -> None:
    texts = pa.array(["0001-01-01", None, "2020-02-29", "9999-12-31"])
    assert dates(texts).to_pylist() == [date(1, 1, 1), None, date(2020, 2, 29), date(9999, 12, 31)]
    assert dates(pa.nulls(2, pa.string())).to_pylist() == [None, None]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2020-2-9",
        "2021-02-29",
        "2020-02-30",
        "0000-01-01",
        "12020-01-01",
        "2020-02-29 ",
        "20200229",
        "2020/02/29",
    ],
)
def test_other_dates(text: str) -> None:
    with pytest.raises(pa.ArrowInvalid):
        dates(pa.array(["2020-02-29", None, text]))


@pytest.mark.parametrize(
    ("precision", "text", "micros"),
    [
        (6, "2020-02-29 12:00:00.123456", 123_456),
        (6, "2020-02-29 12:00:00.1", 100_000),
        (6, "2020-02-29 12:00:00.123456999", 123_456),
        (5, "2020-02-29 12:00:00.123456789", 123_450),
        (4, "2020-02-29 12:00:00.123456", 123_400),
        (3, "2020-02-29 12:00:00.1239", 123_000),
        (3, "2020-02-29 12:00:00.123", 123_000),
        (2, "2020-02-29 12:00:00.999", 990_000),
        (1, "2020-02-29 12:00:00.999", 900_000),
        (0, "2020-02-29 12:00:00.9", 0),
        (0, "2020-02-29 12:00:00", 0),
    ],
)
@pytest.mark.parametrize("year", [2020, 4, 1968, 9996])
def test_fractions_are_cut_to_the_precision(precision: int, text: str, micros: int, year: int) -> None:
    text, expected = text.replace("2020", f"{year:04}"), datetime(year, 2, 29, 12, 0, 0, micros)
    plain, utc = scalar("TIMESTAMP", precision), scalar("TIMESTAMP_LTZ", precision)
    assert moments(pa.array([text, None]), plain, iso_8601=False).to_pylist() == [expected, None]
    [instant] = moments(pa.array([text.replace(" ", "T") + "Z"]), utc, iso_8601=True).to_pylist()
    assert instant == expected.replace(tzinfo=timezone.utc)


@pytest.mark.parametrize(
    "text",
    [
        *[
            "",
            "2020-02-29",
            "2020-02-29 12:00",
            "2020-02-29T12:00:00",
            "2020-02-29 12:00:00.",
            "2020-02-29 24:00:00",
        ],
        *["2020-02-29 12:00:60", "2021-02-29 12:00:00", "0000-02-29 12:00:00", "12020-02-29 12:00:00"],
        *["2020-02-29 12:00:00 ", " 2020-02-29 12:00:00", "2020-02-29 12:00:00+01", "2020-02-29 12:00+01:00"],
        *["2020-02-29 12:00:00.1234567890", "2020-02-29 12:00:00.1234567x9", "2020-02-29 12:00:00,123"],
        *["2020-02-29 12:00:0\uff10", "2020-02-29 1:00:000", "2020-02-29\t12:00:00", "2020-02-29 12:00:00T"],
    ],
)
def test_other_timestamps(text: str) -> None:
    good = "2020-02-29 12:00:00"
    for type, other in ((_PLAIN, [good, None, text]), (_UTC, [good + "Z", None, text + "Z"])):
        with pytest.raises(pa.ArrowInvalid):
            moments(pa.array(other), type, iso_8601=False)


def test_the_zone_is_that_of_the_type() -> None:
    for type, text in (
        (_PLAIN, "2020-02-29 12:00:00Z"),
        (_UTC, "2020-02-29 12:00:00"),
        (_UTC, "2020-02-29 12:00:00ZZ"),
    ):
        with pytest.raises(pa.ArrowInvalid):
            moments(pa.array([text]), type, iso_8601=False)
    with pytest.raises(pa.ArrowInvalid):
        moments(pa.array(["2020-02-29T12:00:00", "2020-02-29 12:00:00"]), _PLAIN, iso_8601=True)
