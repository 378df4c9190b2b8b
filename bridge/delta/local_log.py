"""Reads what a table is, and its newest commits, from the files of its log on a local disk: without a Spark job.

Delta answers the same questions from a snapshot of the whole log, and its first one costs a new process seconds. Where
this module could answer differently it answers None, and its callers ask Delta: another file system, a session without
Delta's extension, a log that is not complete, a table feature or a column property that it does not know.

Formats: "Delta Transaction Log Protocol" (PROTOCOL.md), actions `metaData`, `protocol` and `commitInfo`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from bridge import storage
from bridge.definition import DeltaTarget
from bridge.delta.row_constraints import row_constraints
from bridge.log_layout import commit_file, log_folder, version_of
from bridge.schema import RowConstraint

__all__ = ["TableDescription", "describe", "is_plain", "local_folder", "newest_commits", "newest_version"]

_FEATURES = {
    "appendOnly",
    "changeDataFeed",
    "checkConstraints",
    "deletionVectors",
    "invariants",
    "timestampNtz",
    "vacuumProtocolCheck",
}
"""Features that change neither where a table is described nor how."""
_OLD_WRITER = 4
"""The last writer version of the protocol without table features, column mapping and identity columns."""
_TIME_TRAVEL = re.compile(r"@(v\d+|\d{17})$")
_ACTION = re.compile(r'\s*\{\s*"(\w+)"\s*:')
_CHECKPOINT = re.compile(r"\d{20}\.checkpoint\.parquet")
_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
_COMMITS = 20


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
    place = local_folder(spark, target)
    if place is None:
        return None
    location, folder = place
    try:
        actions = _description(Path(log_folder(str(folder))))
        if actions is None or not is_plain(actions["protocol"], actions["metaData"]):
            return None
        about = actions["metaData"]
        schema = T.StructType.fromJson(json.loads(about["schemaString"]))
        properties = dict(about["configuration"])
        return TableDescription(
            str(about["id"]),
            properties,
            int(about["createdTime"]),
            location,
            schema,
            partitioned_by=tuple(about["partitionColumns"]),
            constraints=row_constraints(schema, properties, about["partitionColumns"]),
        )
    except Exception:  # whatever is wrong with the log, Delta's own error names it
        return None


def newest_commits(spark: SparkSession, target: DeltaTarget) -> Iterator[Mapping[str, Any]]:
    """Yield the `version`, `operation`, `operationParameters`, `operationMetrics` and `userMetadata` of some of the
    newest commits, from the newest to the oldest. It ends early at a commit that it cannot read.
    """
    place = local_folder(spark, target)
    if place is None:
        return
    log = Path(log_folder(str(place[1])))
    try:
        versions = _commits(os.listdir(log))
    except OSError:
        return
    for version in sorted(versions, reverse=True)[:_COMMITS]:
        try:
            about = _actions(log / commit_file(version), {"commitInfo"}).get("commitInfo", {})
        except (OSError, ValueError):
            return
        yield {
            "version": version,
            "operation": about.get("operation"),
            "operationParameters": about.get("operationParameters"),
            "operationMetrics": about.get("operationMetrics"),
            "userMetadata": about.get("userMetadata"),
        }


def newest_version(spark: SparkSession, target: DeltaTarget) -> int | None:
    """The version of the newest commit; None where Delta must be asked."""
    place = local_folder(spark, target)
    if place is None:
        return None
    try:
        names = os.listdir(log_folder(str(place[1])))
    except OSError:
        return None
    newest = max(_commits(names), default=None)
    # Where a checkpoint is newer than all commits, some were removed by hand.
    is_whole = newest == max((v for name in names if (v := version_of(name)) is not None), default=None)
    return newest if is_whole else None


def is_plain(protocol: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool:
    """Whether a table has no feature, and its columns no property, besides those that this module knows: a column has
    the same name and type in its data files."""
    return _is_known(protocol) and not _has_marks(json.loads(metadata["schemaString"]))


def local_folder(spark: SparkSession, target: DeltaTarget) -> tuple[str, Path] | None:
    """The table's folder as Spark qualifies it, and as Python does; None where it is not one of a local disk."""
    if target.path is None or _TIME_TRAVEL.search(target.path.rstrip("/")):
        return None
    if _EXTENSION not in (spark.conf.get("spark.sql.extensions", None) or ""):
        return None
    try:
        return storage.local_path(spark, target.path)
    except Exception:  # a file system that Spark does not know or reach: Delta's error says so
        return None


def _commits(names: list[str]) -> set[int]:
    return {v for name in names if name.endswith(".json") and (v := version_of(name)) is not None}


def _description(log: Path) -> Mapping[str, Any] | None:
    """The newest actions `protocol` and `metaData`; None for a log of which files are missing or are not known."""
    names = [name for name in os.listdir(log) if not name.startswith(".")]  # Hadoop's checksums
    checkpoints = [name for name in names if ".checkpoint." in name]
    if any(not _CHECKPOINT.fullmatch(name) for name in checkpoints):
        return None
    commits = _commits(names)
    checkpoint = max(checkpoints, default=None)
    base = -1 if checkpoint is None else int(checkpoint[:20])
    newest = max(commits, default=-1)
    if newest < base or newest < 0 or any(version not in commits for version in range(base + 1, newest)):
        return None
    found: dict[str, Any] = {}
    for version in range(newest, base, -1):
        found = {**_actions(log / commit_file(version), {"protocol", "metaData"}), **found}
        if len(found) == 2:
            return found
    if checkpoint is not None:
        found = {**_checkpoint_actions(log / checkpoint), **found}
    return found if len(found) == 2 else None


def _actions(file: Path, wanted: set[str]) -> dict[str, Any]:
    """The actions of a commit by their names; of several with one name the last."""
    found = {}
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            name = _ACTION.match(line)
            if name is not None and name[1] in wanted:
                found[name[1]] = json.loads(line)[name[1]]
    return found


def _checkpoint_actions(file: Path) -> dict[str, Any]:
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    found = {}
    columns = pq.read_table(file, columns=["protocol", "metaData"])
    for name in columns.column_names:
        rows = columns[name].filter(pc.is_valid(columns[name])).to_pylist()
        if len(rows) == 1:
            found[name] = rows[0]
    return found


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
