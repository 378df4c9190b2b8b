"""The fold of changes that set some columns, in any portions, does what these changes do one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.kafka.partial_updates import PartialUpdates
from bridge.schema import ColumnRule
from tests.pipelines.folds import by_rule
from tests.refusals import refusal

KEY = ("id", "sub")
COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("sub", pa.string()),
        ("text", pa.string()),
        ("number", pa.decimal128(10, 2)),
        ("list", pa.list_(pa.field("element", pa.string()))),
        ("always", pa.int32()),
        ("cols", pa.list_(pa.field("element", pa.string()))),
    ]
)
KEPT = ("text", "number", "list")
BY_NAME = PartialUpdates({n: f"keeps_{n}" for n in KEPT}, ("list",), "cols", (*KEY, *KEPT, "cols"))
BY_NULL = PartialUpdates({n: f"keeps_{n}" for n in KEPT}, KEPT)
RULES = {"number": ColumnRule.SUM, "list": ColumnRule.COLLECT_SET}
BY_RULE = replace(BY_NULL, nulls=("text",), rules=RULES)
Row = Mapping[str, Any]

CHANGES = st.fixed_dictionaries(
    {
        "id": st.none() | st.integers(0, 2),
        "sub": st.none() | st.sampled_from(["", "a"]),
        "text": st.none() | st.sampled_from(["", "x", "y"]),
        "number": st.none() | st.decimals(-5, 5, places=2),
        "list": st.none() | st.lists(st.none() | st.sampled_from("pq"), max_size=3),
        "always": st.none() | st.integers(0, 9),
        "cols": st.none() | st.lists(st.none() | st.sampled_from([*KEPT, "id", "cols"]), max_size=3),
        "gone": st.integers(0, 4).map(lambda n: n == 0),
    }
)


def one_by_one(partial: PartialUpdates, changes: Sequence[Row], rows: dict[Any, Row]) -> dict[Any, Row]:
    """The oracle: what the changes make of the rows."""
    for change in changes:
        key = tuple(change[name] for name in KEY)
        if change["gone"]:
            rows.pop(key, None)
            continue
        named = change["cols"] if partial.by else None
        before = rows.get(key, dict.fromkeys(KEPT))
        rows[key] = {n: change[n] for n in COLUMNS.names} | {
            n: before[n]
            for n in KEPT
            if (named is not None and n not in named) or (n in partial.nulls and change[n] is None)
        }
        combined = {n: by_rule(rule, before[n], change[n]) for n, rule in partial.rules.items()}
        rows[key] = {**rows[key], **combined}
    return rows


def applied(partial: PartialUpdates, folded: pa.Table, rows: dict[Any, Row]) -> dict[Any, Row]:
    """What one change of each key makes of the rows."""
    for change in folded.to_pylist():
        key = tuple(change[name] for name in KEY)
        if change["gone"]:
            rows.pop(key, None)
            assert not any(change[flag] for flag in partial.flags.values())
        else:
            before = rows.get(key, dict.fromkeys(KEPT))
            kept = [name for name, flag in partial.flags.items() if change[flag]]
            assert all(change[name] is None for name in kept if name not in partial.rules)
            values = {n: by_rule(partial.rules[n], before[n], change[n]) for n in partial.rules if n in kept}
            rows[key] = {n: change[n] for n in COLUMNS.names} | {n: before[n] for n in kept} | values
    return rows


def portion(partial: PartialUpdates, changes: Sequence[Row], first: int) -> pa.Table:
    """Some of the changes, as they are when they are decoded, with their places."""
    sets, gone = ([n for n, c in enumerate(changes) if c["gone"] is g] for g in (False, True))
    rows = partial.marked(pa.Table.from_pylist([changes[n] for n in sets], COLUMNS))
    keys = pa.Table.from_pylist([changes[n] for n in gone], pa.schema([COLUMNS.field(n) for n in KEY]))
    sides = [
        table.append_column("gone", pa.repeat(is_gone, len(at))).append_column(
            "place", pa.array([first + n for n in at], pa.int64())
        )
        for table, at, is_gone in ((rows, sets, False), (keys, gone, True))
    ]
    return fold(partial, sides)


def fold(partial: PartialUpdates, parts: Sequence[pa.Table]) -> pa.Table:
    table = pa.concat_tables(parts, promote_options="default").combine_chunks()
    places, gone = table["place"].to_numpy(), table["gone"].to_numpy()
    return partial.folded(table, KEY, places, np.asarray(gone))


@pytest.mark.parametrize("partial", [BY_NAME, BY_NULL, BY_RULE], ids=["by name", "by null", "by rule"])
@settings(deadline=None, max_examples=60)
@given(before=st.lists(CHANGES, max_size=4), changes=st.lists(CHANGES, max_size=20), size=st.integers(1, 8))
def test_drawn_changes(partial: PartialUpdates, before: list[Row], changes: list[Row], size: int) -> None:
    parts = [portion(partial, [], 0)]
    for at in range(0, len(changes), size):
        parts.append(portion(partial, changes[at : at + size], at))
        if at % 2:
            parts = [fold(partial, parts)]
    folded = fold(partial, parts)
    assert folded.column_names == [*COLUMNS.names, *partial.flags.values(), "gone", "place"]
    keys = [tuple(row[name] for name in KEY) for row in folded.to_pylist()]
    assert len(keys) == len(set(keys))
    start = one_by_one(partial, before, {})
    assert applied(partial, folded, dict(start)) == one_by_one(partial, changes, dict(start))


@pytest.mark.parametrize(
    ("named", "reason"),
    [
        (["text", "secret"], "column 'cols' names a column that is none of the DDL's physical ones"),
        (["number"], "column 'text' is NOT NULL, and a change leaves the value of its row"),
        (["text", "number"], None),
    ],
)
def test_changes_that_are_refused(named: list[str], reason: str | None) -> None:
    row = dict.fromkeys(COLUMNS.names) | {"id": 1, "cols": named}
    required = replace(BY_NAME, not_null=("text",))
    assert refusal(lambda: required.marked(pa.Table.from_pylist([row], COLUMNS))) == reason
