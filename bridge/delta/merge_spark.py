"""The merge engine `spark`: each batch is one MERGE of Delta Lake on Spark's executors, in one commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import and_, or_

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.backend import HandleOfTable
from bridge.backend.plans import estimated_bytes
from bridge.column_rules import combined_with
from bridge.columns import KIND, col, differs, same_key
from bridge.delta.delta_errors import (
    CONFLICTS,
    SCHEMA_CHANGED_MEANWHILE,
    attempts,
    conflict_error,
    error_names,
    table_errors,
)
from bridge.delta.file_pruning import KEYS_BY_REFERENCE, MAX_NAMED_KEYS, KeyPredicate, key_predicate
from bridge.delta.merge_contract import MergeResult
from bridge.delta.merge_semantics import (
    KEPT,
    SOURCE,
    TARGET,
    Delete,
    MergeSemantics,
    MergeStatement,
    Update,
    upsert_by_key,
)
from bridge.delta.partition_values import lost_values, refuse_lost_values
from bridge.delta.rows_taken_back import checked, following
from bridge.delta.table import Table
from bridge.delta.table_checks import refuse_unfit_properties
from bridge.delta.txn_settings import committed_version, merging
from bridge.ingest_progress import IngestProgress
from bridge.schema import quote
from bridge.spark_versions import MERGE_OF_CACHED_SOURCE

_BLOOM_FILTER = "spark.sql.optimizer.runtime.bloomFilter.enabled"
_BLOOM_FILTER_SOURCE = "spark.sql.optimizer.runtime.bloomFilter.creationSideThreshold"

JOIN_SETTINGS = {
    # A MERGE joins the table to the changes twice, one of these an outer join that keeps all changes. Spark would
    # shuffle the whole table for a few keys. With a Bloom filter of the keys it shuffles only rows that may match.
    _BLOOM_FILTER: "true",
    "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold": "10m",
    # Spark makes no filter where one side looks small enough to broadcast, though an outer join may be unable to
    # broadcast that side. So broadcasting is decided at run time, by the rows that pass the filter.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "10m",
    **KEYS_BY_REFERENCE,
}
"""Settings under which a MERGE does not shuffle the table."""


@dataclass(frozen=True)
class SparkEngine:
    """See `merge_contract`. It supports every table and every batch."""

    join_settings: Mapping[str, str] = field(default_factory=lambda: JOIN_SETTINGS)
    """Settings for a MERGE that reads only the rows that the changes may match."""
    max_named_keys: int = MAX_NAMED_KEYS
    """See `file_pruning.key_predicate`."""

    def merge(
        self,
        table: Table,
        changes: DataFrame,
        *,
        key: Sequence[str],
        progress: IngestProgress,
        semantics: MergeSemantics = upsert_by_key,
    ) -> MergeResult:
        """Merge as `merge_contract` promises.

        Changes the settings of `table.spark` for this one MERGE and restores them, so no other thread may write in that
        session meanwhile.
        """
        refuse_unfit_properties(table, table.properties, progress.pipeline)
        statement = semantics(table.columns, key)
        predicate = KeyPredicate()
        prunes = not statement.deletes_others
        if prunes:
            predicate = key_predicate(changes, key, TARGET, max_named=self.max_named_keys)
        # Spark makes a Bloom filter only of a side that has a filter; this one is true of every change.
        changes = refuse_lost_values(table, changes.where(col(KIND) > ""))
        if not (table.deletion_vectors or statement.all_effective or statement.deletes_others):
            changes = _effective(table, changes, statement, predicate.condition)
        merge_settings = self._settings_for(changes, predicate) if prunes else {}
        if table.deletion_vectors:
            merge_settings |= MERGE_OF_CACHED_SOURCE
        conflict: Exception | None = None
        for _ in attempts():
            progress = following(table, progress)
            given = progress.merging(table.target, key)
            try:
                with lost_values(table), table_errors(table), merging(table, given, merge_settings) as merged:
                    counts = _execute(table, table.delta(), changes, statement, predicate.condition)
            except Exception as error:
                reasons = error_names(error)
                if "ConcurrentTransactionException" in reasons:
                    return MergeResult(committed_version(table, progress), skipped=True)
                if not reasons & (CONFLICTS | SCHEMA_CHANGED_MEANWHILE):
                    raise
                conflict = error
                continue
            if counts is None or not counts["num_affected_rows"]:
                # Either the batch had no effect, or Delta knew its number: only the table's history can tell which.
                result = MergeResult(committed_version(table, progress), skipped=counts is None)
            else:
                effects = (counts[f"num_{what}_rows"] for what in ("inserted", "updated", "deleted"))
                result = MergeResult(merged.version or -1, *effects)
            return checked(table, progress, result)
        raise conflict_error(table, f"batch {progress.batch}") from conflict

    def _settings_for(self, changes: DataFrame, predicate: KeyPredicate) -> dict[str, str]:
        if predicate.exact:
            return {**self.join_settings, _BLOOM_FILTER: "false"}
        # So Spark builds the filter from the changes, not from the table. Delta adds a column to them before the join.
        return {**self.join_settings, _BLOOM_FILTER_SOURCE: f"{2 * estimated_bytes(changes)}b"}


def _execute(
    table: Table,
    target: HandleOfTable,
    changes: DataFrame,
    statement: MergeStatement,
    predicate: Column | None,
) -> Row | None:
    """Counts of the MERGE into `target`, or None when Delta skipped it because it knows the batch number.

    Delta refuses to merge if the columns have changed since `target` was opened (SCHEMA_CHANGED_MEANWHILE).
    """
    on = same_key(statement.key, TARGET, SOURCE)
    if statement.match_condition is not None:
        on = on & F.expr(statement.match_condition.sql)
    if predicate is not None:
        on = on & predicate
    builder = target.alias(TARGET).merge(changes.alias(SOURCE), on)
    others, keeps = other_columns(table, target.toDF(), statement), KEPT in changes.columns
    for clause in statement.matched:
        condition = _condition(clause, table, others, keeps)
        if isinstance(clause, Delete):
            builder = builder.whenMatchedDelete(condition)
        else:
            builder = builder.whenMatchedUpdate(condition, _new_values(clause, table, keeps))
    insert = statement.insert
    builder = builder.whenNotMatchedInsert(F.expr(insert.when.sql), _values(insert.columns))
    if statement.deletes_others:
        builder = builder.whenNotMatchedBySourceDelete(statement.others or None)
    rows = builder.execute().collect()
    return rows[0] if rows else None


def other_columns(table: Table, rows: DataFrame, statement: MergeStatement) -> list[str]:
    """Return the columns of `rows` that the definition lacks, where the statement needs them; else none."""
    if not any(isinstance(clause, Delete) and clause.if_others_null for clause in statement.matched):
        return []
    return [name for name in rows.columns if name not in table.columns]


def _new_values(clause: Update, table: Table, keeps: bool) -> dict[str, str | Column]:
    if clause.to_null:
        return {quote(name): F.lit(None) for name in clause.columns}
    values = _values(clause.columns)
    if not keeps:
        return values
    kept = {
        f.name: F.when(_is_kept(f.name), _kept_value(clause, f))
        for f in table.fields
        if f.name in clause.columns
    }
    return {quote(name): value.otherwise(col(name, SOURCE)) for name, value in kept.items()}


def _kept_value(clause: Update, field: T.StructField) -> Column:
    """What a column is where a change keeps the value of the row."""
    name = field.name
    row, rule = col(name, TARGET), clause.rules.get(name)
    return row if rule is None else combined_with(rule, row, col(name, SOURCE), field)


def _is_kept(name: str) -> Column:
    return F.coalesce(F.array_contains(col(KEPT, SOURCE), name), F.lit(False))


def _values(columns: Sequence[str]) -> dict[str, str | Column]:
    return {quote(name): col(name, SOURCE) for name in columns}


def _condition(clause: Delete | Update, table: Table, others: Sequence[str], keeps: bool) -> Column | None:
    """The condition of a clause of `matched`; None for a clause that always applies."""
    conditions = [] if clause.when is None else [F.expr(clause.when.sql)]
    if isinstance(clause, Delete):
        conditions += [col(name, TARGET).isNull() for name in others if clause.if_others_null]
    elif clause.if_differs is not None and clause.to_null:
        not_null = (col(name, TARGET).isNotNull() for name in clause.if_differs)
        conditions.append(reduce(or_, not_null, F.lit(False)))
    elif clause.if_differs is not None:
        compared = [f for f in table.fields if f.name in clause.if_differs]
        if keeps:
            changed = (_changes(clause, f) for f in compared)
            conditions.append(reduce(or_, changed, F.lit(False)))
        else:
            conditions.append(differs(compared, TARGET, SOURCE))
    return reduce(and_, conditions) if conditions else None


def _changes(clause: Update, field: T.StructField) -> Column:
    """Whether the clause changes the value of a column of the row."""
    name, differs_from_row = field.name, differs([field], TARGET, SOURCE)
    if name not in clause.rules:
        return ~_is_kept(name) & differs_from_row
    combined = ~col(name, TARGET).eqNullSafe(_kept_value(clause, field))
    return F.when(_is_kept(name), combined).otherwise(differs_from_row)


def _effective(
    table: Table, changes: DataFrame, statement: MergeStatement, predicate: Column | None
) -> DataFrame:
    """Drop the changes to which no clause applies: without deletion vectors a MERGE rewrites the file of every matched
    row, whether or not the row changes."""
    exists = "__there"
    rows = table.delta().toDF()
    others = other_columns(table, rows, statement)
    target = rows.select(*(col(n) for n in (*table.columns, *others)), F.lit(True).alias(exists))
    if predicate is not None:
        target = target.alias(TARGET).where(predicate)
    on = same_key(statement.key, TARGET, SOURCE)
    if statement.match_condition is not None:
        on = on & F.expr(statement.match_condition.sql)
    applies = col(exists).isNull() & F.expr(statement.insert.when.sql)
    for clause in statement.matched:
        condition = _condition(clause, table, others, KEPT in changes.columns)
        matched = col(exists).isNotNull()
        applies = applies | (matched if condition is None else matched & condition)
    joined = changes.alias(SOURCE).join(target.alias(TARGET), on, "left")
    return joined.where(applies).select(f"{SOURCE}.*")
