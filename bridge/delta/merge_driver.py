"""The merge engine `driver`: a batch is merged in the driver with Arrow, without a Spark job, in a commit of its own.

It reads the rows with a key of the batch. Where the table has deletion vectors and the batch is small for the files
that it touches, it rewrites none of them: vectors mark the changed rows, and a new file has what they are now
(merge-on-read). Elsewhere each of these files is written anew (copy-on-write). Small files are merged as batches come
(`driver_merge.rewrites`). One more file has the changes for the feed.

It knows the table's newest version from batch to batch, and every commit claims the next one: where another writer was
first, the batch is merged anew into what that one left.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from pyspark.sql import DataFrame

from bridge.columns import KIND
from bridge.delta.changes_in_driver import Limits, collect_changes
from bridge.delta.commit_files import file_changes
from bridge.delta.delta_errors import attempts, conflict_error, replaced_error, table_error
from bridge.delta.delta_rs import open_with_delta_rs
from bridge.delta.driver_merge.actions import ChooseRewrites, row_actions
from bridge.delta.driver_merge.effects import Effects, decide_effects
from bridge.delta.driver_merge.matches import Keys, Matches, Since, find_rows, may_hold
from bridge.delta.driver_merge.rewrites import files_to_rewrite
from bridge.delta.driver_merge.timeline import intervals, not_ended
from bridge.delta.driver_tables import has_vectors, not_null_columns, refuse_unsupported_table
from bridge.delta.log_cleanup import checkpoint_if_due
from bridge.delta.merge_contract import MergeResult
from bridge.delta.merge_semantics import MergeSemantics, MergeStatement, upsert_by_key
from bridge.delta.rows_taken_back import following
from bridge.delta.system_time import after, newest_of_files
from bridge.delta.table import Table
from bridge.delta.table_checks import refuse_unfit_properties
from bridge.delta.txn_settings import committed_version
from bridge.ingest_progress import IngestProgress, app_id
from bridge.lake.commit import commit_info, write_commit
from bridge.lake.data_files import DataFile, arrow_schema, open_file
from bridge.lake.snapshot import Action, Snapshot, open_snapshot
from bridge.lake.store import at_once
from bridge.storage import store_for_writing
from bridge.ways import NotThisWay

if TYPE_CHECKING:
    import pyarrow as pa

_KEY_TWICE = "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"
_OTHER_COLUMNS = "the columns of the table have changed meanwhile"
DELETES_OTHERS = "a truncate deletes rows that the batch does not name"
_MIN_ROWS_A_CHANGE = 10
"""With fewer rows than these for each change, a copy of the files costs less than marks and later rewrites."""


@dataclass
class DriverEngine:
    """See `merge_contract`.

    It refuses tables that the driver does not reach or of which it does not know all features and types
    (`driver_tables`), and batches beyond `limits`. One object serves one table at a time: it keeps what it knows of the
    table's log.
    """

    limits: Limits | None = None
    """None: no limits."""
    min_rows_a_change: int = _MIN_ROWS_A_CHANGE
    """Rows are marked where the touched files have so many for each change."""
    choose_rewrites: ChooseRewrites = files_to_rewrite
    """Which small files a batch rewrites; see `driver_merge.rewrites`."""
    _snapshot: Snapshot | None = field(default=None, repr=False)

    def refuse(self, table: Table, changes: DataFrame, *, key: Sequence[str]) -> None:
        """Raise NotThisWay where `merge`, or `merge_history`, would raise it for these persisted `changes`, but for the
        size of the rows; writes nothing."""
        newest, received = self.received(table, changes, key)
        with _unreadable_files():
            prepared = _prepared(table, received, key, arrow_schema(newest.metadata))
            keys = Keys(prepared, key)
            if table.target.history is None:
                _refuse_duplicates(table, keys, prepared)
            self._names(newest, keys)
        _system_time(table, newest)

    def received(
        self, table: Table, changes: DataFrame | pa.Table, key: Sequence[str], more: Sequence[str] = ()
    ) -> tuple[Snapshot, pa.Table]:
        """The newest version of the table, and the changes in the driver, with `more` columns. Raises NotThisWay where
        `merge` would, or of a history `merge_history`, before it looks into files."""
        newest = self._newest(table)
        refuse_unsupported_table(newest, table.target.row_key(key))
        if isinstance(changes, DataFrame):
            return newest, collect_changes(table, changes, more, limits=self.limits)
        if self.limits is not None:
            self.limits.refuse_batch(changes.nbytes)
        return newest, changes

    def merge(
        self,
        table: Table,
        changes: DataFrame | pa.Table,
        *,
        key: Sequence[str],
        progress: IngestProgress,
        semantics: MergeSemantics = upsert_by_key,
        newest: Snapshot | None = None,
    ) -> MergeResult:
        """Merge as `merge_contract` promises. The changes are sent to the driver as Arrow, if they are not there.

        `newest` is what `received` gave: the newest version a moment later takes the version of the commit, and is
        merged into then.
        """
        statement = _statement(semantics, table, key)
        if isinstance(changes, DataFrame):
            newest, changes = self.received(table, changes, key, statement.change_columns)
        find = partial(self._find, table, changes, statement)
        return self._merge(table, changes, statement, progress, find, newest)

    def merge_history(
        self,
        table: Table,
        changes: pa.Table,
        *,
        key: Sequence[str],
        progress: IngestProgress,
        semantics: MergeSemantics = upsert_by_key,
        deletions: pa.Table | None = None,
        newest: Snapshot | None = None,
    ) -> MergeResult:
        """Merge the changes of intervals that `changes` make, one for each key and sequence, as `merge` does, into the
        version of which these are. `deletions` are those that are remembered, of any keys."""
        statement = _statement(semantics, table, table.target.row_key(key))
        find = partial(self._find_intervals, table, changes, deletions, tuple(key))
        return self._merge(table, changes, statement, progress, find, newest)

    def rows_of(self, table: Table, changes: pa.Table, key: Sequence[str]) -> pa.Table:
        """The rows that have the key of one of the `changes`, with all columns and in no order. Raises NotThisWay as
        `merge` does."""
        snapshot = self._newest(table)
        refuse_unsupported_table(snapshot, key)
        schema = arrow_schema(snapshot.metadata)
        with _unreadable_files():
            keys = Keys(_prepared(table, changes, key, schema), key)
            return _rows(self._matches(snapshot, keys, schema)[1], schema)

    def append(self, table: Table, rows: pa.Table) -> None:
        """Add rows, with the table's columns, in a commit without progress. Raises as `merge` does."""
        for _ in attempts():
            snapshot = self._newest(table)
            refuse_unsupported_table(snapshot, ())
            schema = arrow_schema(snapshot.metadata)
            with _unreadable_files():
                effects = Effects.of_new(rows.select(schema.names).cast(schema))
                actions = row_actions(
                    snapshot, {}, effects, schema, marks=False, choose_rewrites=self.choose_rewrites
                )
            info = commit_info(snapshot.version, "", (), {"numTargetRowsInserted": rows.num_rows})
            if _committed(table, snapshot, [{"commitInfo": info}, *actions]):
                return
        raise conflict_error(table, "an append")

    def _newest(self, table: Table) -> Snapshot:
        known = self._snapshot
        if known is None or known.store.location != table.location.rstrip("/"):
            known = self._snapshot = open_snapshot(store_for_writing(table.spark, table.location))
        elif not known.follow():
            known = self._snapshot = open_snapshot(known.store)
        if known.metadata["id"] != table.id:
            raise replaced_error(table)
        return known

    def _names(self, snapshot: Snapshot, keys: Keys) -> list[str]:
        """The files that may hold one of the keys."""
        names = [name for name, add in snapshot.files.items() if may_hold(add, keys)]
        if self.limits is not None:
            self.limits.refuse_touched(sum(int(snapshot.files[name]["size"]) for name in names))
        return names

    def _matches(
        self, snapshot: Snapshot, keys: Keys, schema: pa.Schema, since: Since | None = None
    ) -> tuple[dict[str, DataFile], list[Matches]]:
        """The files that may hold one of the keys, and their rows that do."""
        names = self._names(snapshot, keys)
        files = at_once(partial(open_file, snapshot, schema=schema), names)
        return dict(zip(names, files, strict=True)), find_rows(files, keys, since)

    def _find(
        self, table: Table, given: pa.Table, statement: MergeStatement, snapshot: Snapshot, schema: pa.Schema
    ) -> _Found:
        """The rows that the changes match."""
        changes, always = _by_match(_prepared(table, given, table.columns, schema), statement)
        if not changes.num_rows:
            return _Found(changes, always, {}, [])
        keys = Keys(changes, statement.key)
        _refuse_duplicates(table, keys, changes)
        return _Found(changes, always, *self._matches(snapshot, keys, schema))

    def _find_intervals(
        self,
        table: Table,
        given: pa.Table,
        deletions: pa.Table | None,
        key: tuple[str, ...],
        snapshot: Snapshot,
        schema: pa.Schema,
    ) -> _Found:
        """The changes of the intervals of a history, and the rows that they match."""
        changes = _prepared(table, given, [f.name for f in table.change_fields], schema)
        keys = Keys(changes, key)
        files, matches = self._matches(snapshot, keys, schema, not_ended(table.target, keys, changes))
        rows, of_rows = _rows(matches, schema), np.concatenate([[], *(m.changes for m in matches)])
        if self.limits is not None:
            self.limits.refuse_batch(rows.nbytes)
        if deletions is not None:
            names = (*key, *table.target.sequence_by)
            deletions = _prepared(table, deletions, names, schema)
        of_rows, at = of_rows.astype(np.int64), _system_time(table, snapshot)
        found = intervals(table.target, table.columns, keys, changes, rows, of_rows, deletions, at)
        none = found.changes.slice(0, 0)
        return _Found(found.changes, none, files, found.matches(matches), found.without_effect)

    def _merge(
        self,
        table: Table,
        changes: pa.Table,
        statement: MergeStatement,
        progress: IngestProgress,
        find: Callable[[Snapshot, pa.Schema], _Found],
        newest: Snapshot | None,
    ) -> MergeResult:
        """Merge what `find` finds in the newest version, until no other writer is first."""
        refuse_unfit_properties(table, table.properties, progress.pipeline)
        if self.limits is not None:
            self.limits.refuse_batch(changes.nbytes)
        for _ in attempts():
            snapshot, newest = newest or self._newest(table), None
            committed = snapshot.transactions.get(app_id(progress.pipeline))
            if committed is not None and committed >= progress.batch:
                return MergeResult(committed_version(table, progress), skipped=True)
            refuse_unsupported_table(snapshot, statement.key)
            progress = following(table, progress, snapshot.version)
            with _unreadable_files():
                result = self._merge_into(table, snapshot, statement, progress, find)
            if result is not None:
                return result
        raise conflict_error(table, f"batch {progress.batch}")

    def _merge_into(
        self,
        table: Table,
        snapshot: Snapshot,
        statement: MergeStatement,
        progress: IngestProgress,
        find: Callable[[Snapshot, pa.Schema], _Found],
    ) -> MergeResult | None:
        """Merge into that version; None, with nothing in the table, if another writer has committed since."""
        started = time.monotonic()
        schema = arrow_schema(snapshot.metadata)
        found = find(snapshot, schema)
        effects = decide_effects(found.changes, found.always, found.matches, statement, schema)
        _refuse_nulls(snapshot, effects)
        given = found.changes.num_rows + found.always.num_rows
        marks = has_vectors(snapshot) and self._is_small(given, found.files.values())
        actions = row_actions(
            snapshot, found.files, effects, schema, marks=marks, choose_rewrites=self.choose_rewrites
        )
        inserted, updated, deleted = (t.num_rows for t in (effects.inserted, effects.after, effects.deleted))
        metrics = {
            "numSourceRows": given,
            "numTargetRowsInserted": inserted,
            "numTargetRowsUpdated": updated,
            "numTargetRowsDeleted": deleted,
            "executionTimeMs": round(1000 * (time.monotonic() - started)),
        }
        metadata = progress.merging(table.target, statement.key).to_json(table.id)
        commit = [
            {"commitInfo": commit_info(snapshot.version, metadata, statement.key, metrics)},
            {"txn": {"appId": app_id(progress.pipeline), "version": progress.batch}},
            *actions,
        ]
        if not _committed(table, snapshot, commit):
            return None
        return MergeResult(
            snapshot.version + 1,
            inserted,
            updated,
            deleted,
            files=file_changes(actions),
            without_effect=found.without_effect,
        )

    def _is_small(self, changes: int, files: Iterable[DataFile]) -> bool:
        """Whether marks cost less than copies."""
        return sum(file.rows - len(file.marked) for file in files) >= self.min_rows_a_change * changes


@dataclass(frozen=True)
class _Found:
    """What a batch finds in one version of the table."""

    changes: pa.Table
    always: pa.Table
    """Those that match no row, whatever there is."""
    files: dict[str, DataFile]
    """Those that may have a row of a change."""
    matches: list[Matches]
    without_effect: int | None = None
    """As in MergeResult."""


def _committed(table: Table, snapshot: Snapshot, actions: Sequence[Action]) -> bool:
    """Commit the next version; False, with nothing in the table, if another writer has it."""
    version, store = snapshot.version + 1, snapshot.store
    if not write_commit(store, version, actions):
        return False
    properties, opened = snapshot.metadata["configuration"], partial(open_with_delta_rs, table)
    checkpoint_if_due(properties, table, version, store, opened)
    return True


def _system_time(table: Table, snapshot: Snapshot) -> int | None:
    """That of a batch that is merged into this version; None where the table has none."""
    history = table.target.history
    if history is None or history.system_to is None:
        return None
    return after(newest_of_files(snapshot.files.values(), history))


def _refuse_duplicates(table: Table, keys: Keys, changes: pa.Table) -> None:
    if keys.number_distinct() != changes.num_rows:
        raise table_error(table, frozenset({_KEY_TWICE})) or AssertionError(_KEY_TWICE)


def _rows(matches: Sequence[Matches], schema: pa.Schema) -> pa.Table:
    import pyarrow as pa

    return pa.concat_tables([schema.empty_table(), *(found.rows for found in matches)])


def _statement(semantics: MergeSemantics, table: Table, key: Sequence[str]) -> MergeStatement:
    """Raises NotThisWay for a statement that changes rows without a change of their key: their files are not read."""
    statement = semantics(table.columns, key)
    if statement.deletes_others:
        raise NotThisWay(DELETES_OTHERS)
    return statement


def _by_match(changes: pa.Table, statement: MergeStatement) -> tuple[pa.Table, pa.Table]:
    """The changes that match rows by their key, and those that are inserted whatever is there."""
    if statement.match_condition is None:
        return changes, changes.slice(0, 0)
    matching = statement.match_condition.mask(changes, None)
    return changes.filter(matching), changes.filter(~matching)


def _refuse_nulls(snapshot: Snapshot, effects: Effects) -> None:
    """Leave a batch with NULL in a column that is NOT NULL to Spark, whose error names it."""
    for name in not_null_columns(snapshot):
        if any(rows[name].null_count for rows in (effects.inserted, effects.after)):
            raise NotThisWay(f"a row of the batch has NULL in column {name!r}, which is NOT NULL")


def _prepared(table: Table, changes: pa.Table, columns: Sequence[str], schema: pa.Schema) -> pa.Table:
    """The changes with these columns in the types of the table, and what is none of its columns."""
    import pyarrow as pa

    if not set(table.columns) <= set(schema.names):
        raise NotThisWay(_OTHER_COLUMNS)
    more = [name for name in changes.column_names if name not in (*table.columns, KIND)]
    kind = {KIND: changes[KIND].cast("string")} if KIND in changes.column_names else {}
    return pa.table(
        {
            **{name: changes[name].cast(schema.field(name).type) for name in columns},
            **kind,
            **{name: changes[name] for name in more},
        }
    )


@contextmanager
def _unreadable_files() -> Iterator[None]:
    """Leave a table whose files are missing or damaged to an engine that says which."""
    import pyarrow as pa

    try:
        yield
    except (FileNotFoundError, pa.ArrowInvalid) as error:
        raise NotThisWay("a file of the table is missing or cannot be read") from error
