"""Finds timestamps that delta-rs would read wrongly.

Spark writes a TIMESTAMP as INT96 by default. delta-rs converts INT96 to nanoseconds, which cover 1677 to 2262, and
reads any other time as a wrong one: a MERGE does not find it as a key, and changes it when it copies its row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from pyspark.sql import types as T

from bridge.delta.merge_contract import UnsupportedByEngine
from bridge.delta.table_files import table_files

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable
    from pyarrow.fs import FileSystem

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

    files, inside = pa.table(target.get_add_actions(flatten=True)), table_files(target)
    for name in names:
        for path in pc.filter(files["path"], _may_be_misread(files, name)).to_pylist():
            if name in _int96_columns(_data_file(target, inside, path)):
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


@dataclass(frozen=True)
class _DataFile:
    table: str
    path: str
    """Relative to the table, or absolute."""
    files: FileSystem = field(compare=False)


def _data_file(target: DeltaTable, inside: FileSystem, path: str) -> _DataFile:
    """A data file by its path in the log, which is relative to the table, or absolute (of a shallow clone)."""
    uri = urlsplit(path)
    if uri.scheme in ("", "file") and uri.path.startswith("/"):
        from pyarrow.fs import LocalFileSystem

        return _DataFile("", unquote(uri.path), LocalFileSystem())
    if uri.scheme:
        raise UnsupportedByEngine(
            f"the table has files in {uri.scheme}://{uri.netloc}, outside of its folder"
        )
    return _DataFile(target.table_uri, unquote(path), inside)


@lru_cache(maxsize=10_000)
def _int96_columns(file: _DataFile) -> frozenset[str]:
    import pyarrow.parquet as pq

    with file.files.open_input_file(file.path) as opened:
        schema = pq.ParquetFile(opened).schema
    columns = (schema.column(n) for n in range(len(schema)))
    return frozenset(c.name for c in columns if c.physical_type == _INT96)
