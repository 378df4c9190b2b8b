"""A table's files, by names relative to its folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from bridge.delta.table_files import table_files
from tests.object_store import BUCKET, ObjectStore


@pytest.mark.parametrize("where", ["a folder", "s3a"])
def test_files_are_listed_read_and_deleted(
    where: str, lake: Path, object_store: ObjectStore, unique: Callable[[str], str]
) -> None:
    options = object_store.delta_rs_options()
    place = str(lake / "with blank") if where == "a folder" else f"s3a://{BUCKET}/{unique('files')}"
    write_deltalake(place, pa.table({"id": [1, 2]}), storage_options=None if where == "a folder" else options)
    target = DeltaTable(place, storage_options=None if where == "a folder" else options)
    files = table_files(target)
    first = "_delta_log/00000000000000000000.json"
    assert files.get_file_info(first).mtime is not None
    assert files.get_file_info("_delta_log/gone.json").mtime is None
    name = pa.table(target.get_add_actions(flatten=True))["path"][0].as_py()
    with files.open_input_file(name) as data:
        assert data.read(4) == b"PAR1"
    files.delete_file(first)
    assert files.get_file_info(first).mtime is None
