"""The engine `spark`: one batch is one MERGE of Delta's on Spark's executors, one atomic commit with the progress."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from bridge.columns import KIND, col, differs, estimated_bytes, retracts, same_key
from bridge.delta.delta_errors import CONFLICTS, attempts, conflict_error, error_names, table_errors
from bridge.delta.file_pruning import KEYS_BY_REFERENCE, KeyPredicate, key_predicate
from bridge.delta.ingest_progress import IngestProgress
from bridge.delta.merge_contract import MergeResult
from bridge.delta.table import Table
from bridge.delta.table_checks import refuse_unfit_properties
from bridge.delta.txn_settings import committed_version, last_version, txn_settings
from bridge.schema import quote
from bridge.session import session_settings

__all__ = ["INSERT_ALWAYS", "LEAN", "merge_with_spark"]

INSERT_ALWAYS = "__anew"
"""Optional boolean column of changes that are known to be effective: true for an add that is inserted whether or not
its key is there. A retraction of the key beside it takes all its rows away, so that one is left of several."""

_FILTER = "spark.sql.optimizer.runtime.bloomFilter.enabled"
_FILTERED_BY = "spark.sql.optimizer.runtime.bloomFilter.creationSideThreshold"
_MATERIALIZE = "spark.databricks.delta.merge.materializeSource"

LEAN = {
    # The rows of the table are joined to the changes twice, and one time as the side that an outer join does not keep:
    # Spark would shuffle all of them for a few keys. With a Bloom filter of the keys it shuffles those with a match.
    _FILTER: "true",
    "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold": "10m",
    # It makes none where one side looks small enough to broadcast, though an outer join may not do that with this one.
    # Broadcasting is then decided while it runs, by what has passed the filter.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "10m",
    **KEYS_BY_REFERENCE,
}
"""Settings under which a MERGE does not shuffle the table."""


def merge_with_spark(
    table: Table, changes: DataFrame, *, key: Sequence[str], progress: IngestProgress, persisted: bool = False
) -> MergeResult:
    """Apply `changes` to `table` and record `progress` as `merging.Merge` says.

    With the column ANEW a key may have a retraction and an add. Without `persisted` Delta makes a copy of its own.
    Settings are made on `table.spark` for this one MERGE and put back as they were, so use a session that no other
    thread writes with.
    """
    refuse_unfit_properties(table, table.properties, progress.pipeline)
    among = key_predicate(changes, key, "t") if persisted else KeyPredicate()
    # Spark makes a Bloom filter of what it takes for a selection only; this one is true of every change.
    changes = changes.where(col(KIND) > "")
    if not table.deletion_vectors and INSERT_ALWAYS not in changes.columns:
        changes = _effective(table, changes, key, among.condition)
    wanted = {
        **txn_settings(table, replace(progress, key=tuple(key))),
        **(_lean(changes, among) if persisted else {}),
    }
    if table.deletion_vectors and persisted:
        wanted[_MATERIALIZE] = "none"
    conflict: Exception | None = None
    for _ in attempts():
        try:
            with table_errors(table), session_settings(table.spark, wanted):
                counts = _run(table, changes, key, among.condition)
                version = last_version(table.spark) or -1
        except Exception as error:
            reasons = error_names(error)
            if "ConcurrentTransactionException" in reasons:
                return MergeResult(committed_version(table, progress), skipped=True)
            if not reasons & CONFLICTS:
                raise
            conflict = error
            continue
        if counts is None or not counts["num_affected_rows"]:
            # Nothing was done, or it was known already: only the table's history can tell which.
            return MergeResult(committed_version(table, progress), skipped=counts is None)
        return MergeResult(
            version, counts["num_inserted_rows"], counts["num_updated_rows"], counts["num_deleted_rows"]
        )
    raise conflict_error(table, progress.batch) from conflict


def _lean(changes: DataFrame, among: KeyPredicate) -> dict[str, str]:
    if among.exact:
        return {**LEAN, _FILTER: "false"}
    # Of the two sides the changes are to be the one that the filter is made of; they grow by a column on their way.
    return {**LEAN, _FILTERED_BY: f"{2 * estimated_bytes(changes)}b"}


def _run(table: Table, changes: DataFrame, key: Sequence[str], among: Column | None) -> Row | None:
    """Counts of the MERGE, or None when Delta skipped it because it knows the batch number."""
    values: dict[str, str | Column] = {quote(n): col(n, "s") for n in table.columns}
    rest = [f for f in table.fields if f.name not in key]
    same = same_key(key, "t", "s")
    if INSERT_ALWAYS in changes.columns:
        same = same & ~col(INSERT_ALWAYS, "s")
    if among is not None:
        same = same & among
    rows = (
        table.delta()
        .alias("t")
        .merge(changes.alias("s"), same)
        .whenMatchedDelete(retracts("s"))
        .whenMatchedUpdate(differs(rest, "t", "s"), values)
        .whenNotMatchedInsert(~retracts("s"), values)
        .execute()
        .collect()
    )
    return rows[0] if rows else None


def _effective(table: Table, changes: DataFrame, key: Sequence[str], among: Column | None) -> DataFrame:
    """`changes` without those that have nothing to change: without deletion vectors a MERGE rewrites
    the file of every matched row, whether it changes or not."""
    there = "__there"
    target = table.delta().toDF().select(*(col(n) for n in table.columns), F.lit(True).alias(there))
    if among is not None:
        target = target.alias("t").where(among)
    rest = [f for f in table.fields if f.name not in key]
    needed = F.when(retracts("s"), col(there).isNotNull()).otherwise(
        col(there).isNull() | differs(rest, "t", "s")
    )
    joined = changes.alias("s").join(target.alias("t"), same_key(key, "t", "s"), "left")
    return joined.where(needed).select("s.*")
