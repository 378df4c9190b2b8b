"""The merge engine `deletion-vectors`: a batch marks the rows that it changes and adds their new ones, in the driver.

It reads the rows with a key of the batch, and rewrites no file for them: a deletion vector marks them, one new data
file has their new rows and one file the batch's changes for the feed, and one commit adds all of it. So a few changes
of a large table cost what reading costs (merge-on-read, where delta-rs copies files on write). Small files are merged
as batches come (`deletion_vectors.rewrites`).

It knows the table's newest version from batch to batch, and every commit claims the next one: where another writer was
first, the batch is merged anew into what that one left.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from pyroaring import BitMap
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from bridge.columns import KIND
from bridge.definition import Engine
from bridge.delta.changes_in_driver import Limits, collect_changes
from bridge.delta.commit_files import file_changes
from bridge.delta.deletion_vectors.commit import commit_info, mark_rows, removed, write_commit
from bridge.delta.deletion_vectors.data_files import DataFile, arrow_schema, open_file
from bridge.delta.deletion_vectors.effects import Effects, decide_effects
from bridge.delta.deletion_vectors.matches import Keys, find_rows, may_hold
from bridge.delta.deletion_vectors.new_files import write_change_file, write_data_file
from bridge.delta.deletion_vectors.rewrites import files_to_rewrite
from bridge.delta.deletion_vectors.statistics import columns_with_statistics
from bridge.delta.delta_errors import attempts, conflict_error, replaced_error, table_error
from bridge.delta.delta_rs import open_with_delta_rs, refuse_partitions, refuse_unsupported_features
from bridge.delta.log_cleanup import checkpoint_if_due
from bridge.delta.merge_contract import MergeResult
from bridge.delta.merge_semantics import KEPT, MergeSemantics, upsert_by_key
from bridge.delta.rows_taken_back import following
from bridge.delta.table import Table
from bridge.delta.table_checks import CHANGE_FEED_PROPERTY, is_on, refuse_unfit_properties
from bridge.delta.table_store import store_for_writing
from bridge.delta.txn_settings import committed_version
from bridge.ingest_progress import IngestProgress, app_id
from bridge.lake.snapshot import Action, Snapshot, live_rows, open_snapshot
from bridge.lake.store import at_once
from bridge.lake.unsupported import UnsupportedByEngine

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DeletionVectorsEngine"]

_VECTORS = "deletionVectors"
_KEY_TWICE = "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"
_MIN_ROWS_A_CHANGE = 10
"""With fewer rows than these for each change, a copy of the files costs less than marks and later rewrites."""


@dataclass
class DeletionVectorsEngine:
    """See `merge_contract.MergeEngine`.

    It refuses tables that the driver does not reach, that have no deletion vectors, or that have what `delta_rs`
    refuses; semantics other than `upsert_by_key`; and batches beyond `limits`. One object serves one table at a time:
    it keeps what it knows of the table's log.
    """

    name = Engine.DELETION_VECTORS

    limits: Limits | None = None
    """None: no limits, and no look at whether the batch is small for the table."""
    choose_rewrites: Callable[[Mapping[str, Action], Mapping[str, int], int], list[str]] = files_to_rewrite
    """Which files a batch rewrites; see `deletion_vectors.rewrites`."""
    _snapshot: Snapshot | None = field(default=None, repr=False)

    def refuse(self, table: Table, changes: DataFrame, *, key: Sequence[str]) -> None:
        """Raise UnsupportedByEngine where `merge` would raise it for these persisted `changes`; writes nothing."""
        snapshot = self._newest(table)
        _refuse_unsupported(snapshot, key)
        source = collect_changes(table, _without_kept(changes), limits=self.limits)
        prepared = _prepared(table, source, arrow_schema(snapshot.metadata))
        with _unreadable_files():
            self._candidates(table, snapshot, prepared, key)

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
        _refuse_other_semantics(semantics)
        _refuse_unsupported(self._newest(table), key)
        limits = self.limits if persisted else None
        source = collect_changes(table, _without_kept(changes), limits=limits)
        return self.merge_arrow(table, source, key=key, progress=progress, semantics=semantics)

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
        _refuse_other_semantics(semantics)
        if self.limits is not None:
            self.limits.refuse_batch(changes.nbytes)
        for _ in attempts():
            snapshot = self._newest(table)
            committed = snapshot.transactions.get(app_id(progress.pipeline))
            if committed is not None and committed >= progress.batch:
                return MergeResult(committed_version(table, progress), skipped=True)
            _refuse_unsupported(snapshot, key)
            progress = following(table, progress, snapshot.version)
            with _unreadable_files():
                result = self._merge(table, snapshot, changes, key, progress)
            if result is not None:
                return result
        raise conflict_error(table, progress.batch)

    def _newest(self, table: Table) -> Snapshot:
        known = self._snapshot
        if known is None or known.store.location != table.location.rstrip("/"):
            known = self._snapshot = open_snapshot(store_for_writing(table.spark, table.location))
        elif not known.follow():
            known = self._snapshot = open_snapshot(known.store)
        if known.metadata["id"] != table.id:
            raise replaced_error(table)
        return known

    def _candidates(
        self, table: Table, snapshot: Snapshot, changes: pa.Table, key: Sequence[str]
    ) -> tuple[Keys, list[str]]:
        """The keys of the changes, and the files that may hold one of them."""
        keys = Keys(changes, key)
        if keys.number_distinct() != changes.num_rows:
            raise table_error(table, frozenset({_KEY_TWICE})) or AssertionError(_KEY_TWICE)
        names = [name for name, add in snapshot.files.items() if may_hold(add, keys)]
        if self.limits is not None:
            self.limits.refuse_touched(sum(int(snapshot.files[name]["size"]) for name in names))
            rows = sum(live_rows(snapshot.files[name]) or 0 for name in names)
            if rows < _MIN_ROWS_A_CHANGE * changes.num_rows:
                raise UnsupportedByEngine(
                    f"the batch has {changes.num_rows:,} changes for {rows:,} rows in the files it touches"
                )
        return keys, names

    def _merge(
        self, table: Table, snapshot: Snapshot, given: pa.Table, key: Sequence[str], progress: IngestProgress
    ) -> MergeResult | None:
        """Merge into that version; None, with nothing in the table, if another writer has committed since."""
        started = time.monotonic()
        schema = arrow_schema(snapshot.metadata)
        changes = _prepared(table, given, schema)
        files: dict[str, DataFile] = {}
        matches = []
        if changes.num_rows:
            keys, names = self._candidates(table, snapshot, changes, key)
            files = dict(zip(names, at_once(partial(open_file, snapshot, schema=schema), names), strict=True))
            matches = find_rows(list(files.values()), keys)
        effects = decide_effects(changes, matches, key, schema)
        actions = [] if effects.are_none else self._row_actions(snapshot, files, effects, schema)
        inserted, updated, deleted = (t.num_rows for t in (effects.inserted, effects.after, effects.deleted))
        metrics = {
            "numSourceRows": changes.num_rows,
            "numTargetRowsInserted": inserted,
            "numTargetRowsUpdated": updated,
            "numTargetRowsDeleted": deleted,
            "executionTimeMs": round(1000 * (time.monotonic() - started)),
        }
        metadata = progress.merging(table.target, key).to_json(table.id)
        version = snapshot.version + 1
        done = write_commit(
            snapshot.store,
            version,
            [
                {"commitInfo": commit_info(snapshot.version, metadata, key, metrics)},
                {"txn": {"appId": app_id(progress.pipeline), "version": progress.batch}},
                *actions,
            ],
        )
        if not done:
            return None
        checkpoint_if_due(
            snapshot.metadata["configuration"],
            table,
            version,
            snapshot.store,
            partial(open_with_delta_rs, table),
        )
        return MergeResult(version, inserted, updated, deleted, files=file_changes(actions))

    def _row_actions(
        self, snapshot: Snapshot, files: dict[str, DataFile], effects: Effects, schema: pa.Schema
    ) -> list[Action]:
        """Write what changes, and return the actions that change it."""
        import pyarrow as pa

        properties, store = snapshot.metadata["configuration"], snapshot.store
        fresh = [effects.after, effects.inserted]
        counts = {name: positions.size for name, positions in effects.marked.items()}
        rewritten = self.choose_rewrites(snapshot.files, counts, sum(rows.num_rows for rows in fresh))
        for file in at_once(lambda name: files.get(name) or open_file(snapshot, name, schema), rewritten):
            fresh.append(_kept_rows(file, effects))
        marked = {name: at for name, at in effects.marked.items() if name not in rewritten}
        rows = pa.concat_tables(fresh)
        columns = columns_with_statistics(properties, len(schema))

        def new_rows() -> list[Action]:
            return [{"add": write_data_file(store, rows, columns)}] if rows.num_rows else []

        def changes() -> list[Action]:
            # Readers of the feed take a commit's new files as inserts, unless it has files of the feed.
            wanted = is_on(properties, CHANGE_FEED_PROPERTY) and (effects.marked or rewritten)
            return [{"cdc": write_change_file(store, effects)}] if wanted else []

        written = at_once(
            lambda write: write(),
            [lambda: mark_rows(store, [files[name] for name in marked], marked), new_rows, changes],
        )
        removes: list[Action] = [{"remove": removed(snapshot.files[name])} for name in rewritten]
        return [*removes, *(action for actions in written for action in actions)]


def _refuse_other_semantics(semantics: MergeSemantics) -> None:
    if semantics is not upsert_by_key:
        raise UnsupportedByEngine("the batch does more than merge whole rows by their key")


def _without_kept(changes: DataFrame) -> DataFrame:
    if KEPT in changes.columns:
        raise UnsupportedByEngine("changes leave values out")
    return changes


def _refuse_unsupported(snapshot: Snapshot, key: Sequence[str]) -> None:
    """Raise UnsupportedByEngine for a table that the engine does not merge."""
    metadata, protocol = snapshot.metadata, snapshot.protocol
    properties = metadata["configuration"]
    if _VECTORS not in (protocol.get("writerFeatures") or ()) or not is_on(
        properties, "delta.enableDeletionVectors"
    ):
        raise UnsupportedByEngine("the table has no deletion vectors")
    refuse_partitions(metadata["partitionColumns"])
    refuse_unsupported_features(
        protocol.get("readerFeatures"),
        protocol.get("writerFeatures"),
        int(protocol["minWriterVersion"]),
        properties,
        T.StructType.fromJson(json.loads(metadata["schemaString"])).fields,
        key,
    )


def _prepared(table: Table, changes: pa.Table, schema: pa.Schema) -> pa.Table:
    """The changes in the types of the table."""
    import pyarrow as pa

    if not set(table.columns) <= set(schema.names):
        raise UnsupportedByEngine("the columns of the table have changed meanwhile")
    return pa.table(
        {
            **{name: changes[name].cast(schema.field(name).type) for name in table.columns},
            KIND: changes[KIND].cast("string"),
        }
    )


@contextmanager
def _unreadable_files() -> Iterator[None]:
    """Leave a table whose files are missing or damaged to an engine that says which."""
    import pyarrow as pa

    try:
        yield
    except (FileNotFoundError, pa.ArrowInvalid) as error:
        raise UnsupportedByEngine("a file of the table is missing or cannot be read") from error


def _kept_rows(file: DataFile, effects: Effects) -> pa.Table:
    """The rows of a file that the batch neither deletes nor updates."""
    vector = file.marked | BitMap(effects.marked.get(file.name, np.empty(0, np.int64)).tolist())
    kept = np.ones(file.rows, np.bool_)
    kept[np.fromiter(vector, np.int64, len(vector))] = False
    return file.read(range(file.parquet.num_row_groups), file.schema.names).filter(kept)
