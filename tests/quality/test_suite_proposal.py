"""The expectations of a proposed suite."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from bridge.quality.suite_proposal import ColumnFacts, propose_suite, suite_text


def kwargs_of(
    type: str, *columns: ColumnFacts, rows: int = 100, fresh: str | None = None
) -> list[dict[str, object]]:
    """The arguments of the proposed expectations of a type, without their column."""
    made = propose_suite("t", columns, rows=rows, key=["id"], event_time_column=fresh)["expectations"]
    return [
        {k: v for k, v in e["kwargs"].items() if k != "column"} for e in made if e["type"] == f"expect_{type}"
    ]


@pytest.mark.parametrize(
    ("low", "high", "range"),
    [
        ("0", "9843", (0, 20000)),
        ("1.5", "1.5", (0, 5)),
        ("-3", "70", (-10, 200)),
        ("-0.2", "-0.1", (-0.5, 0)),
        ("0", "0", (0, 0)),
        ("0.004", "0.0042", (0, 0.01)),
    ],
)
def test_ranges_have_a_margin_and_round_ends(low: str, high: str, range: tuple[float, float]) -> None:
    column = ColumnFacts("n", "IntegerType", 100, Decimal(low), Decimal(high))
    assert kwargs_of("column_values_to_be_between", column) == [
        {"min_value": range[0], "max_value": range[1]}
    ]


def test_value_sets_are_small_and_their_values_frequent(tmp_path: Path) -> None:
    def sets(values: tuple[str, ...], present: int) -> list[dict[str, object]]:
        return kwargs_of("column_values_to_be_in_set", ColumnFacts("s", "StringType", present, values=values))

    assert sets(("b", "a"), 20) == [{"value_set": ["a", "b"]}]
    assert sets(("b", "a"), 19) == [] and sets(("x" * 61,), 100) == []
    assert sets(tuple("abcdefghijklm"), 1000) == []


def test_not_null_holds_only_where_it_does_and_keys_have_no_range() -> None:
    some, all, key = (
        ColumnFacts("a", "LongType", 99),
        ColumnFacts("b", "LongType", 100),
        ColumnFacts("id", "LongType", 100, Decimal(1), Decimal(9)),
    )
    assert len(kwargs_of("column_values_to_not_be_null", some, all, key)) == 2
    assert kwargs_of("column_values_to_be_between", key) == []
    assert kwargs_of("column_values_to_not_be_null", ColumnFacts("a", "LongType", 0), rows=0) == []
    assert kwargs_of("column_values_to_be_of_type", some, ColumnFacts("a.b", "LongType", 9)) == [
        {"type_": "LongType"}
    ]


def test_a_suite_file_has_one_expectation_per_line() -> None:
    suite = propose_suite("t", [ColumnFacts("a", "LongType", 1)], rows=1, key=["a"], event_time_column=None)
    text = suite_text(suite)
    assert json.loads(text) == suite
    assert [line for line in text.splitlines() if '"type"' in line] == [
        line for line in text.splitlines() if line.startswith("    {")
    ]
