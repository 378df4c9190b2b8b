"""Loads a first batch into an empty table: the effect of a MERGE without its two passes."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bridge.columns import col
from bridge.delta.append import appended
from bridge.delta.delta_errors import CONFLICTS, error_names, table_errors
from bridge.delta.merge_contract import MergeResult
from bridge.delta.merge_semantics import ADDS, SOURCE, MergeSemantics, upsert_by_key
from bridge.delta.table import Table
from bridge.delta.txn_settings import committed_version
from bridge.ingest_progress import IngestProgress
from bridge.ways import NotThisWay

__all__ = ["initial_load"]

_ROWS = "__rows"
_NOT_EMPTY = "bridge: the table has rows"


def initial_load(
    table: Table,
    changes: DataFrame,
    *,
    rows: int,
    progress: IngestProgress,
    semantics: MergeSemantics = upsert_by_key,
) -> MergeResult:
    """Append the changes that `semantics` inserts, as `MergeEngine.merge` promises, if the table is empty.

    `rows` of the changes are +I and +U. The write counts the table's rows while it runs. So Delta knows that it has
    read the table, and rows that another writer commits meanwhile make it fail, as they would a MERGE. `progress.key`
    is the key. Raises NotThisWay in this case, and where the table had rows before.
    """
    if not table.is_empty():
        raise NotThisWay("the table has rows")
    # Delta answers a plain count(*) from its log, and would not record that the table was read.
    first_column = col(table.columns[0])
    row_count = (
        table.delta().toDF().agg(F.count_if(first_column.isNull() | first_column.isNotNull()).alias(_ROWS))
    )
    is_empty = F.when(col(_ROWS) == 0, F.lit(True)).otherwise(F.raise_error(F.lit(_NOT_EMPTY)))
    insert = semantics(table.columns, progress.key or ()).insert
    inserted = changes.alias(SOURCE).where(F.expr(insert.when.sql)).select(*map(col, insert.columns))
    try:
        with table_errors(table):
            into_empty = inserted.crossJoin(F.broadcast(row_count)).where(is_empty).drop(_ROWS)
            result = appended(table, into_empty, progress, rows)
    except Exception as error:
        reasons = error_names(error)
        if "ConcurrentTransactionException" in reasons:
            return MergeResult(committed_version(table, progress), skipped=True)
        if reasons & CONFLICTS or _NOT_EMPTY in str(error):
            raise NotThisWay("the table has rows") from error
        raise
    if result.skipped or insert.when == ADDS:
        return result
    return replace(result, inserted=inserted.count())
