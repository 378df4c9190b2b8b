"""Keys are found as a dictionary finds them, and nothing that may hold one is left out."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from bridge.delta.driver_merge.matches import Keys, find_rows, may_hold
from bridge.lake.data_files import open_file, write_vectors
from bridge.lake.local_store import LocalStore
from bridge.lake.new_files import write_data_file
from bridge.lake.snapshot import Snapshot

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.date32()), ("v", pa.int32())])
KEYS = st.tuples(
    st.none() | st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1),
    st.none() | st.sampled_from(["", "a", "b", "é" * 40, "é" * 41]),
    st.none() | st.dates(),
)


def table(rows: list[tuple[Any, ...]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


@settings(deadline=None)
@given(
    rows=st.lists(st.tuples(KEYS, st.integers(0, 9)), max_size=30),
    wanted=st.lists(KEYS, min_size=1, max_size=10, unique=True),
    columns=st.sampled_from([["a"], ["b"], ["a", "b"], ["c", "b", "a"]]),
    marked=st.sets(st.integers(0, 29)),
)
def test_the_rows_of_keys(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[tuple[Any, ...], int]],
    wanted: list[tuple[Any, ...]],
    columns: list[str],
    marked: set[int],
) -> None:
    folder = str(tmp_path_factory.mktemp("files"))
    of = [SCHEMA.names.index(name) for name in columns]
    first = {tuple(key[n] for n in of): key for key in reversed(wanted)}
    changes = table([(*key, 0) for key in first.values()])
    content = table([(*key, v) for key, v in rows])
    snapshot = Snapshot(LocalStore(folder))
    for begin in range(0, content.num_rows, 10):  # three files
        add = write_data_file(LocalStore(folder), content.slice(begin, 10), 4)
        here = BitMap(p - begin for p in marked if begin <= p < begin + 10)
        if here:
            add["deletionVector"] = write_vectors(LocalStore(folder), {"f": here})["f"]
        snapshot.files[add["path"]] = add
    keys = Keys(changes, columns)
    assert keys.number_distinct() == len(first)
    names = list(snapshot.files)
    files = [open_file(snapshot, name, SCHEMA) for name in names if may_hold(snapshot.files[name], keys)]
    found = set()
    for matches in find_rows(files, keys):
        begin = 10 * names.index(matches.file.name)
        for position, change, row in zip(
            matches.positions, matches.changes, matches.rows.to_pylist(), strict=True
        ):
            found.add((begin + int(position), int(change)))
            assert tuple(row.values()) == (*rows[begin + int(position)][0], rows[begin + int(position)][1])
    order = list(first)
    assert found == {
        (position, order.index(key))
        for position, (all_columns, _) in enumerate(rows)
        if (key := tuple(all_columns[n] for n in of)) in first and position not in marked
    }


def test_files_and_row_groups_without_a_key_are_not_read(tmp_path: Any) -> None:
    keys = Keys(table([(5, "a", None, 0), (90, "b", None, 0)]), ["a"])
    near, far = ({"stats": f'{{"minValues": {{"a": {n}}}, "maxValues": {{"a": {n + 9}}}}}'} for n in (0, 10))
    assert may_hold(near, keys) and not may_hold(far, keys)
    assert may_hold({}, keys)
    assert may_hold(far, Keys(table([(None, "a", None, 0)]), ["a"])), "null has no bounds"
    rows = table([(n, "a", None, n) for n in range(0, 600_000, 2)])
    snapshot = Snapshot(LocalStore(str(tmp_path)))
    add = write_data_file(LocalStore(str(tmp_path)), rows, 4)
    snapshot.files[add["path"]] = add
    file = open_file(snapshot, add["path"], SCHEMA)
    assert file.parquet.num_row_groups == 3
    read: list[int] = []

    original = file.opened

    def opened() -> Any:
        parquet = original()
        real = parquet.read_row_groups

        def watched(groups: list[int], **given: Any) -> pa.Table:
            read.extend(groups)
            return real(groups, **given)

        parquet.read_row_groups = watched
        return parquet

    file = replace(file, opened=opened)
    (matches,) = find_rows([file], Keys(table([(400_000, "a", None, 0), (400_001, "a", None, 0)]), ["a"]))
    assert (matches.positions.tolist(), matches.changes.tolist(), set(read)) == ([200_000], [0], {1})


STRESS = """
import sys, time
import pyarrow as pa
from bridge.delta.driver_merge import matches
from bridge.lake.data_files import open_file
from bridge.lake.local_store import LocalStore
from bridge.lake.snapshot import Snapshot
import numpy as np
import pyarrow.parquet as pq

folder, seconds = sys.argv[1], float(sys.argv[2])
schema = pa.schema([("a", pa.int64()), ("v", pa.string())])
snapshot = Snapshot(LocalStore(folder))
ids = np.random.default_rng(1).permutation(160_000)  # so that each row group may hold the key
rows = pa.table({"a": ids, "v": [f"value {i}" for i in ids]}, schema)
pq.write_table(rows, f"{folder}/0.parquet", row_group_size=20_000)
snapshot.files["0.parquet"] = {"path": "0.parquet", "size": 1}
keys = matches.Keys(pa.table({"a": [80_000]}), ["a"])
matches.os.cpu_count = lambda: 4
until = time.monotonic() + seconds
while time.monotonic() < until:
    (found,) = matches.find_rows([open_file(snapshot, "0.parquet", schema)], keys)
    assert found.rows.to_pylist() == [{"a": 80_000, "v": "value 80000"}]
"""


@pytest.mark.parametrize("seconds", [2, pytest.param(60, marks=pytest.mark.slow)])
def test_threads_read_one_file(tmp_path: Path, seconds: float) -> None:
    """When they read one ParquetFile the process crashed or hung within seconds (docs/adr/049)."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", STRESS, str(tmp_path), str(seconds)],
        capture_output=True,
        text=True,
        timeout=seconds + 60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
