"""The merge engine `delta-rs`: each batch is one MERGE of delta-rs in the driver, in one commit.

It schedules no job and shuffles nothing, so a batch costs what its files cost. It rewrites whole files, where Spark
marks rows in deletion vectors, and it uses the driver's memory: `engine_choice` decides when that is better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pyspark.sql import DataFrame

from bridge.definition import Engine
from bridge.delta.changes_in_driver import Limits, collect_changes, kept_column
from bridge.delta.delta_errors import attempts, conflict_error
from bridge.delta.delta_rs import (
    all_fields,
    open_with_delta_rs,
    refuse_unsupported_table,
    table_errors,
    touched_bytes,
)
from bridge.delta.file_statistics import statistics_settings
from bridge.delta.log_cleanup import NO_HOOKS, after_commit
from bridge.delta.merge_contract import MergeResult
from bridge.delta.merge_semantics import (
    SOURCE,
    TARGET,
    Delete,
    MergeSemantics,
    MergeStatement,
    Update,
    upsert_by_key,
)
from bridge.delta.rows_taken_back import checked, following
from bridge.delta.table import Table
from bridge.delta.table_checks import refuse_unfit_properties
from bridge.delta.table_store import opened_store
from bridge.delta.txn_settings import committed_version
from bridge.ingest_progress import IngestProgress, app_id
from bridge.lake.local_store import LocalStore
from bridge.lake.snapshot import Snapshot
from bridge.log_layout import commit_path
from bridge.schema import quote

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import CommitProperties, DeltaTable

__all__ = [
    "DeltaRsEngine",
    "commit_merge",
    "commit_properties",
    "key_condition",
]

_MAX_KEY_BYTES = 256
"""Longer values of a key are not written into the commit."""


@dataclass(frozen=True)
class DeltaRsEngine:
    """See `merge_contract.MergeEngine`.

    It refuses tables that delta-rs does not handle as Spark does (see `delta_rs`), and batches beyond `limits`.
    """

    name = Engine.DELTA_RS

    limits: Limits | None = None
    """None: no limits. For changes that are not persisted only the touched files count, as their size is unknown."""

    def refuse(self, table: Table, changes: DataFrame, *, key: Sequence[str]) -> None:
        """Raise UnsupportedByEngine where `merge` would raise it for these persisted `changes`; writes nothing."""
        target = _open(table, key)
        self._refuse_many_files(target, collect_changes(table, changes, limits=self.limits), key)

    def merge(
        self,
        table: Table,
        changes: DataFrame,
        *,
        key: Sequence[str],
        progress: IngestProgress,
        persisted: bool = False,
        semantics: MergeSemantics = upsert_by_key,
    ) -> MergeResult:
        """Merge as `MergeEngine.merge` promises. The changes are sent to the driver as Arrow."""
        refuse_unfit_properties(table, table.properties, progress.pipeline)
        statement = semantics(table.columns, key)
        target = _open(table, key)
        limits = self.limits if persisted else None
        source = collect_changes(table, changes, statement.change_columns, limits=limits)
        return self._merge(target, table, source, statement, progress)

    def merge_arrow(
        self,
        table: Table,
        changes: pa.Table,
        *,
        key: Sequence[str],
        progress: IngestProgress,
        semantics: MergeSemantics = upsert_by_key,
    ) -> MergeResult:
        """Do as `merge`, with changes that are in the driver already: the columns that `merge` asks for."""
        refuse_unfit_properties(table, table.properties, progress.pipeline)
        target = _open(table, key)
        if self.limits is not None:
            self.limits.refuse_batch(changes.nbytes)
        return self._merge(target, table, changes, semantics(table.columns, key), progress)

    def _merge(
        self,
        opened: DeltaTable,
        table: Table,
        source: pa.Table,
        statement: MergeStatement,
        progress: IngestProgress,
    ) -> MergeResult:
        target: DeltaTable | None = opened
        conflict: Exception | None = None
        for _ in attempts():
            target = target or _open(table, statement.key)
            committed_batch = target.transaction_version(app_id(progress.pipeline))
            if committed_batch is not None and committed_batch >= progress.batch:
                return MergeResult(committed_version(table, progress), skipped=True)
            self._refuse_many_files(target, source, statement.key)
            progress = following(table, progress, target.version())
            try:
                with table_errors(table):
                    result = commit_merge(target, source, table, statement, progress)
                return checked(table, progress, result)
            except _commit_failed() as error:
                if "Concurrent transaction" in str(error):
                    return MergeResult(committed_version(table, progress), skipped=True)
                conflict, target = error, None
        raise conflict_error(table, progress.batch) from conflict

    def _refuse_many_files(self, target: DeltaTable, source: pa.Table, key: Sequence[str]) -> None:
        if self.limits is not None:
            self.limits.refuse_touched(touched_bytes(target, source, key))


def _open(table: Table, key: Sequence[str]) -> DeltaTable:
    target = open_with_delta_rs(table)
    refuse_unsupported_table(target, table, key)
    return target


def commit_merge(
    target: DeltaTable, source: pa.Table, table: Table, statement: MergeStatement, progress: IngestProgress
) -> MergeResult:
    """Execute `statement` with the changes `source` and commit it with `progress`, once; then maintain the log."""
    from deltalake import PostCommitHookProperties

    fields = all_fields(target)
    commit = commit_properties(table, progress.merging(table.target, statement.key))
    hooks = PostCommitHookProperties(**NO_HOOKS)
    merger = target.merge(
        source,
        _match_condition(source, statement),
        source_alias=SOURCE,
        target_alias=TARGET,
        # Files are pruned by the keys of the source only if delta-rs has all of it before it starts.
        streamed_exec=False,
        writer_properties=statistics_settings(fields),
        commit_properties=commit,
        post_commithook_properties=hooks,
    )
    others = [f.name for f in fields if f.name not in table.columns]
    for clause in statement.matched:
        if isinstance(clause, Delete):
            merger = merger.when_matched_delete(_delete_condition(clause, others))
        else:
            condition = _update_condition(clause, source.column_names)
            merger = merger.when_matched_update(_new_values(clause, source.column_names), condition)
    insert = statement.insert
    counts = merger.when_not_matched_insert(_values(insert.columns), insert.when).execute()
    inserted, updated, deleted = (counts[f"num_target_rows_{x}"] for x in ("inserted", "updated", "deleted"))
    if inserted or updated or deleted:
        result = MergeResult(target.version(), inserted, updated, deleted)
    else:
        # delta-rs commits nothing in this case, and the progress would be lost.
        target.create_write_transaction(
            [], "append", target.schema(), commit_properties=commit, post_commithook_properties=hooks
        )
        result = MergeResult(committed_version(table, progress))
    _sync(target, result.version)
    after_commit(target, table, result.version)
    return result


def _sync(target: DeltaTable, version: int) -> None:
    """Put a commit and its files on a local disk, as delta-rs does not: no later loss of power takes the batch back."""
    store = opened_store(target)
    commit = Snapshot(store).read_commit(version) if isinstance(store, LocalStore) else None
    if isinstance(store, LocalStore) and commit is not None:
        added = (action[name]["path"] for action in commit for name in ("add", "cdc") if name in action)
        store.flush([*map(unquote, added), commit_path(version)])


def _values(columns: Sequence[str]) -> dict[str, str]:
    return {quote(name): f"{SOURCE}.{quote(name)}" for name in columns}


def _new_values(clause: Update, source_columns: Sequence[str]) -> dict[str, str]:
    values = dict.fromkeys(map(quote, clause.columns), "NULL") if clause.to_null else _values(clause.columns)
    for name in clause.columns:
        if kept_column(name) in source_columns and not clause.to_null:
            row, change = f"{TARGET}.{quote(name)}", values[quote(name)]
            values[quote(name)] = (
                f"CASE WHEN {SOURCE}.{quote(kept_column(name))} THEN {row} ELSE {change} END"
            )
    return values


def _match_condition(source: pa.Table, statement: MergeStatement) -> str:
    same_key = key_condition(source, statement.key)
    more = statement.match_condition
    return same_key if more is None else f"{same_key} AND ({more})"


def key_condition(source: pa.Table, key: Sequence[str]) -> str:
    """Null-safe equality of the key (ADR 028, rule 4), as SQL.

    delta-rs prunes files by `=` alone, which is the same for a column without a null among the changes. It writes the
    bounds by which it prunes into the commit, so `=` is not used for a column with long values. Each comparison is in
    parentheses, as delta-rs parses `a IS NOT DISTINCT FROM b AND c` as a comparison with `b AND c`.
    """
    parts = []
    for name in key:
        values = source[name]
        same = "IS NOT DISTINCT FROM" if values.null_count or _has_long_values(values) else "="
        parts.append(f"({TARGET}.{quote(name)} {same} {SOURCE}.{quote(name)})")
    return " AND ".join(parts)


def _has_long_values(values: pa.ChunkedArray) -> bool:
    import pyarrow.compute as pc
    import pyarrow.types as is_

    if not (is_.is_string(values.type) or is_.is_binary(values.type)):
        return False
    return bool((pc.max(pc.binary_length(values)).as_py() or 0) > _MAX_KEY_BYTES)


def _delete_condition(clause: Delete, others: Sequence[str]) -> str:
    are_null = [f"({TARGET}.{quote(name)} IS NULL)" for name in others if clause.if_others_null]
    return " AND ".join([f"({clause.when})", *are_null])


def _update_condition(clause: Update, source_columns: Sequence[str]) -> str | None:
    if clause.if_differs is None:
        return clause.when

    def is_changed(name: str) -> str:
        row, change = f"{TARGET}.{quote(name)}", f"{SOURCE}.{quote(name)}"
        if clause.to_null:
            return f"({row} IS NOT NULL)"
        if kept_column(name) in source_columns:
            return f"(NOT {SOURCE}.{quote(kept_column(name))} AND ({row} IS DISTINCT FROM {change}))"
        return f"({row} IS DISTINCT FROM {change})"

    differs = " OR ".join(map(is_changed, clause.if_differs)) or "false"
    return differs if clause.when is None else f"({clause.when}) AND ({differs})"


def commit_properties(table: Table, progress: IngestProgress) -> CommitProperties:
    """What the commit carries beside the rows: the progress, and the batch number that Delta accepts only once."""
    from deltalake import CommitProperties, Transaction

    return CommitProperties(
        custom_metadata={"userMetadata": progress.to_json(table.id)},
        app_transactions=[Transaction(app_id(progress.pipeline), progress.batch)],
    )


def _commit_failed() -> type[Exception]:
    from deltalake.exceptions import CommitFailedError

    return CommitFailedError
