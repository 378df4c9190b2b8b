"""changes -> Delta for a table without a key: one batch, one append, one atomic commit with the progress."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame

from bridge.columns import col
from bridge.delta.delta_errors import table_errors
from bridge.delta.ingest_progress import IngestProgress
from bridge.delta.merge_contract import MergeResult
from bridge.delta.table import Table
from bridge.delta.table_checks import refuse_unfit_properties
from bridge.delta.txn_settings import committed_version, forget_last_version, last_version, txn_settings
from bridge.session import session_settings

__all__ = ["append_batch", "appended"]


def append_batch(table: Table, changes: DataFrame, *, rows: int, progress: IngestProgress) -> MergeResult:
    """Add the rows of `changes` (the table's columns; others are left out) and record `progress`, both or neither.

    `rows` is how many there are. Delta lets a batch number in only once, so a batch that is repeated adds nothing.
    Adding rows collides with no other writer's rows. Settings are made on `table.spark` for this one write and put
    back as they were.

    Raises ConcurrentRunError when another run has committed that batch, TableError when the table does not take the
    rows.
    """
    refuse_unfit_properties(table, table.properties, progress.pipeline, appends=True)
    progress = replace(progress, key=())
    with table_errors(table):
        version = appended(table, changes.select(*[col(name) for name in table.columns]), progress)
    if version is None:
        # Delta skipped it: the number is known. Whose it is, only the table's history can tell.
        return MergeResult(committed_version(table, progress), skipped=True)
    return MergeResult(version, inserted=rows)


def appended(table: Table, rows: DataFrame, progress: IngestProgress) -> int | None:
    """The version that holds `rows` and `progress`; None where Delta skipped them, as it knows the batch number.

    Raises what Spark and Delta do.
    """
    with session_settings(table.spark, txn_settings(table, progress)):
        forget_last_version(table.spark)
        writer = rows.write.format("delta").mode("append")
        if table.target.table:
            writer.saveAsTable(table.target.table)
        else:
            writer.save(str(table.target.path))
        return last_version(table.spark)
