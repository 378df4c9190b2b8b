"""What the rules of `delta.aggregate` make of values, in any portions, is what plain Python makes of them."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.column_rules import combined, folded
from bridge.schema import ColumnRule

TEXTS = st.sampled_from(["", "a", "B", "é", "zz", "\U0001f600"])
NUMBERS = st.integers(-(2**31), 2**31)
TYPES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "BIGINT": (pa.int64(), NUMBERS),
    "TINYINT": (pa.int8(), st.integers(-2, 2)),
    "DECIMAL": (pa.decimal128(38, 2), st.decimals(-(10**30), 10**30, places=2)),
    "DOUBLE": (pa.float64(), st.floats(-1, 1) | st.just(math.inf)),
    "STRING": (pa.string(), TEXTS),
    "DATE": (pa.date32(), st.dates()),
    "TIMESTAMP": (pa.timestamp("us"), st.datetimes(datetime.datetime(1, 1, 1))),
    "ARRAY<STRING>": (pa.list_(pa.string()), st.lists(st.none() | TEXTS, max_size=4)),
    "ARRAY<BIGINT>": (pa.list_(pa.int64()), st.lists(st.none() | st.integers(0, 3), max_size=4)),
}
LEGAL = {
    ColumnRule.FIRST: list(TYPES),
    ColumnRule.MIN: [name for name in TYPES if "ARRAY" not in name],
    ColumnRule.MAX: [name for name in TYPES if "ARRAY" not in name],
    ColumnRule.SUM: ["BIGINT", "TINYINT", "DECIMAL"],
    ColumnRule.COLLECT_SET: ["ARRAY<STRING>", "ARRAY<BIGINT>"],
}
Add = Callable[[Any, Any], Any]
PLAIN: dict[ColumnRule, Add] = {
    ColumnRule.FIRST: lambda one, _: one,
    ColumnRule.MIN: min,
    ColumnRule.MAX: max,
    ColumnRule.SUM: lambda one, other: one + other,
    ColumnRule.COLLECT_SET: lambda one, other: sorted({*one, *other}),
}


def plainly(rule: ColumnRule, values: list[Any]) -> Any:
    known = [value for value in values if value is not None]
    if rule is ColumnRule.COLLECT_SET:
        known = [sorted({item for item in items if item is not None}) for items in known]
    result = known[0] if known else None
    for value in known[1:]:
        result = PLAIN[rule](result, value)
    return result


@pytest.mark.parametrize("rule", ColumnRule)
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_drawn_values(rule: ColumnRule, data: st.DataObject) -> None:
    type, value = TYPES[data.draw(st.sampled_from(LEGAL[rule]))]
    drawn = data.draw(st.lists(st.tuples(st.integers(0, 3), st.none() | value), max_size=24))
    cut = data.draw(st.integers(0, len(drawn)))

    def parted(part: list[tuple[int, Any]]) -> pa.Array:
        groups = np.array([group for group, _ in part], np.int64)
        return folded(rule, pa.array([v for _, v in part], type), groups, 4)

    expected = [plainly(rule, [v for g, v in drawn if g == group]) for group in range(4)]
    whole = parted(drawn)
    assert (whole.type, whole.to_pylist()) == (type, expected)
    assert combined(rule, parted(drawn[:cut]), parted(drawn[cut:])).to_pylist() == expected


def test_nan_is_the_greatest_number() -> None:
    values, groups = pa.array([math.nan, 1.0, math.inf]), np.zeros(3, np.int64)
    assert folded(ColumnRule.MIN, values, groups, 1).to_pylist() == [1.0]
    assert math.isnan(folded(ColumnRule.MAX, values, groups, 1).to_pylist()[0])


def test_a_sum_that_does_not_fit_is_refused() -> None:
    """And one fits whose parts do not."""
    values = pa.array([2**62, 2**62, -(2**62)])
    assert folded(ColumnRule.SUM, values, np.zeros(3, np.int64), 1).to_pylist() == [2**62]
    with pytest.raises(pa.ArrowInvalid):
        folded(ColumnRule.SUM, values[:2], np.zeros(2, np.int64), 1)
    digits = pa.array([Decimal("9.99"), Decimal("0.01")], pa.decimal128(3, 2))
    with pytest.raises(pa.ArrowInvalid):
        folded(ColumnRule.SUM, digits, np.zeros(2, np.int64), 1)
