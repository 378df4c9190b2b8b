"""Appends the changes of a table without a primary key: each batch is one commit, with its progress."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame

from bridge.columns import col
from bridge.delta.delta_errors import table_errors
from bridge.delta.ingest_progress import IngestProgress
from bridge.delta.merge_contract import MergeResult
from bridge.delta.partition_values import lost_values, refuse_lost_values
from bridge.delta.table import Table
from bridge.delta.table_checks import refuse_unfit_properties
from bridge.delta.txn_settings import committed_version, forget_last_version, last_version, txn_settings
from bridge.session import session_settings

__all__ = ["append_batch", "appended"]


def append_batch(table: Table, changes: DataFrame, *, rows: int, progress: IngestProgress) -> MergeResult:
    """Append the table's columns of `changes` and record `progress`, both in one commit or not at all.

    `rows` is the number of changes. Delta accepts each batch number only once, so a repeated batch adds nothing. An
    append conflicts with no other writer's rows. Changes the settings of `table.spark` for this one write and restores
    them.

    Raises ConcurrentRunError when another run has committed that batch, TableError when the table does not accept the
    rows.
    """
    refuse_unfit_properties(table, table.properties, progress.pipeline, appends=True)
    progress = replace(progress, key=())
    with table_errors(table):
        version = appended(table, changes.select(*[col(name) for name in table.columns]), progress)
    if version is None:
        # Delta skipped the write, as it knows the number; the table's history has the run that used it.
        return MergeResult(committed_version(table, progress), skipped=True)
    return MergeResult(version, inserted=rows)


def appended(table: Table, rows: DataFrame, progress: IngestProgress) -> int | None:
    """Append `rows` and return the version that holds them and `progress`; None where Delta knows the batch number and
    skipped the write. Raises TableError for a row that a partition column would change; other exceptions of Spark and
    Delta are not translated."""
    with lost_values(table), session_settings(table.spark, txn_settings(table, progress)):
        forget_last_version(table.spark)
        writer = refuse_lost_values(table, rows).write.format("delta").mode("append")
        if table.target.table:
            writer.saveAsTable(table.target.table)
        else:
            writer.save(str(table.target.path))
        return last_version(table.spark)
