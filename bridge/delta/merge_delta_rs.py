"""The merge engine `delta-rs`: each batch is one MERGE of delta-rs in the driver, in one commit.

It schedules no job and shuffles nothing, so a batch costs what its files cost. It rewrites whole files, where Spark
marks rows in deletion vectors, and it uses the driver's memory: `engine_choice` decides when that is better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from bridge.columns import KIND, col, estimated_bytes
from bridge.definition import Engine
from bridge.delta.delta_errors import attempts, conflict_error
from bridge.delta.delta_rs import (
    open_with_delta_rs,
    refuse_unsupported_table,
    table_errors,
    touched_bytes,
)
from bridge.delta.file_statistics import statistics_settings
from bridge.delta.ingest_progress import IngestProgress, app_id
from bridge.delta.log_cleanup import NO_HOOKS, after_commit
from bridge.delta.merge_contract import MergeResult, UnsupportedByEngine
from bridge.delta.merge_semantics import (
    SOURCE,
    TARGET,
    Delete,
    MergeSemantics,
    MergeStatement,
    Update,
    upsert_by_key,
)
from bridge.delta.table import Table
from bridge.delta.table_checks import refuse_unfit_properties
from bridge.delta.txn_settings import committed_version
from bridge.schema import quote

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import CommitProperties, DeltaTable

__all__ = ["DeltaRsEngine", "Limits", "commit_merge", "commit_properties", "key_condition"]

_MAX_KEY_BYTES = 256
"""Longer values of a key are not written into the commit."""


@dataclass(frozen=True)
class Limits:
    """How much one MERGE may process in the driver, in bytes."""

    batch_bytes: int
    """Of the changes, as Spark has cached them."""
    touched_bytes: int
    """Of the files that may hold a key of the changes, by their statistics. All of them are read, and those with a
    match are rewritten."""


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
        self._refuse_large_batch(changes)
        self._refuse_many_files(target, _source(table, changes), key)

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
        if persisted:
            self._refuse_large_batch(changes)
        source = _source(table, changes, statement.change_columns)
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
        self._refuse_size(changes.nbytes)
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
            try:
                with table_errors(table):
                    return commit_merge(target, source, table, statement, progress)
            except _commit_failed() as error:
                if "Concurrent transaction" in str(error):
                    return MergeResult(committed_version(table, progress), skipped=True)
                conflict, target = error, None
        raise conflict_error(table, progress.batch) from conflict

    def _refuse_large_batch(self, changes: DataFrame) -> None:
        if self.limits is not None:
            self._refuse_size(estimated_bytes(changes))

    def _refuse_size(self, size: int) -> None:
        if self.limits is not None and size > (limit := self.limits.batch_bytes):
            raise UnsupportedByEngine(f"the batch has {size >> 20:,} MiB, more than {limit >> 20:,} MiB")

    def _refuse_many_files(self, target: DeltaTable, source: pa.Table, key: Sequence[str]) -> None:
        if self.limits is None:
            return
        size, limit = touched_bytes(target, source, key), self.limits.touched_bytes
        if size > limit:
            raise UnsupportedByEngine(
                f"the batch touches files of {size >> 20:,} MiB, more than {limit >> 20:,} MiB"
            )


def _open(table: Table, key: Sequence[str]) -> DeltaTable:
    target = open_with_delta_rs(table)
    refuse_unsupported_table(target, table, key)
    return target


def _source(table: Table, changes: DataFrame, more: Sequence[str] = ()) -> pa.Table:
    return changes.select(*map(col, (*table.columns, *more)), KIND).toArrow()


def commit_merge(
    target: DeltaTable, source: pa.Table, table: Table, statement: MergeStatement, progress: IngestProgress
) -> MergeResult:
    """Execute `statement` with the changes `source` and commit it with `progress`, once; then maintain the log."""
    from deltalake import PostCommitHookProperties

    commit = commit_properties(table, replace(progress, key=statement.key))
    hooks = PostCommitHookProperties(**NO_HOOKS)
    merger = target.merge(
        source,
        _match_condition(source, statement),
        source_alias=SOURCE,
        target_alias=TARGET,
        # Files are pruned by the keys of the source only if delta-rs has all of it before it starts.
        streamed_exec=False,
        writer_properties=statistics_settings(table.fields),
        commit_properties=commit,
        post_commithook_properties=hooks,
    )
    for clause in statement.matched:
        if isinstance(clause, Delete):
            merger = merger.when_matched_delete(clause.when)
        else:
            merger = merger.when_matched_update(_values(clause.columns), _update_condition(clause))
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
    after_commit(target, table, result.version)
    return result


def _values(columns: Sequence[str]) -> dict[str, str]:
    return {quote(name): f"{SOURCE}.{quote(name)}" for name in columns}


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


def _update_condition(clause: Update) -> str | None:
    if clause.if_differs is None:
        return clause.when
    compared = (quote(name) for name in clause.if_differs)
    differs = " OR ".join(f"({TARGET}.{n} IS DISTINCT FROM {SOURCE}.{n})" for n in compared) or "false"
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
