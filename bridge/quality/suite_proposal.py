"""Proposes a first suite from a profile of a table's columns. Plain Python: numbers in, Great Expectations' JSON out.

The profiled data meets the proposal with a margin: limits are at least doubled, to round numbers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Any

MAX_SET_VALUES = 12
"""The maximum size of a value set, whose values must occur ten times each on average."""

_MIN_ROWS_PER_VALUE = 10
_MAX_VALUE_LENGTH = 60
_DAY = 86_400
_STEPS = (1, 2, 5, 10)


@dataclass(frozen=True)
class ColumnFacts:
    """The profile of a column. Fields are None where unknown, or not computed for the column's type."""

    name: str
    spark_type: str
    """The class name of its Spark type, e.g. LongType."""
    present: int
    """Number of rows in which it is not null."""
    low: Decimal | None = None
    high: Decimal | None = None
    values: tuple[str, ...] | None = None
    """All distinct values, where they are few."""
    newest_age_seconds: float | None = None


def propose_suite(
    name: str, columns: Sequence[ColumnFacts], *, rows: int, key: Sequence[str], event_time_column: str | None
) -> dict[str, Any]:
    """Returns the suite `name` as the contents of a suite file. `event_time_column` gets a freshness expectation."""
    expectations = [_expect("key_to_be_unique", column_list=list(key))] if key else []
    for column in (c for c in columns if is_supported_name(c.name)):
        expectations += _column_expectations(column, rows, column.name in key)
        if column.name == event_time_column and column.newest_age_seconds is not None:
            age = max(_DAY, int(_round_up(Decimal(column.newest_age_seconds))))
            expectations.append(_expect("table_to_be_fresh", column=event_time_column, max_age_seconds=age))
    return {"name": name, "expectations": expectations, "meta": {"proposed_from_rows": rows}}


def is_supported_name(name: str) -> bool:
    """Whether Great Expectations supports the column's name: it reads a dot as access to a field, and fails on
    backquotes."""
    return "." not in name and "`" not in name


def suite_text(suite: dict[str, Any]) -> str:
    """Returns the content of a suite file, with one expectation per line."""
    lines = ",\n".join("    " + json.dumps(e, ensure_ascii=False) for e in suite["expectations"])
    name, meta = (json.dumps(suite[part], ensure_ascii=False) for part in ("name", "meta"))
    return f'{{\n  "name": {name},\n  "expectations": [\n{lines}\n  ],\n  "meta": {meta}\n}}\n'


def _column_expectations(column: ColumnFacts, rows: int, is_key: bool) -> Iterator[dict[str, Any]]:
    name = column.name
    yield _expect("column_values_to_be_of_type", column=name, type_=column.spark_type)
    if rows and column.present == rows:
        yield _expect("column_values_to_not_be_null", column=name)
    if is_key:
        return
    if column.low is not None and column.high is not None:
        low = Decimal(0) if column.low >= 0 else -_round_up(-column.low)
        high = Decimal(0) if column.high <= 0 else _round_up(column.high)
        yield _expect(
            "column_values_to_be_between", column=name, min_value=_number(low), max_value=_number(high)
        )
    values = column.values
    if values and _is_value_set(values, column.present):
        yield _expect("column_values_to_be_in_set", column=name, value_set=sorted(values))


def _is_value_set(values: Sequence[str], present: int) -> bool:
    return (
        len(values) <= MAX_SET_VALUES
        and present >= _MIN_ROWS_PER_VALUE * len(values)
        and max(map(len, values)) <= _MAX_VALUE_LENGTH
    )


def _expect(type: str, **kwargs: Any) -> dict[str, Any]:
    return {"type": f"expect_{type}", "kwargs": kwargs}


def _round_up(value: Decimal) -> Decimal:
    """Returns the next of 1, 2, 5, 10, 20, 50, ... at or above twice `value`; 0 for 0 and below."""
    if value <= 0:
        return Decimal(0)
    doubled = 2 * value
    unit = Decimal(10) ** doubled.adjusted()
    return next(step * unit for step in _STEPS if step * unit >= doubled.quantize(unit / 100, ROUND_CEILING))


def _number(value: Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)
