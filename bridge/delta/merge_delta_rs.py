"""The engine `delta-rs`: one batch is one MERGE of delta-rs in the driver, one atomic commit with the progress.

It has no job to schedule and nothing to shuffle, so a batch costs what its files cost. It writes whole files where
Spark marks rows in deletion vectors, and it works in the driver's memory: `engine` says when that is the better way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from bridge.columns import KIND, col, estimated_bytes
from bridge.delta.delta_errors import attempts, conflict_error
from bridge.delta.delta_rs import (
    UnsupportedByEngine,
    open_with_delta_rs,
    refuse_unsupported_table,
    table_errors,
    touched_bytes,
)
from bridge.delta.file_statistics import statistics_settings
from bridge.delta.ingest_progress import IngestProgress, app_id
from bridge.delta.log_cleanup import NO_HOOKS, after_commit
from bridge.delta.merge_contract import MergeResult
from bridge.delta.table import Table
from bridge.delta.table_checks import refuse_unfit_properties
from bridge.delta.txn_settings import committed_version
from bridge.rows import RowKind
from bridge.schema import quote

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import CommitProperties, DeltaTable

__all__ = ["Limits", "merge_with_delta_rs", "refuse"]

_SOURCE, _TARGET = "__s", "__t"
_LONG = 256
"""Bytes of a key's value from which on it has no place in a commit."""
_RETRACTS = ", ".join(f"'{kind.value}'" for kind in RowKind if kind.retracts)


@dataclass(frozen=True)
class Limits:
    """How much one MERGE may take on in the driver, in bytes."""

    batch_bytes: int
    """Of the changes, as Spark has them cached."""
    touched_bytes: int
    """Of the files whose statistics allow a key of the changes; they are read, and those with a match rewritten."""


def merge_with_delta_rs(
    table: Table,
    changes: DataFrame,
    *,
    key: Sequence[str],
    progress: IngestProgress,
    persisted: bool = False,
    limits: Limits | None = None,
) -> MergeResult:
    """Apply `changes` to `table` and record `progress` as `merging.Merge` says.

    The changes come to the driver as Arrow. Raises `rust.Unfit`, with nothing done, for a table that this engine does
    not know how to keep, and for more than `limits` allow; None allows everything.
    """
    refuse_unfit_properties(table, table.properties, progress.pipeline)
    target: DeltaTable | None = _known(table, key)
    source = _source(table, changes, limits if persisted else None)
    conflict: Exception | None = None
    for _ in attempts():
        target = target or _known(table, key)
        known = target.transaction_version(app_id(progress.pipeline))
        if known is not None and known >= progress.batch:
            return MergeResult(committed_version(table, progress), skipped=True)
        _refuse_wide(target, source, key, limits)
        try:
            with table_errors(table):
                return commit_merge(target, source, table, key, progress)
        except _lost() as error:
            if "Concurrent transaction" in str(error):
                return MergeResult(committed_version(table, progress), skipped=True)
            conflict, target = error, None
    raise conflict_error(table, progress.batch) from conflict


def refuse(table: Table, changes: DataFrame, *, key: Sequence[str], limits: Limits | None) -> None:
    """Raise Unfit where `merge` would of these persisted `changes`; nothing is written."""
    target = _known(table, key)
    _refuse_wide(target, _source(table, changes, limits), key, limits)


def _known(table: Table, key: Sequence[str]) -> DeltaTable:
    target = open_with_delta_rs(table)
    refuse_unsupported_table(target, table, key)
    return target


def _source(table: Table, changes: DataFrame, limits: Limits | None) -> pa.Table:
    if limits is not None:
        _refuse_large(changes, limits.batch_bytes)
    return changes.select(*(col(name) for name in table.columns), KIND).toArrow()


def commit_merge(
    target: DeltaTable, source: pa.Table, table: Table, key: Sequence[str], progress: IngestProgress
) -> MergeResult:
    from deltalake import PostCommitHookProperties

    commit = commit_properties(table, replace(progress, key=tuple(key)))
    hooks = PostCommitHookProperties(**NO_HOOKS)
    values = {quote(name): f"{_SOURCE}.{quote(name)}" for name in table.columns}
    merger = target.merge(
        source,
        key_condition(source, key),
        source_alias=_SOURCE,
        target_alias=_TARGET,
        # Only a source that is known as a whole lets files be pruned by its keys.
        streamed_exec=False,
        writer_properties=statistics_settings(table.fields),
        commit_properties=commit,
        post_commithook_properties=hooks,
    )
    counts = (
        merger.when_matched_delete(f"{_SOURCE}.{KIND} IN ({_RETRACTS})")
        .when_matched_update(values, _differs(table, key))
        .when_not_matched_insert(values, f"{_SOURCE}.{KIND} NOT IN ({_RETRACTS})")
        .execute()
    )
    inserted, updated, deleted = (counts[f"num_target_rows_{x}"] for x in ("inserted", "updated", "deleted"))
    if not (inserted or updated or deleted):
        # delta-rs commits nothing then, and the progress would be lost.
        target.create_write_transaction(
            [], "append", target.schema(), commit_properties=commit, post_commithook_properties=hooks
        )
        done = MergeResult(committed_version(table, progress))
    else:
        done = MergeResult(target.version(), inserted, updated, deleted)
    after_commit(target, table, done.version)
    return done


def key_condition(source: pa.Table, key: Sequence[str]) -> str:
    """Null-safe equality of the key (ADR 028, rule 4). Files are pruned by `=` alone, which says the same of a column
    that has no null among the changes; but delta-rs writes the bounds that it prunes by into the commit, so not of long
    values. In parentheses: delta-rs reads AND as a part of what IS NOT DISTINCT FROM compares."""
    parts = []
    for name in key:
        same = "IS NOT DISTINCT FROM" if source[name].null_count or _is_long(source[name]) else "="
        parts.append(f"({_TARGET}.{quote(name)} {same} {_SOURCE}.{quote(name)})")
    return " AND ".join(parts)


def _is_long(values: pa.ChunkedArray) -> bool:
    import pyarrow.compute as pc
    import pyarrow.types as is_

    if not (is_.is_string(values.type) or is_.is_binary(values.type)):
        return False
    return bool((pc.max(pc.binary_length(values)).as_py() or 0) > _LONG)


def _differs(table: Table, key: Sequence[str]) -> str:
    rest = [quote(name) for name in table.columns if name not in key]
    return " OR ".join(f"({_TARGET}.{n} IS DISTINCT FROM {_SOURCE}.{n})" for n in rest) or "false"


def commit_properties(table: Table, progress: IngestProgress) -> CommitProperties:
    from deltalake import CommitProperties, Transaction

    return CommitProperties(
        custom_metadata={"userMetadata": progress.to_json(table.id)},
        app_transactions=[Transaction(app_id(progress.pipeline), progress.batch)],
    )


def _refuse_large(changes: DataFrame, most: int) -> None:
    size = estimated_bytes(changes)
    if size > most:
        raise UnsupportedByEngine(f"the batch has {size >> 20:,} MiB, more than {most >> 20:,} MiB")


def _refuse_wide(target: DeltaTable, source: pa.Table, key: Sequence[str], limits: Limits | None) -> None:
    if limits is not None and (found := touched_bytes(target, source, key)) > limits.touched_bytes:
        raise UnsupportedByEngine(
            f"the batch touches files of {found >> 20:,} MiB, more than {limits.touched_bytes >> 20:,} MiB"
        )


def _lost() -> type[Exception]:
    from deltalake.exceptions import CommitFailedError

    return CommitFailedError
