"""The tables that the driver writes as Spark would: their features, properties and types."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyspark.sql import types as T

from bridge.delta.table_checks import is_on
from bridge.lake.snapshot import Snapshot
from bridge.lake.statistics import EXACT_DIGITS, columns_with_statistics
from bridge.ways import NotThisWay

_VECTORS = "deletionVectors"
_READS = {_VECTORS, "timestampNtz", "vacuumProtocolCheck"}
_WRITES = {*_READS, "appendOnly", "changeDataFeed", "clustering", "domainMetadata", "invariants"}
_OLD_WRITER = 4
"""The last writer version of the protocol without table features, column mapping and identity columns."""
_UNCOMPARED = (T.MapType, T.StructType)
"""The entries of a map have no order, and the statistics of a struct are those of its fields."""
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


_BOUNDED = (
    T.ByteType,
    T.DateType,
    T.IntegerType,
    T.LongType,
    T.ShortType,
    T.StringType,
    T.TimestampNTZType,
    T.TimestampType,
)
"""See `lake.statistics`."""


def refuse_unsupported_table(snapshot: Snapshot, key: Sequence[str]) -> None:
    """Raise NotThisWay unless the driver handles all features and types of the table as Spark does.

    All columns of the table count: a MERGE copies those that the definition lacks, too.
    """
    metadata, protocol = snapshot.metadata, snapshot.protocol
    if partitions := metadata["partitionColumns"]:
        # Other texts for their values than Spark's would hide the file to remove from it (docs/adr/052).
        raise NotThisWay(f"the table is partitioned by {', '.join(partitions)}")
    read, written = (set(protocol.get(f"{side}Features") or ()) for side in ("reader", "writer"))
    if unsupported := sorted((read - _READS) | (written - _WRITES)):
        raise NotThisWay(f"the table has the feature {unsupported[0]!r}")
    version = int(protocol["minWriterVersion"])
    if protocol.get("writerFeatures") is None and version > _OLD_WRITER:
        raise NotThisWay(f"the table has the writer version {version}")
    constraints = (name for name in metadata["configuration"] if name.startswith("delta.constraints."))
    if constraint := next(constraints, None):
        raise NotThisWay(f"the table has the constraint {constraint.removeprefix('delta.constraints.')!r}")
    _refuse_clustering(snapshot)
    for f in _fields(snapshot):
        if marks := set(f.metadata or ()) - {"comment"}:
            raise NotThisWay(f"column {f.name!r} is {min(marks)}")
        if f.name in key and not isinstance(f.dataType, _KEY_TYPES):
            raise NotThisWay(f"the key column {f.name!r} is {f.dataType.simpleString().upper()}")
        if not _is_compared(f.dataType):
            raise NotThisWay(f"column {f.name!r} is {f.dataType.simpleString().upper()}")


def _is_compared(type: T.DataType) -> bool:
    """Whether the driver knows if two values of a column are equal."""
    if isinstance(type, T.ArrayType):
        # Arrow casts no array to one whose items are never null.
        return type.containsNull and _is_compared(type.elementType)
    return not isinstance(type, _UNCOMPARED)


def _refuse_clustering(snapshot: Snapshot) -> None:
    """The protocol asks for bounds of the columns by which a table is clustered."""
    fields = _fields(snapshot)
    counted = columns_with_statistics(snapshot.metadata["configuration"], len(fields))
    bounded = {f.name for f in fields[:counted] if _has_bounds(f.dataType)}
    if without := [name for name in snapshot.clustered_by if name not in bounded]:
        raise NotThisWay(f"the table is clustered by {without[0]!r}, of which the driver writes no bounds")


def _has_bounds(type: T.DataType) -> bool:
    if isinstance(type, T.DecimalType):
        return type.precision <= EXACT_DIGITS
    return isinstance(type, _BOUNDED)


def has_vectors(snapshot: Snapshot) -> bool:
    """Whether rows of the table may be marked as deleted."""
    has_feature = _VECTORS in (snapshot.protocol.get("writerFeatures") or ())
    return has_feature and is_on(snapshot.metadata["configuration"], "delta.enableDeletionVectors")


def not_null_columns(snapshot: Snapshot) -> list[str]:
    """The columns that a row must have a value of."""
    return [f.name for f in _fields(snapshot) if not f.nullable]


def _fields(snapshot: Snapshot) -> list[T.StructField]:
    return T.StructType.fromJson(json.loads(snapshot.metadata["schemaString"])).fields
