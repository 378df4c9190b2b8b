"""Reads what a table is, and its newest commits, from the files of its log: without a Spark job.

Delta answers the same questions from a snapshot of the whole log, and its first one costs a new process seconds. Where
this module could answer differently it answers None, and its callers ask Delta: a store that the driver does not reach,
a session without Delta's extension, a log that is not complete, a table feature or a column property that it does not
know.

Formats: "Delta Transaction Log Protocol" (PROTOCOL.md), actions `metaData`, `protocol` and `commitInfo`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from bridge.backend import backend_of
from bridge.definition import DeltaTarget
from bridge.delta.row_constraints import row_constraints
from bridge.lake.snapshot import followed
from bridge.lake.store import Store
from bridge.schema import RowConstraint
from bridge.storage import store_at
from bridge.ways import NotThisWay

_FEATURES = {
    "appendOnly",
    "changeDataFeed",
    "checkConstraints",
    "clustering",
    "deletionVectors",
    "domainMetadata",
    "invariants",
    "timestampNtz",
    "vacuumProtocolCheck",
}
"""Features that change neither where a table is described nor how."""
_OLD_WRITER = 4
"""The last writer version of the protocol without table features, column mapping and identity columns."""
_TIME_TRAVEL = re.compile(r"@(v\d+|\d{17})$")
_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
_NOT_READ = (NotThisWay, OSError, ValueError, LookupError)


@dataclass(frozen=True)
class TableDescription:
    """A table as `DESCRIBE DETAIL` describes it, and its columns."""

    id: str
    properties: Mapping[str, str]
    created_ms: int
    location: str
    schema: T.StructType
    clustered_by: tuple[str, ...] = ()
    partitioned_by: tuple[str, ...] = ()
    constraints: tuple[RowConstraint, ...] = ()


def describe(spark: SparkSession, target: DeltaTarget) -> TableDescription | None:
    """Return the newest description of a table that was given by its path; None where Delta must be asked."""
    store = log_store(spark, target)
    if store is None:
        return None
    try:
        snapshot = followed(store, with_files=False)
        about = snapshot.metadata
        if not is_plain(snapshot.protocol, about):
            return None
        schema = T.StructType.fromJson(json.loads(about["schemaString"]))
        properties = dict(about["configuration"])
        return TableDescription(
            str(about["id"]),
            properties,
            int(about["createdTime"]),
            store.location,
            schema,
            clustered_by=snapshot.clustered_by,
            partitioned_by=tuple(about["partitionColumns"]),
            constraints=row_constraints(schema, properties, about["partitionColumns"]),
        )
    except Exception:  # whatever is wrong with the log, Delta's own error names it
        return None


def newest_commits(spark: SparkSession, target: DeltaTarget) -> Iterator[Mapping[str, Any]]:
    """Yield the `version`, `operation`, `operationParameters`, `operationMetrics` and `userMetadata` of the newest
    commits, from the newest to the oldest.

    It ends early at a commit that it cannot read, or one of which more must be known; the commits from there on must be
    asked from Delta.
    """
    store = log_store(spark, target)
    if store is None:
        return
    try:
        snapshot = followed(store, with_files=False)
        for version in range(snapshot.version, -1, -1):
            commit = snapshot.read_commit(version, ["commitInfo"])
            if commit is None:
                return
            about = commit[-1]["commitInfo"] if commit else {}
            yield {
                "version": version,
                "operation": about.get("operation"),
                "operationParameters": about.get("operationParameters"),
                "operationMetrics": about.get("operationMetrics"),
                "userMetadata": about.get("userMetadata"),
            }
    except _NOT_READ:
        return


def newest_version(spark: SparkSession, target: DeltaTarget) -> int | None:
    """The version of the newest commit; None where Delta must be asked."""
    store = log_store(spark, target)
    if store is None:
        return None
    try:
        return followed(store, with_files=False).version
    except _NOT_READ:
        return None


def is_plain(protocol: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool:
    """Whether a table has no feature, and its columns no property, besides those that this module knows: a column has
    the same name and type in its data files."""
    return _is_known(protocol) and not _has_marks(json.loads(metadata["schemaString"]))


def log_store(spark: SparkSession, target: DeltaTarget) -> Store | None:
    """The store of a table that was given by its path; None where only Spark reads its log."""
    if target.path is None or _TIME_TRAVEL.search(target.path.rstrip("/")):
        return None
    if _EXTENSION not in (backend_of(spark).setting("spark.sql.extensions") or ""):
        return None
    try:
        return store_at(spark, backend_of(spark).files.qualified(target.path))
    except Exception:  # a file system that Spark does not know or reach: Delta's error says so
        return None


def _is_known(protocol: Mapping[str, Any]) -> bool:
    read, written = protocol.get("readerFeatures"), protocol.get("writerFeatures")
    if written is None:
        return (
            read is None and protocol["minReaderVersion"] == 1 and protocol["minWriterVersion"] <= _OLD_WRITER
        )
    return {*(read or ()), *written} <= _FEATURES


def _has_marks(type: Any) -> bool:
    """Whether a column, or a field of one, has a property besides its comment: column mapping, a default, a length."""
    if isinstance(type, list):
        return any(map(_has_marks, type))
    if not isinstance(type, dict):
        return False
    return bool(set(type.get("metadata", ())) - {"comment"}) or any(map(_has_marks, type.values()))
