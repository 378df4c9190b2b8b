"""Opens tables with delta-rs, refuses those that it does not handle as Spark does, and translates its errors."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.sql import types as T

from bridge.delta.delta_errors import replaced_error, table_error
from bridge.delta.int96_timestamps import misread_by_delta_rs
from bridge.delta.table import Table
from bridge.delta.table_store import store_for_writing
from bridge.errors import BridgeError
from bridge.lake.local_store import LocalStore
from bridge.lake.remote_store import RemoteStore
from bridge.lake.unsupported import UnsupportedByEngine

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

__all__ = [
    "UnsupportedByEngine",
    "all_fields",
    "open_with_delta_rs",
    "refuse_partitions",
    "refuse_unsupported_features",
    "refuse_unsupported_table",
    "table_errors",
    "touched_bytes",
]

_READS = {"deletionVectors", "timestampNtz", "vacuumProtocolCheck"}
_WRITES = {*_READS, "appendOnly", "changeDataFeed", "invariants"}
_OLD_WRITER = 4
"""The last writer version of the protocol without table features, column mapping and identity columns."""
_NESTED = (T.ArrayType, T.MapType, T.StructType)
"""Maps cannot be compared, as their entries have no order; arrays inside structs have made a join of delta-rs panic."""
_KEY_TYPES = (
    T.BinaryType,
    T.BooleanType,
    T.ByteType,
    T.DateType,
    T.DecimalType,
    T.IntegerType,
    T.LongType,
    T.ShortType,
    T.StringType,
    T.TimestampNTZType,
    T.TimestampType,
)


def open_with_delta_rs(table: Table) -> DeltaTable:
    """Open the table at its newest version. Raises UnsupportedByEngine where delta-rs is not installed, or does not
    reach the files as Spark does; TableError when another table has replaced this one."""
    try:
        from deltalake import DeltaTable
    except ImportError:
        raise UnsupportedByEngine("the package deltalake is not installed") from None
    store = store_for_writing(table.spark, table.location)
    with table_errors(table):
        target = DeltaTable(store.folder) if isinstance(store, LocalStore) else _opened(DeltaTable, store)
        if str(target.metadata().id) != table.id:
            raise replaced_error(table)
    return target


def _opened(open_table: type[DeltaTable], store: RemoteStore) -> DeltaTable:
    try:
        return open_table(store.location, storage_options=dict(store.options))
    except OSError as failed:
        # Its text may have the address of a login's server, or a request with a token.
        raise UnsupportedByEngine(
            "delta-rs cannot open the table on S3: it finds no credentials, or the store does not answer it"
        ) from failed


def all_fields(target: DeltaTable) -> list[T.StructField]:
    """The columns of the opened version: those of the definition, and those that it lacks."""
    return T.StructType.fromJson(json.loads(target.schema().to_json())).fields


def refuse_unsupported_table(target: DeltaTable, table: Table, key: Sequence[str]) -> None:
    """Raise UnsupportedByEngine unless delta-rs handles all features and types of the table as Spark does."""
    protocol = target.protocol()
    fields = all_fields(target)
    refuse_partitions(target.metadata().partition_columns)
    refuse_unsupported_features(
        protocol.reader_features,
        protocol.writer_features,
        protocol.min_writer_version,
        target.metadata().configuration,
        fields,
        key,
    )
    if name := misread_by_delta_rs(target, fields):
        raise UnsupportedByEngine(
            f"files written by Spark have (INT96) timestamps of column {name!r} that may be before 1678 or after 2261"
        )


def refuse_partitions(columns: Collection[str]) -> None:
    """Raise UnsupportedByEngine for a table with partition columns: delta-rs writes other texts for their values than
    Spark, by which Spark no longer finds the file to remove (docs/adr/052)."""
    if columns:
        raise UnsupportedByEngine(f"the table is partitioned by {', '.join(columns)}")


def refuse_unsupported_features(
    reader_features: Collection[str] | None,
    writer_features: Collection[str] | None,
    min_writer_version: int,
    properties: Mapping[str, str | None],
    fields: Sequence[T.StructField],
    key: Sequence[str],
) -> None:
    """Raise UnsupportedByEngine unless an engine in the driver handles these features and types as Spark does.

    `fields` are all columns of the table: a MERGE copies those that the definition lacks, too.
    """
    read, written = set(reader_features or ()), set(writer_features or ())
    if unsupported := sorted((read - _READS) | (written - _WRITES)):
        raise UnsupportedByEngine(f"the table has the feature {unsupported[0]!r}")
    if writer_features is None and min_writer_version > _OLD_WRITER:
        raise UnsupportedByEngine(f"the table has the writer version {min_writer_version}")
    if constraint := next((k for k in properties if k.startswith("delta.constraints.")), None):
        raise UnsupportedByEngine(
            f"the table has the constraint {constraint.removeprefix('delta.constraints.')!r}"
        )
    for f in fields:
        marks = set(f.metadata or ()) - {"comment"}
        if marks or not f.nullable:
            raise UnsupportedByEngine(f"column {f.name!r} is {min(marks, default='NOT NULL')}")
        if f.name in key and not isinstance(f.dataType, _KEY_TYPES):
            raise UnsupportedByEngine(f"the key column {f.name!r} is {f.dataType.simpleString().upper()}")
        if isinstance(f.dataType, _NESTED):
            raise UnsupportedByEngine(f"column {f.name!r} is {f.dataType.simpleString().upper()}")


def touched_bytes(target: DeltaTable, source: pa.Table, key: Sequence[str]) -> int:
    """Add up the sizes of the files that may hold a key of `source`, by the statistics of each key column."""
    import pyarrow as pa
    import pyarrow.compute as pc

    files = pa.table(target.get_add_actions(flatten=True))
    if not files.num_rows:
        return 0
    may = pa.array([True] * files.num_rows)
    for name in key:
        low, high = f"min.{name}", f"max.{name}"
        column, present = source[name], {low, high} <= set(files.column_names)
        if not present or column.null_count or not _is_ordered(column.type):
            continue
        ends = pc.min_max(column)
        before = pc.less(files[high], ends["min"].cast(files[high].type, safe=False))
        after = pc.greater(files[low], ends["max"].cast(files[low].type, safe=False))
        may = pc.and_(may, pc.invert(pc.fill_null(pc.or_(before, after), False)))
    return int(pc.sum(pc.filter(files["size_bytes"], may)).as_py() or 0)


def _is_ordered(type: pa.DataType) -> bool:
    import pyarrow.types as is_

    return bool(is_.is_integer(type) or is_.is_string(type) or is_.is_date(type) or is_.is_timestamp(type))


@contextmanager
def table_errors(table: Table) -> Iterator[None]:
    """Translate errors of delta-rs about the table. Their text may quote values, so it is not passed on. A commit that
    conflicted, and unknown errors, pass unchanged."""
    try:
        yield
    except Exception as error:
        translation = _translation(table, error)
        if translation is None:
            raise
        raise translation from error


def _translation(table: Table, error: Exception) -> BridgeError | None:
    from deltalake.exceptions import TableNotFoundError

    text = str(error)
    if isinstance(error, TableNotFoundError):
        condition = "DELTA_TABLE_NOT_FOUND"
    elif "multiple source rows" in text:
        condition = "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"
    elif "Object at location" in text and "not found" in text:
        condition = "DELTA_FILE_NOT_FOUND"
    else:
        return None
    return table_error(table, frozenset({condition}))
