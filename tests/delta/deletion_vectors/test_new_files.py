"""New files have the rows, and their actions say what the protocol asks for."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bridge.delta.deletion_vectors.effects import Effects
from bridge.delta.deletion_vectors.new_files import write_change_file, write_data_file
from bridge.lake.local_store import LocalStore

ROWS = pa.table({"id": [1, 2], "v": ["a", None]})


def test_a_data_file(tmp_path: Path) -> None:
    add = write_data_file(LocalStore(str(tmp_path)), ROWS, 1)
    file = tmp_path / add["path"]
    assert pq.read_table(file) == ROWS
    assert (add["size"], add["partitionValues"], add["dataChange"]) == (file.stat().st_size, {}, True)
    assert abs(add["modificationTime"] - file.stat().st_mtime * 1000) < 60_000
    assert json.loads(add["stats"])["maxValues"] == {"id": 2}
    assert write_data_file(LocalStore(str(tmp_path)), ROWS, 1)["path"] != add["path"]


def test_a_file_of_the_feed(tmp_path: Path) -> None:
    one, two, none = ROWS.slice(0, 1), ROWS.slice(1), ROWS.slice(0, 0)
    cdc = write_change_file(
        LocalStore(str(tmp_path)), Effects({}, deleted=one, before=two, after=two, inserted=none)
    )
    assert cdc["path"].startswith("_change_data/") and cdc["dataChange"] is False
    assert pq.read_table(tmp_path / cdc["path"]).to_pylist() == [
        {"id": 1, "v": "a", "_change_type": "delete"},
        {"id": 2, "v": None, "_change_type": "update_preimage"},
        {"id": 2, "v": None, "_change_type": "update_postimage"},
    ]
