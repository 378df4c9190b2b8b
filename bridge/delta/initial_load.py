"""changes -> an empty Delta table: what MERGE would do, without its two passes."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bridge.columns import col
from bridge.delta.append import appended
from bridge.delta.delta_errors import CONFLICTS, error_names, table_errors
from bridge.delta.ingest_progress import IngestProgress
from bridge.delta.merge_contract import MergeResult
from bridge.delta.merge_semantics import SOURCE, MergeSemantics, upsert_by_key
from bridge.delta.table import Table
from bridge.delta.txn_settings import committed_version

__all__ = ["NotEmpty", "initial_load"]

_ROWS = "__rows"
_WORDS = "bridge: the table has rows"


class NotEmpty(Exception):
    """The table has rows, or got some meanwhile: nothing was done."""


def initial_load(
    table: Table,
    changes: DataFrame,
    *,
    rows: int,
    progress: IngestProgress,
    semantics: MergeSemantics = upsert_by_key,
) -> MergeResult:
    """Write the adds (+I, +U) among `changes`, `rows` of them, as `merging.Merge` says, if the table is empty.

    The write counts the table's rows as it goes, so to Delta it has read the whole of it: rows that another writer
    commits in the meantime make it fail, as they would a MERGE. `progress` names the key that they are one row each of.
    Raises NotEmpty then, and where there were rows before.
    """
    if not table.is_empty():
        raise NotEmpty
    # A bare count(*) is answered from the log alone, and Delta would not know of the reading.
    some = col(table.columns[0])
    there = table.delta().toDF().agg(F.count_if(some.isNull() | some.isNotNull()).alias(_ROWS))
    fits = F.when(col(_ROWS) == 0, F.lit(True)).otherwise(F.raise_error(F.lit(_WORDS)))
    insert = semantics(table.columns, progress.key or ()).insert
    inserted = changes.alias(SOURCE).where(F.expr(insert.when)).select(*map(col, insert.columns))
    try:
        with table_errors(table):
            version = appended(
                table, inserted.crossJoin(F.broadcast(there)).where(fits).drop(_ROWS), progress
            )
    except Exception as error:
        found = error_names(error)
        if "ConcurrentTransactionException" in found:
            return MergeResult(committed_version(table, progress), skipped=True)
        if found & CONFLICTS or _WORDS in str(error):
            raise NotEmpty from error
        raise
    if version is None:
        return MergeResult(committed_version(table, progress), skipped=True)
    return MergeResult(version, inserted=rows)
