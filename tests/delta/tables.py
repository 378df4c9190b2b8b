"""Helpers of the tests of bridge.delta: a small table, the merge engines, and commits made by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from bridge.columns import KIND
from bridge.definition import DeltaTarget
from bridge.delta.merge_contract import MergeResult
from bridge.delta.merge_driver import DriverEngine
from bridge.delta.merge_spark import JOIN_SETTINGS, SparkEngine
from bridge.delta.table import Table, create_table
from bridge.ingest_progress import IngestProgress, app_id
from bridge.offsets import Offsets

FIELDS = (T.StructField("id", T.LongType()), T.StructField("v", T.StringType()))
Merge = Callable[..., MergeResult]

SMALL_TABLES = {
    **JOIN_SETTINGS,
    "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold": "0",
}
"""With these, Spark's MERGE treats small tables as it treats large ones."""
ENGINES: Mapping[str, SparkEngine | DriverEngine] = {
    "spark": SparkEngine(SMALL_TABLES),
    "marks": DriverEngine(min_rows_a_change=0),
    "copies": DriverEngine(min_rows_a_change=1 << 60),
}
"""`marks` copies files, too, where a table has no deletion vectors."""
by_spark: Merge = ENGINES["spark"].merge
by_marks: Merge = ENGINES["marks"].merge
by_copies: Merge = ENGINES["copies"].merge
on_any_table = pytest.mark.parametrize("merge", ["spark", "marks"], indirect=True)
"""For tests of tables with and without deletion vectors."""
NO_VECTORS = {"delta.enableDeletionVectors": "false"}
VECTORS = ", delta.enableDeletionVectors = true"
"""`more` of `create_fed`."""


def target(folder: Path, properties: Mapping[str, str] | None = None) -> DeltaTarget:
    return DeltaTarget(path=str(folder), properties=properties or {})


def made(
    spark: SparkSession,
    folder: Path,
    *,
    rows: Sequence[tuple[Any, ...]] = (),
    fields: Sequence[T.StructField] = FIELDS,
    properties: Mapping[str, str] | None = None,
) -> Table:
    """A table of pipeline `p` with `rows` in one file."""
    table = create_table(spark, target(folder, properties), fields, pipeline="p")
    if rows:
        append(table, rows)
    return table


def create_fed(
    spark: SparkSession, path: Path | str, columns: str, clauses: str = "", more: str = ""
) -> None:
    """Create a Delta table with a change data feed and `more` properties, as another program does."""
    properties = f"TBLPROPERTIES (delta.enableChangeDataFeed = true{more})"
    spark.sql(f"CREATE TABLE delta.`{path}` ({columns}) USING delta {clauses} {properties}")


def append(table: Table, rows: Sequence[tuple[Any, ...]], **options: str) -> None:
    frame = table.spark.createDataFrame(rows, T.StructType(list(table.fields))).coalesce(1)
    frame.write.format("delta").mode("append").options(**options).save(table.target.path)


def frame(table: Table, changes: Iterable[tuple[Any, ...]]) -> DataFrame:
    """changes from (kind, *columns)."""
    shape = T.StructType([*table.fields, T.StructField(KIND, T.StringType())])
    return table.spark.createDataFrame([(*row, kind) for kind, *row in changes], shape)


def at(batch: int, run: str = "run-1", offset: int | None = None) -> IngestProgress:
    offsets = Offsets({("t", 0): batch * 10 if offset is None else offset})
    return IngestProgress("p", run, batch, offsets, {"t": "topic-id"})


def content(table: Table) -> set[tuple[Any, ...]]:
    return {tuple(row) for row in table.delta().toDF().collect()}


def log_file(table: Table, version: int) -> Path:
    return Path(str(table.target.path)) / "_delta_log" / f"{version:020}.json"


def actions(table: Table, version: int) -> list[dict[str, Any]]:
    """One commit as Delta wrote it: {"commitInfo": …}, {"add": …}, {"cdc": …}, …"""
    return [json.loads(line) for line in log_file(table, version).read_text().splitlines()]


def kinds(table: Table, version: int) -> set[str]:
    return {key for action in actions(table, version) for key in action}


def commit_by_hand(
    table: Table,
    version: int,
    metadata: str | None = None,
    operation: str = "OPTIMIZE",
    parameters: Mapping[str, Any] | None = None,
) -> None:
    """A valid commit without rows; hundreds of real ones would take minutes."""
    info: dict[str, Any] = {"timestamp": 1_700_000_000_000 + version, "operation": operation}
    info["operationParameters"] = {key: json.dumps(value) for key, value in (parameters or {}).items()}
    if metadata:
        info["userMetadata"] = metadata
    log_file(table, version).write_text(json.dumps({"commitInfo": info}) + "\n")


def vector_id(descriptor: Mapping[str, Any] | None) -> str:
    """The unique id of a vector in the protocol; empty for a file without one."""
    if descriptor is None:
        return ""
    offset = descriptor.get("offset")
    at = "" if offset is None else f"@{offset}"
    return f"{descriptor['storageType']}{descriptor['pathOrInlineDv']}{at}"


def merged_by_delta_rs(table: Table, rows: Sequence[tuple[Any, ...]], progress: IngestProgress) -> None:
    """What an older bridge did with new rows: a MERGE of delta-rs, with wrong statistics of wide decimals."""
    from deltalake import CommitProperties, DeltaTable, Transaction, WriterProperties

    target = DeltaTable(str(table.target.path))
    data = table.spark.createDataFrame(rows, T.StructType(list(table.fields))).toArrow()
    signed = CommitProperties(
        custom_metadata={"userMetadata": progress.to_json(table.id)},
        app_transactions=[Transaction(app_id(progress.pipeline), progress.batch)],
    )
    target.merge(
        data,
        f"s.{table.columns[-1]} <> s.{table.columns[-1]}",
        source_alias="s",
        target_alias="t",
        commit_properties=signed,
        writer_properties=WriterProperties(compression="SNAPPY"),
    ).when_not_matched_insert_all().execute()
