"""Aggregates of numbered groups are those of Python; sums of integers wrap, and one of a DECIMAL that might overflow is
not computed."""

from __future__ import annotations

import random
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bridge.pipelines.scripts.driver_groups import aggregated
from bridge.sql.plain_aggregates import PlainFunction as Function
from bridge.ways import NotThisWay

LEAST, GREATEST = -(2**63), 2**63 - 1
TEXTS = ["", "a", "Z", "é", "\uffff", "\U0001f600", "\0", "ab"]
"""Of the last but one and its neighbours: UTF-16 has another order than bytes."""
BOUNDED: dict[str, tuple[pa.DataType, list[Any]]] = {
    "integers": (pa.int64(), [LEAST, GREATEST, 0, None]),
    "tiny": (pa.int8(), [-128, 127, None]),
    "texts": (pa.string(), [*TEXTS, None]),
    "truths": (pa.bool_(), [True, False, None]),
    "days": (pa.date32(), [date(1, 1, 1), date(9999, 12, 31), None]),
    "moments": (
        pa.timestamp("us", "UTC"),
        [datetime(1600, 2, 29, tzinfo=timezone.utc), datetime(9999, 1, 1, tzinfo=timezone.utc), None],
    ),
    "prices": (pa.decimal128(38, 2), [Decimal(f"{sign}{'9' * 36}.99") for sign in ("", "-")] + [None]),
}


def drawn(draw: random.Random, type: pa.DataType, values: list[Any], count: int) -> pa.ChunkedArray:
    cut = draw.randrange(count + 1)
    given = [draw.choice(values) for _ in range(count)]
    return pa.chunked_array([pa.array(given[:cut], type), pa.array(given[cut:], type)])


def order(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", BOUNDED)
def test_counts_and_bounds(name: str, seed: int) -> None:
    draw = random.Random(seed)
    groups = np.array(draw.sample([0, 1, 2, *(draw.randrange(3) for _ in range(9))], 12))
    values = drawn(draw, *BOUNDED[name], 12)
    functions = (Function.COUNT_ROWS, Function.COUNT, Function.MIN, Function.MAX)
    found = aggregated({f.value: (f, None if f is functions[0] else values) for f in functions}, groups, 3)
    for group in range(3):
        own = [v for v, g in zip(values.to_pylist(), groups, strict=True) if g == group]
        some = [v for v in own if v is not None]
        bounds = [min(some, key=order), max(some, key=order)] if some else [None, None]
        assert [found[f.value][group].as_py() for f in functions] == [len(own), len(some), *bounds]
    assert found["MIN"].type == values.type


@pytest.mark.parametrize("type", [pa.int8(), pa.int32(), pa.int64(), pa.decimal128(28, 3)], ids=str)
def test_sums_in_the_order_of_the_groups(type: pa.DataType) -> None:
    values = pa.chunked_array([pa.array([5, None, 100, 100, -7, None], pa.int64()).cast(type, safe=False)])
    found = aggregated({"s": (Function.SUM, values)}, np.array([2, 1, 0, 0, 2, 1]), 3)["s"]
    assert found.to_pylist() == [200, None, -2], "no values have no sum"
    assert found.type == (pa.decimal128(38, 3) if pa.types.is_decimal(type) else pa.int64())


def test_no_rows_have_no_groups() -> None:
    none = pa.chunked_array([pa.array([], pa.int64())])
    columns = {"n": (Function.COUNT_ROWS, None), "s": (Function.SUM, none), "m": (Function.MAX, none)}
    found = aggregated(columns, np.empty(0, np.int64), 0)
    assert {name: len(values) for name, values in found.items()} == {"n": 0, "s": 0, "m": 0}
    assert aggregated({}, np.array([0, 0]), 1) == {}


@pytest.mark.parametrize("seed", range(30))
def test_sums_of_integers_wrap(seed: int) -> None:
    draw = random.Random(seed)
    ends = [GREATEST, LEAST, GREATEST // 2, GREATEST // 2 + 1, LEAST // 2, 1, -1, 0, None]
    given = [draw.choice(ends if seed % 3 else ends[2:]) for _ in range(draw.choice([1, 2, 4]))]
    values = pa.chunked_array([pa.array(given, pa.int64())])
    found = aggregated({"s": (Function.SUM, values)}, np.zeros(len(given), np.int64), 1)
    some = [v for v in given if v is not None]
    wrapped = (sum(some) - LEAST) % 2**64 + LEAST
    assert found["s"].to_pylist() == [wrapped if some else None]


@pytest.mark.parametrize(
    ("values", "type", "fits"),
    [
        (["9" * 28] * 2, pa.decimal128(28, 0), True),
        (["9" * 38], pa.decimal128(38, 0), True),
        (["9" * 38, "0"], pa.decimal128(38, 0), False),
        (["4" + "9" * 37, "4" + "9" * 37], pa.decimal128(38, 0), True),
        (["0." + "9" * 38, "0." + "0" * 37 + "1"], pa.decimal128(38, 38), False),
    ],
)
def test_the_bounds_of_sums(values: list[str], type: pa.DataType, fits: bool) -> None:
    given = list(map(Decimal, values))
    columns = {"s": (Function.SUM, pa.chunked_array([pa.array(given, type)]))}
    if fits:
        expected = sum(map(int, given))
        assert aggregated(columns, np.zeros(len(given), np.int64), 1)["s"].to_pylist() == [expected]
    else:
        with pytest.raises(NotThisWay):
            aggregated(columns, np.zeros(len(given), np.int64), 1)
    apart = aggregated(columns, np.arange(len(given)), len(given))
    assert apart["s"].to_pylist() == given, "groups of their own"
