"""Writes data files and files of the change data feed, and gives the actions that add them to the table."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as is_

from bridge.lake.statistics import FileStatistics
from bridge.ways import NotThisWay

if TYPE_CHECKING:  # workers import this module, and have no need of Spark's and Delta's Python
    from bridge.lake.snapshot import Action
    from bridge.lake.store import Store


_ROWS_OF_A_GROUP = 1 << 17
"""Fewer than Arrow's million, as one row of a group cannot be read without the others."""
_CHANGE_FOLDER = "_change_data"
_CHANGE_TYPE = "_change_type"


def write_data_file(store: Store, rows: pa.Table, columns_with_statistics: int) -> Action:
    """Write the rows, at least one, into a new Parquet file of the table; return its `add` action."""
    add = write_parts(store, [rows], rows.schema, columns_with_statistics)
    assert add is not None
    return add


def write_parts(
    store: Store, parts: Iterable[pa.Table], schema: pa.Schema, columns_with_statistics: int
) -> Action | None:
    """Write the rows of these parts, one after the other, into a new Parquet file of the table; return its `add`
    action, or None, with nothing written, where there are no rows."""
    statistics = FileStatistics(schema.names[:columns_with_statistics])
    name = f"part-00000-{uuid.uuid4()}-c000.snappy.parquet"
    size = _write(store, name, map(statistics.counted, parts), schema)
    if not statistics.rows:
        return None
    return {
        "path": name,
        "partitionValues": {},
        "size": size,
        "modificationTime": int(time.time() * 1000),
        "dataChange": True,
        "stats": statistics.text(),
    }


def delete_data_files(store: Store, adds: Iterable[Action]) -> None:
    """Delete the files of `add` actions that will not be committed. Raises nothing: VACUUM removes what remains."""
    for add in adds:
        with suppress(OSError, NotThisWay):
            store.delete(add["path"])


def write_change_file(store: Store, rows_by_type: Mapping[str, pa.Table]) -> Action:
    """Write the changes of a batch, by Delta's names of their types, into a new file of the change data feed; return
    its `cdc` action."""
    rows = pa.concat_tables(
        rows.append_column(_CHANGE_TYPE, pa.repeat(pa.scalar(type), rows.num_rows))
        for type, rows in rows_by_type.items()
    )
    name = f"{_CHANGE_FOLDER}/cdc-00000-{uuid.uuid4()}.c000.snappy.parquet"
    size = _write(store, name, [rows], rows.schema)
    return {"path": name, "partitionValues": {}, "size": size, "dataChange": False}


def _write(store: Store, path: str, parts: Iterable[pa.Table], schema: pa.Schema) -> int:
    """The size of the file; 0, with nothing written, without rows."""
    content, rows = pa.BufferOutputStream(), 0
    with pq.ParquetWriter(
        content,
        schema,
        compression="snappy",
        store_schema=False,
        # Bounds of floating point ignore NaN, and Spark, which orders it after every number, would not find it.
        write_statistics=[f.name for f in schema if not is_.is_floating(f.type)],
    ) as writer:
        for group in _groups(parts):
            writer.write_table(group, row_group_size=_ROWS_OF_A_GROUP)
            rows += group.num_rows
    if not rows:
        return 0
    written = content.getvalue()
    store.create(path, written)
    return int(written.size)


def _groups(parts: Iterable[pa.Table]) -> Iterable[pa.Table]:
    """The same rows; all tables but the last fill at least one row group."""
    waiting: list[pa.Table] = []
    for part in parts:
        waiting.append(part)
        if sum(table.num_rows for table in waiting) >= _ROWS_OF_A_GROUP:
            yield pa.concat_tables(waiting)
            waiting = []
    if any(table.num_rows for table in waiting):
        yield pa.concat_tables(waiting)
