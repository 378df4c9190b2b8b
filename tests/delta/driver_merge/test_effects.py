"""What changes do to rows, compared with a dictionary."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.columns import KIND
from bridge.delta.driver_merge.effects import decide_effects
from bridge.delta.driver_merge.matches import Keys, find_rows
from bridge.delta.merge_semantics import upsert_by_key
from bridge.lake.data_files import open_file
from bridge.lake.local_store import LocalStore
from bridge.lake.new_files import write_data_file
from bridge.lake.snapshot import Snapshot

LISTS = pa.list_(pa.field("element", pa.list_(pa.field("element", pa.float64()))))
SCHEMA = pa.schema(
    [("id", pa.int64()), ("v", pa.string()), ("x", pa.float64()), ("items", LISTS), ("other", pa.int32())]
)
COLUMNS = ["id", "v", "x", "items"]
IDS = st.none() | st.integers(0, 6)
ROWS = st.tuples(
    IDS,
    st.sampled_from([None, "", "a"]),
    st.sampled_from([None, 0.0, -0.0, 1.5, math.nan]),
    st.none()
    | st.lists(st.none() | st.lists(st.sampled_from([None, 0.0, math.nan]), max_size=2), max_size=2),
    st.integers(0, 2),
)
KINDS = st.sampled_from(["+I", "+U", "-U", "-D"])
CHANGES = st.tuples(ROWS, KINDS).map(lambda drawn: (*drawn[0][:4], drawn[1]))


def same(one: Any, other: Any) -> bool:
    return bool(one == other or (one != one and other != other))


@settings(deadline=None)
@given(rows=st.lists(ROWS, max_size=12), changes=st.lists(CHANGES, max_size=6, unique_by=lambda c: c[0]))
def test_effects(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[Any, ...]], changes: list[tuple[Any, ...]]
) -> None:
    folder = str(tmp_path_factory.mktemp("files"))
    snapshot = Snapshot(LocalStore(folder))
    for begin in (0, 5, 10):
        part = [dict(zip(SCHEMA.names, row, strict=True)) for row in rows[begin : begin + 5]]
        if part:
            add = write_data_file(LocalStore(folder), pa.Table.from_pylist(part, SCHEMA), 4)
            snapshot.files[add["path"]] = add
    shape = pa.schema([*(SCHEMA.field(n) for n in COLUMNS), pa.field(KIND, pa.string())])
    given_changes = pa.Table.from_pylist([dict(zip(shape.names, c, strict=True)) for c in changes], shape)
    files = [open_file(snapshot, name, SCHEMA) for name in snapshot.files]
    statement = upsert_by_key(COLUMNS, ["id"])
    matches = find_rows(files, Keys(given_changes, ["id"])) if changes else []
    effects = decide_effects(given_changes, given_changes.slice(0, 0), matches, statement, SCHEMA)

    of = {change[0]: change for change in changes}
    deleted, before, after, marked = [], [], [], []
    for position, row in enumerate(rows):
        change = of.get(row[0], ())
        if not change:
            continue
        if change[4] in ("-U", "-D"):
            deleted.append(row)
            marked.append(position)
        elif not all(map(same, row[1:4], change[1:4])):
            before.append(row)
            after.append((*change[:4], row[4]))
            marked.append(position)
    there = {row[0] for row in rows}
    inserted = [(*c[:4], None) for c in changes if c[0] not in there and c[4] in ("+I", "+U")]

    def rows_of(table: pa.Table) -> list[str]:
        return [str(tuple(row.values())) for row in table.to_pylist()]

    assert sorted(rows_of(effects.deleted)) == sorted(map(str, deleted))
    pairs = zip(rows_of(effects.before), rows_of(effects.after), strict=True)
    assert sorted(pairs) == sorted(zip(map(str, before), map(str, after), strict=True))
    assert rows_of(effects.inserted) == list(map(str, inserted))
    names = list(snapshot.files)
    found = [5 * names.index(name) + p for name, at in effects.marked.items() for p in at.tolist()]
    assert sorted(found) == marked and all(at.dtype == np.int64 for at in effects.marked.values())
    by_file = [effects.after_of(name) for name in effects.marked]
    assert sorted(r for table in by_file for r in rows_of(table)) == sorted(map(str, after))
    for name, at in effects.marked.items():
        held = [rows[5 * names.index(name) + p][0] for p in at.tolist()]
        assert {row["id"] for row in effects.after_of(name).to_pylist()} <= set(held)
    assert effects.are_none == (not marked and not inserted)
    assert {t.schema for t in (effects.deleted, effects.before, effects.after, effects.inserted)} == {SCHEMA}
