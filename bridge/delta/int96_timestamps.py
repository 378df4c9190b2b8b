"""Points in time that delta-rs would read wrongly.

Spark writes a TIMESTAMP as INT96 unless it is told otherwise. delta-rs takes that for nanoseconds, which reach from
1677 to 2262, and makes another time of one before or after: a key is not found, and a row that is copied is changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from pyspark.sql import types as T

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

__all__ = ["misread_by_delta_rs"]

_FIRST, _LAST = (datetime(year, 1, 1, tzinfo=timezone.utc) for year in (1678, 2262))
_INT96 = "INT96"


def misread_by_delta_rs(target: DeltaTable, fields: Sequence[T.StructField]) -> str | None:
    """A TIMESTAMP column of which delta-rs may read a wrong value in the newest version; None where there is none.

    Told by the statistics of the files. Those that may hold such a value, or say nothing of it, are opened, once in the
    life of the process: written with microseconds, as the bridge's own are, they are read rightly.
    """
    names = [f.name for f in fields if isinstance(f.dataType, T.TimestampType)]
    if not names:
        return None
    import pyarrow as pa
    import pyarrow.compute as pc

    files = pa.table(target.get_add_actions(flatten=True))
    for name in names:
        for path in pc.filter(files["path"], _may(files, name)).to_pylist():
            if name in _of_int96(_place(target.table_uri, path)):
                return name
    return None


def _may(files: pa.Table, name: str) -> pa.Array:
    """Of each file, whether it may hold a value of `name` that is out of reach."""
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


def _place(table: str, path: str) -> str:
    there = urlsplit(path)
    if there.scheme or path.startswith("/"):
        return unquote(there.path)
    return f"{unquote(urlsplit(table).path).rstrip('/')}/{unquote(path)}"


@lru_cache(maxsize=10_000)
def _of_int96(place: str) -> frozenset[str]:
    import pyarrow.parquet as pq

    schema = pq.ParquetFile(place).schema
    columns = (schema.column(n) for n in range(len(schema)))
    return frozenset(c.name for c in columns if c.physical_type == _INT96)
