"""Finds timestamps that delta-rs would read wrongly.

Spark writes a TIMESTAMP as INT96 by default. delta-rs converts INT96 to nanoseconds, which cover 1677 to 2262, and
reads any other time as a wrong one: a MERGE does not find it as a key, and changes it when it copies its row.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from pyspark.sql import types as T

from bridge.delta.table_store import opened_store
from bridge.lake.local_store import LocalStore
from bridge.lake.remote_store import RemoteStore
from bridge.lake.unsupported import UnsupportedByEngine

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

__all__ = ["misread_by_delta_rs"]

_FIRST, _LAST = (datetime(year, 1, 1, tzinfo=timezone.utc) for year in (1678, 2262))
_INT96 = "INT96"


def misread_by_delta_rs(target: DeltaTable, fields: Sequence[T.StructField]) -> str | None:
    """Name a TIMESTAMP column whose values delta-rs may read wrongly in the newest version; None where there is none.

    Checks the statistics of the files. A file whose statistics allow such a value, or are missing, is opened, once in
    the life of the process: delta-rs reads files with timestamps in microseconds, as the bridge writes them, correctly.
    """
    names = [f.name for f in fields if isinstance(f.dataType, T.TimestampType)]
    if not names:
        return None
    import pyarrow as pa
    import pyarrow.compute as pc

    files, store = pa.table(target.get_add_actions(flatten=True)), opened_store(target)
    for name in names:
        for path in pc.filter(files["path"], _may_be_misread(files, name)).to_pylist():
            if name in _int96_columns(store, path):
                return name
    return None


def _may_be_misread(files: pa.Table, name: str) -> pa.Array:
    """Whether each file may hold a value of `name` outside the range of nanoseconds."""
    import pyarrow as pa
    import pyarrow.compute as pc

    low, high, nulls = f"min.{name}", f"max.{name}", f"null_count.{name}"
    may = pa.array([True] * files.num_rows, pa.bool_())
    if {low, high} <= set(files.column_names):
        first, last = (pa.scalar(at, files[low].type) for at in (_FIRST, _LAST))
        within = pc.and_(pc.greater_equal(files[low], first), pc.less(files[high], last))
        may = pc.invert(pc.fill_null(within, False))
    if nulls in files.column_names:
        without = pc.fill_null(pc.equal(files[nulls], files["num_records"]), False)
        may = pc.and_(may, pc.invert(without))
    return may


@lru_cache(maxsize=10_000)
def _int96_columns(store: LocalStore | RemoteStore, path: str) -> frozenset[str]:
    import pyarrow.parquet as pq

    place = urlsplit(path)
    if place.scheme not in ("", "file"):
        raise UnsupportedByEngine(
            f"the table has files in {place.scheme}://{place.netloc}, outside of its folder"
        )
    name = unquote(place.path)
    found = store.head(name)
    if found is None:
        raise FileNotFoundError(name)
    schema = pq.ParquetFile(store.open(name, found.size).file()).schema
    columns = (schema.column(n) for n in range(len(schema)))
    return frozenset(c.name for c in columns if c.physical_type == _INT96)
