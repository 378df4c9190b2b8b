"""Appends the changes of a table without a primary key: each batch is one commit, with its progress."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame

from bridge.backend import Feature, backend_of
from bridge.columns import col
from bridge.delta.delta_errors import retry_conflicts
from bridge.delta.merge_contract import MergeResult
from bridge.delta.partition_values import lost_values, refuse_lost_values
from bridge.delta.rows_taken_back import checked, following
from bridge.delta.table import Table
from bridge.delta.table_checks import refuse_unfit_properties
from bridge.delta.txn_settings import append, committed_version, forget_last_version, last_version
from bridge.ingest_progress import IngestProgress


def append_batch(table: Table, changes: DataFrame, *, rows: int, progress: IngestProgress) -> MergeResult:
    """Append the table's columns of `changes` and record `progress`, both in one commit or not at all.

    `rows` is the number of changes. Delta accepts each batch number only once, so a repeated batch adds nothing. An
    append conflicts with no other writer's rows, only with a RESTORE or another description of the table.

    Raises ConcurrentRunError when another run has committed that batch, RowsTakenBack as `following` does, TableError
    when the table does not accept the rows.
    """
    refuse_unfit_properties(table, table.properties, progress.pipeline, appends=True)
    progress = replace(progress, key=())
    changes = changes.select(*[col(name) for name in table.columns])
    who, way_out = f"table {table}: batch {progress.batch}", "nothing of it is written. Start again"
    return retry_conflicts(table, lambda: appended(table, changes, progress, rows), who, way_out)


def appended(table: Table, changes: DataFrame, progress: IngestProgress, rows: int) -> MergeResult:
    """Append the `rows` of `changes` and record `progress`, once, as `append_batch` does. Raises TableError for a row
    that a partition column would change; other exceptions of Spark and Delta are not translated."""
    progress = following(table, progress)
    with lost_values(table):
        forget_last_version(table.spark)
        append(table, refuse_lost_values(table, changes), progress)
    version = last_version(table.spark)
    if version is None and backend_of(table.spark).can(Feature.SETTINGS) is not None:
        version = committed_version(table, progress)  # the session does not tell
    if version is None:
        # Delta skipped the write, as it knows the number; the table's history has the run that used it.
        return MergeResult(committed_version(table, progress), skipped=True)
    return checked(table, progress, MergeResult(version, inserted=rows))
