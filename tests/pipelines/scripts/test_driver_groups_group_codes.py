"""Numbers of values and groups, compared with those of Python's dictionaries."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bridge.pipelines.scripts.driver_groups import Groups, Values, new_values

LEAST, GREATEST = -(2**63), 2**63 - 1
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "close": (pa.int64(), [-3, -1, 0, 2, 5]),
    "extreme": (pa.int64(), [LEAST, GREATEST, 0, LEAST + 1, GREATEST - 1]),
    "near the end": (pa.int64(), [GREATEST, GREATEST - 1, GREATEST - 2, GREATEST - 4]),
    "tiny": (pa.int8(), [-128, 127, 0, 1]),
    "texts": (pa.string(), ["", "a", "A", "é", "e\u0301", "\uffff", "\U0001f600", "\0"]),
    "coded": (pa.dictionary(pa.int32(), pa.string()), ["", "a", "b", "\U0001f600"]),
    "truths": (pa.bool_(), [True, False]),
    "days": (pa.date32(), [date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1)]),
    "moments": (pa.timestamp("us"), [datetime(1600, 2, 29), datetime(9999, 12, 31, 23, 59, 59, 999999)]),
}


def column(draw: random.Random, name: str, count: int, nulls: bool = True) -> pa.ChunkedArray:
    """Drawn values in some chunks; those of texts have dictionaries of their own."""
    type, values = VALUES[name]
    plain = type.value_type if pa.types.is_dictionary(type) else type
    chunks = []
    for part in np.array_split(np.arange(count), draw.choice([1, 2, 3])):
        given = [draw.choice([*values, None] if nulls else values) for _ in part]
        chunks.append(pa.array(given, plain))
    if plain is not type:
        chunks = [chunk.dictionary_encode() for chunk in chunks]
    return pa.chunked_array(chunks, type)


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("seed", range(6))
def test_numbers_are_the_same_for_equal_values(name: str, seed: int) -> None:
    draw = random.Random(seed)
    for nulls in (True, False):
        known, other = column(draw, name, 6, nulls=bool(seed % 2)), column(draw, name, 40)
        values = Values(known, nulls=nulls)
        expected = {v for v in known.to_pylist() if nulls or v is not None}
        assert len(values) == len(expected)
        found = dict(zip(known.to_pylist(), values.numbers(known).tolist(), strict=True))
        assert {found[v] for v in expected} == set(range(len(expected)))
        numbers = values.numbers(other).tolist()
        assert numbers == [found[v] if v in expected else -1 for v in other.to_pylist()]


def rows(draw: random.Random, names: Sequence[str], count: int) -> pa.Table:
    return pa.table({name: column(draw, name, count) for name in names})


@pytest.mark.parametrize("seed", range(20))
def test_groups_of_several_columns(seed: int) -> None:
    draw = random.Random(seed)
    names = draw.sample(list(VALUES), draw.choice([1, 2, 3, 4]))
    given, other = rows(draw, names, draw.choice([0, 1, 60])), rows(draw, names, draw.choice([0, 80]))
    groups = Groups(given, names)
    keys, others = (list(zip(*table.to_pydict().values(), strict=True)) for table in (given, other))
    numbered = dict(zip(keys, groups.of_rows.tolist(), strict=True))
    assert sorted(numbered.values()) == list(range(groups.count)) and groups.count == len(set(keys))
    assert [numbered[keys[row]] for row in groups.first_rows] == list(range(groups.count))
    renamed = other.rename_columns([f"their {name}" for name in names])
    found = groups.numbers(renamed, renamed.column_names).tolist()
    assert found == [numbered.get(key, -1) for key in others]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("counted", VALUES)
def test_values_that_were_not_known(counted: str, seed: int) -> None:
    draw = random.Random(seed)
    names = ["coded", "close"][: draw.choice([1, 2])]
    (added, known), columns = (rows(draw, ["coded", "close"], n) for n in draw.choices([0, 5, 50], k=2)), []
    for table in (added, known):
        columns.append(column(draw, counted, table.num_rows))
    groups = Groups(added, names)
    found = new_values(groups, columns[0], columns[1], groups.numbers(known, names))
    pairs = [
        {
            (*key, value)
            for *key, value in zip(*(table[n].to_pylist() for n in names), values.to_pylist(), strict=True)
            if value is not None
        }
        for table, values in zip((added, known), columns, strict=True)
    ]
    numbers = zip(*(added[n].to_pylist() for n in names), groups.of_rows.tolist(), strict=True)
    by_number = {number: tuple(key) for *key, number in numbers}
    new = [key[:-1] for key in pairs[0] - pairs[1]]
    assert found.tolist() == [new.count(by_number[number]) for number in range(groups.count)]
