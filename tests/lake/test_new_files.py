"""New files have the rows, and their actions say what the protocol asks for."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bridge.lake.local_store import LocalStore
from bridge.lake.new_files import write_change_file, write_data_file, write_parts

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
    one, two = ROWS.slice(0, 1), ROWS.slice(1)
    by_type = {"delete": one, "update_preimage": two, "update_postimage": two, "insert": ROWS.slice(0, 0)}
    cdc = write_change_file(LocalStore(str(tmp_path)), by_type)
    assert cdc["path"].startswith("_change_data/") and cdc["dataChange"] is False
    assert pq.read_table(tmp_path / cdc["path"]).to_pylist() == [
        {"id": 1, "v": "a", "_change_type": "delete"},
        {"id": 2, "v": None, "_change_type": "update_preimage"},
        {"id": 2, "v": None, "_change_type": "update_postimage"},
    ]


def test_a_file_of_many_parts(tmp_path: Path) -> None:
    """Row groups are full ones, whatever the parts, and the statistics are those of all rows."""
    rows = pa.table({"id": range(300_000), "v": [str(n) if n % 3 else None for n in range(300_000)]})
    parts = [rows.slice(begin, 7_001) for begin in range(0, rows.num_rows, 7_001)]
    add = write_parts(LocalStore(str(tmp_path)), iter([*parts, rows.slice(0, 0)]), rows.schema, 2)
    assert add is not None
    file = pq.ParquetFile(tmp_path / add["path"])
    assert file.read() == rows and add["size"] == (tmp_path / add["path"]).stat().st_size
    assert [file.metadata.row_group(n).num_rows >= 1 << 16 for n in range(file.num_row_groups - 1)]
    assert file.num_row_groups <= 5
    (whole,) = (json.loads(write_data_file(LocalStore(str(tmp_path)), rows, 2)["stats"]) for _ in "1")
    assert json.loads(add["stats"]) == whole
    assert whole["nullCount"] == {"id": 0, "v": 100_000} and whole["maxValues"] == {
        "id": 299_999,
        "v": "99998",
    }


def test_no_rows_are_no_file(tmp_path: Path) -> None:
    assert write_parts(LocalStore(str(tmp_path)), [ROWS.slice(0, 0)], ROWS.schema, 1) is None
    assert list(tmp_path.iterdir()) == []
