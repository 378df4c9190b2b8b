"""Writes data files and files of the change data feed, and gives the actions that add them to the table."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from bridge.delta.deletion_vectors.statistics import file_statistics
from bridge.lake.unsupported import UnsupportedByEngine

if TYPE_CHECKING:  # workers import this module, and have no need of Spark's and Delta's Python
    import pyarrow as pa

    from bridge.delta.deletion_vectors.effects import Effects
    from bridge.lake.snapshot import Action
    from bridge.lake.store import Store

__all__ = ["delete_data_files", "write_change_file", "write_data_file"]

_ROWS_OF_A_GROUP = 1 << 17
"""Fewer than Arrow's million, as one row of a group cannot be read without the others."""
_CHANGE_FOLDER = "_change_data"
_CHANGE_TYPE = "_change_type"


def write_data_file(store: Store, rows: pa.Table, columns_with_statistics: int) -> Action:
    """Write the rows into a new Parquet file of the table; return its `add` action."""
    name = f"part-00000-{uuid.uuid4()}-c000.snappy.parquet"
    size = _write(store, name, rows)
    return {
        "path": name,
        "partitionValues": {},
        "size": size,
        "modificationTime": int(time.time() * 1000),
        "dataChange": True,
        "stats": file_statistics(rows, columns_with_statistics),
    }


def delete_data_files(store: Store, adds: Iterable[Action]) -> None:
    """Delete the files of `add` actions that will not be committed. Raises nothing: VACUUM removes what remains."""
    for add in adds:
        with suppress(OSError, UnsupportedByEngine):
            store.delete(add["path"])


def write_change_file(store: Store, effects: Effects) -> Action:
    """Write the changes of a batch into a new file of the change data feed; return its `cdc` action."""
    import pyarrow as pa

    kinds = (
        ("delete", effects.deleted),
        ("update_preimage", effects.before),
        ("update_postimage", effects.after),
        ("insert", effects.inserted),
    )
    rows = pa.concat_tables(
        rows.append_column(_CHANGE_TYPE, pa.repeat(pa.scalar(kind), rows.num_rows)) for kind, rows in kinds
    )
    name = f"{_CHANGE_FOLDER}/cdc-00000-{uuid.uuid4()}.c000.snappy.parquet"
    size = _write(store, name, rows)
    return {"path": name, "partitionValues": {}, "size": size, "dataChange": False}


def _write(store: Store, path: str, rows: pa.Table) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq
    import pyarrow.types as is_

    written = pa.BufferOutputStream()
    pq.write_table(
        rows,
        written,
        compression="snappy",
        row_group_size=_ROWS_OF_A_GROUP,
        store_schema=False,
        # Bounds of floating point ignore NaN, and Spark, which orders it after every number, would not find it.
        write_statistics=[f.name for f in rows.schema if not is_.is_floating(f.type)],
    )
    content = written.getvalue()
    store.create(path, content)
    return int(content.size)
