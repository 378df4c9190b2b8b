"""A system time is later than all that the table has, whatever the clock and the precision of statistics."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from bridge.delta.system_time import after, newest_of_files
from bridge.history_columns import History
from bridge.ways import NotThisWay

HISTORY = History.bitemporal()
AT = 1_767_225_600_123_000
"""2026-01-01T00:00:00.123Z in microseconds."""


def file(rows: int = 2, nulls: dict[str, int] | None = None, **most: str) -> dict[str, Any]:
    return {"stats": json.dumps({"numRecords": rows, "maxValues": most, "nullCount": nulls or {}})}


def test_the_clock_counts_unless_it_is_behind() -> None:
    began = time.time_ns() // 1000
    assert after(None) >= began and after(began - 1) >= began
    ahead = began + 3_600_000_000
    assert after(ahead) == ahead + 1


def test_statistics_may_be_cut_to_milliseconds() -> None:
    open_rows = {"__system_to": 2}
    files = [
        file(__system_from="2026-01-01T00:00:00.123Z", nulls=open_rows),
        file(__system_from="2025-12-31T23:00:00.000Z", __system_to="2026-01-01T00:00:00.122+00:00"),
    ]
    assert newest_of_files(files, HISTORY) == AT + 999
    assert newest_of_files(files[1:], HISTORY) == AT - 1
    assert newest_of_files([], HISTORY) is None


@pytest.mark.parametrize(
    ("of_file", "name"),
    [
        ({}, "__system_from"),
        (file(nulls={"__system_from": 0, "__system_to": 2}), "__system_from"),
        (file(__system_from="2026-01-01T00:00:00.123Z"), "__system_to"),
    ],
)
def test_a_file_without_them_is_left_to_spark(of_file: dict[str, Any], name: str) -> None:
    with pytest.raises(NotThisWay, match=f"has no statistics of '{name}'"):
        newest_of_files([of_file], HISTORY)
