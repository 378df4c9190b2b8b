"""Bounds hold for every value, and say whether they are exact. Readers' view: tests/delta/test_file_statistics.py."""

from __future__ import annotations

import datetime
import json
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from bridge.lake.statistics import FileStatistics

UTC = datetime.timezone.utc
MOMENT = datetime.datetime(2024, 2, 29, 12, 0, 0, 123456)


def text(rows: pa.Table, columns: int) -> str:
    """Of the rows in parts of one."""
    found = FileStatistics(rows.column_names[:columns])
    for begin in range(rows.num_rows):
        found.counted(rows.slice(begin, 1))
    return found.text()


@pytest.mark.parametrize(
    ("type", "values", "low", "high", "tight"),
    [
        (pa.int64(), [3, None, -(2**63)], -(2**63), 3, True),
        (pa.string(), ["b", "", "é" * 32], "", "é" * 32, True),
        (pa.string(), ["a" * 33, "b"], "a" * 32, "b", False),
        (pa.string(), ["a", "b" * 33], "a", "b" * 32 + "\U0010ffff", False),
        (
            pa.date32(),
            [datetime.date(1, 1, 1), datetime.date(9999, 12, 31)],
            "0001-01-01",
            "9999-12-31",
            True,
        ),
        (pa.decimal128(15, 2), [Decimal("1.25"), Decimal("-3.00")], -3.0, 1.25, True),
        (pa.timestamp("us"), [MOMENT], "2024-02-29T12:00:00.123", "2024-02-29T12:00:00.124", False),
        (
            pa.timestamp("us", "UTC"),
            [MOMENT.replace(microsecond=5000, tzinfo=UTC)],
            "2024-02-29T12:00:00.005Z",
            "2024-02-29T12:00:00.005Z",
            True,
        ),
    ],
    ids=str,
)
def test_bounds(type: pa.DataType, values: list[Any], low: Any, high: Any, tight: bool) -> None:
    found = json.loads(text(pa.table({"v": pa.array(values, type)}), 1))
    assert found == {
        "numRecords": len(values),
        "minValues": {"v": low},
        "maxValues": {"v": high},
        "nullCount": {"v": values.count(None)},
        "tightBounds": tight,
    }


@pytest.mark.parametrize(
    ("type", "values"),
    [
        (pa.float64(), [1.0, math.nan]),
        (pa.decimal128(16, 0), [Decimal(1)]),
        (pa.binary(), [b"a"]),
        (pa.bool_(), [True]),
        (pa.int32(), [None]),
        (pa.string(), ["b" * 32 + "\U0010ffff" + "c"]),
        (pa.timestamp("us"), pa.array([2**62]).cast(pa.timestamp("us"))),
        (pa.date32(), pa.array([4_000_000], pa.int32()).cast(pa.date32())),
    ],
    ids=str,
)
def test_columns_without_bounds(type: pa.DataType, values: Any) -> None:
    column = values if isinstance(values, pa.Array) else pa.array(values, type)
    found = json.loads(text(pa.table({"v": column}), 1))
    assert (found["minValues"], found["maxValues"], found["numRecords"]) == ({}, {}, len(column))


def test_only_the_first_columns_have_statistics() -> None:
    found = json.loads(text(pa.table({"a": [1], "b": [2]}), 1))
    assert (found["minValues"], found["nullCount"]) == ({"a": 1}, {"a": 0})
