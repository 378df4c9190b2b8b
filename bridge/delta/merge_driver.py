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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from pyroaring import BitMap
from pyspark.sql import DataFrame

from bridge.backend.plans import estimated_bytes
from bridge.columns import KIND, col
from bridge.delta.changes_in_driver import Limits, collect_changes
from bridge.delta.commit_files import file_changes
from bridge.delta.delta_errors import attempts, conflict_error, replaced_error, table_error
from bridge.delta.delta_rs import open_with_delta_rs
from bridge.delta.driver_merge.effects import Effects, decide_effects
from bridge.delta.driver_merge.matches import Keys, find_rows, may_hold
from bridge.delta.driver_merge.rewrites import files_to_rewrite
from bridge.delta.driver_tables import has_vectors, not_null_columns, refuse_unsupported_table
from bridge.delta.log_cleanup import checkpoint_if_due
from bridge.delta.merge_contract import MergeResult
from bridge.delta.merge_semantics import MergeSemantics, MergeStatement, upsert_by_key
from bridge.delta.rows_taken_back import following
from bridge.delta.table import Table
from bridge.delta.table_checks import CHANGE_FEED_PROPERTY, is_on, refuse_unfit_properties
from bridge.delta.txn_settings import committed_version
from bridge.ingest_progress import IngestProgress, app_id
from bridge.lake.commit import commit_info, mark_rows, refuse_gap, removed, write_commit
from bridge.lake.data_files import DataFile, arrow_schema, open_file
from bridge.lake.new_files import write_change_file, write_parts
from bridge.lake.snapshot import Action, Snapshot, open_snapshot
from bridge.lake.statistics import columns_with_statistics
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
_COPIES_AT_ONCE = 2
"""Each has a row group of its file in memory, and the file that it writes."""


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
    choose_rewrites: Callable[[Mapping[str, Action], Mapping[str, int], int], list[str]] = files_to_rewrite
    """Which small files a batch rewrites; see `driver_merge.rewrites`."""
    _snapshot: Snapshot | None = field(default=None, repr=False)

    def refuse(self, table: Table, changes: DataFrame, *, key: Sequence[str]) -> None:
        """Raise NotThisWay where `merge` would raise it for these persisted `changes`; writes nothing."""
        snapshot = self._newest(table)
        refuse_unsupported_table(snapshot, key)
        source = collect_changes(table, changes, limits=self.limits)
        prepared = _prepared(table, source, arrow_schema(snapshot.metadata))
        with _unreadable_files():
            self._candidates(table, snapshot, prepared, key)

    def merge(
        self,
        table: Table,
        changes: DataFrame | pa.Table,
        *,
        key: Sequence[str],
        progress: IngestProgress,
        semantics: MergeSemantics = upsert_by_key,
    ) -> MergeResult:
        """Merge as `merge_contract` promises. The changes are sent to the driver as Arrow, if they are not there."""
        statement, known = _statement(semantics, table, key), None
        if isinstance(changes, DataFrame):
            # The newest version a moment later takes the version of the commit, and is merged into then.
            known = self._newest(table)
            refuse_unsupported_table(known, key)
            changes = collect_changes(table, changes, statement.change_columns, limits=self.limits)
        refuse_unfit_properties(table, table.properties, progress.pipeline)
        if self.limits is not None:
            self.limits.refuse_batch(changes.nbytes)
        for _ in attempts():
            snapshot, known = known or self._newest(table), None
            committed = snapshot.transactions.get(app_id(progress.pipeline))
            if committed is not None and committed >= progress.batch:
                return MergeResult(committed_version(table, progress), skipped=True)
            refuse_unsupported_table(snapshot, key)
            progress = following(table, progress, snapshot.version)
            with _unreadable_files():
                result = self._merge(table, snapshot, changes, statement, progress)
            if result is not None:
                return result
        raise conflict_error(table, progress.batch)

    def rows_since(self, table: Table, changes: DataFrame, key: Sequence[str]) -> pa.Table:
        """The rows of a history that have the key of one of the persisted `changes` and do not end before the first
        sequence among all of these, in the table's columns and no order. Raises NotThisWay as `merge` does for a change
        of each of these keys, and where the rows are beyond `limits`."""
        import pyarrow as pa
        import pyarrow.compute as pc

        assert table.target.history is not None
        snapshot = self._newest(table)
        refuse_unsupported_table(snapshot, key)
        schema, columns = arrow_schema(snapshot.metadata), list(table.columns)
        if not set(columns) <= set(schema.names):
            raise NotThisWay(_OTHER_COLUMNS)
        if self.limits is not None:
            self.limits.refuse_batch(estimated_bytes(changes))
        (sequence,), end = table.target.sequence_by, table.target.history.valid_to
        given = changes.select(*map(col, (*key, sequence))).toArrow()
        found = [pa.schema([schema.field(name) for name in columns]).empty_table()]
        if given.num_rows:
            keys = given.group_by(list(key)).aggregate([])
            keys = pa.table({name: keys[name].cast(schema.field(name).type) for name in key})
            first = pc.min(given[sequence].cast(schema.field(end).type))
            with _unreadable_files():
                wanted, names = self._candidates(table, snapshot, keys, key)
                files = at_once(partial(open_file, snapshot, schema=schema), names)
                for rows in (matches.rows.select(columns) for matches in find_rows(files, wanted)):
                    is_late = pc.fill_null(pc.greater_equal(rows[end], first), True)
                    found.append(rows.filter(is_late))
        result = pa.concat_tables(found)
        if self.limits is not None:
            self.limits.refuse_batch(result.nbytes)
        return result

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
        return keys, names

    def _merge(
        self,
        table: Table,
        snapshot: Snapshot,
        given: pa.Table,
        statement: MergeStatement,
        progress: IngestProgress,
    ) -> MergeResult | None:
        """Merge into that version; None, with nothing in the table, if another writer has committed since."""
        started = time.monotonic()
        schema = arrow_schema(snapshot.metadata)
        changes, always = _by_match(_prepared(table, given, schema), statement)
        files: dict[str, DataFile] = {}
        matches = []
        if changes.num_rows:
            keys, names = self._candidates(table, snapshot, changes, statement.key)
            files = dict(zip(names, at_once(partial(open_file, snapshot, schema=schema), names), strict=True))
            matches = find_rows(list(files.values()), keys)
        effects = decide_effects(changes, always, matches, statement, schema)
        _refuse_nulls(snapshot, effects)
        marks = has_vectors(snapshot) and self._is_small(given.num_rows, files.values())
        actions = self._row_actions(snapshot, files, effects, schema, marks)
        inserted, updated, deleted = (t.num_rows for t in (effects.inserted, effects.after, effects.deleted))
        metrics = {
            "numSourceRows": given.num_rows,
            "numTargetRowsInserted": inserted,
            "numTargetRowsUpdated": updated,
            "numTargetRowsDeleted": deleted,
            "executionTimeMs": round(1000 * (time.monotonic() - started)),
        }
        metadata = progress.merging(table.target, statement.key).to_json(table.id)
        version = snapshot.version + 1
        done = write_commit(
            snapshot.store,
            version,
            [
                {"commitInfo": commit_info(snapshot.version, metadata, statement.key, metrics)},
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

    def _is_small(self, changes: int, files: Iterable[DataFile]) -> bool:
        """Whether marks cost less than copies."""
        return sum(file.rows - len(file.marked) for file in files) >= self.min_rows_a_change * changes

    def _row_actions(
        self,
        snapshot: Snapshot,
        files: dict[str, DataFile],
        effects: Effects,
        schema: pa.Schema,
        marks: bool,
    ) -> list[Action]:
        """Write what changes, and return the actions that change it. Raises ValueError for a log with a gap."""
        properties, store = snapshot.metadata["configuration"], snapshot.store
        if effects.are_none:
            refuse_gap(store, snapshot.version + 1)
            return []
        columns = columns_with_statistics(properties, len(schema))
        counts = {name: positions.size for name, positions in effects.marked.items()}
        new = effects.inserted.num_rows + (effects.after.num_rows if marks else 0)
        merged = self.choose_rewrites(snapshot.files, counts, new)
        touched = [name for name in effects.marked if name not in merged]
        marked = touched if marks else []
        copied = [] if marks else touched

        def together() -> Iterator[pa.Table]:
            yield effects.inserted
            for name in (*marked, *merged):
                yield effects.after_of(name)
            for file in at_once(lambda name: files.get(name) or open_file(snapshot, name, schema), merged):
                yield from _kept_rows(file, effects)

        def copy(name: str) -> Iterator[pa.Table]:
            yield from _kept_rows(files[name], effects)
            yield effects.after_of(name)

        def new_files() -> list[Action]:
            # Shared by threads: the store, and effects, as Arrow's arrays are immutable. Each copies its own file.
            with ThreadPoolExecutor(_COPIES_AT_ONCE, "copy-files") as pool:
                parts = [together(), *map(copy, copied)]
                adds = pool.map(lambda rows: write_parts(store, rows, schema, columns), parts)
                return [{"add": add} for add in adds if add is not None]

        def changes() -> list[Action]:
            # Readers of the feed take a commit's new files as inserts, unless it has files of the feed.
            wanted = is_on(properties, CHANGE_FEED_PROPERTY) and (effects.marked or merged)
            return [{"cdc": write_change_file(store, effects.by_type)}] if wanted else []

        def no_gap() -> list[Action]:
            refuse_gap(store, snapshot.version + 1)
            return []

        written = at_once(
            lambda write: write(),
            [
                no_gap,
                lambda: mark_rows(
                    store, [files[name] for name in marked], {n: effects.marked[n] for n in marked}
                ),
                new_files,
                changes,
            ],
        )
        removes: list[Action] = [{"remove": removed(snapshot.files[name])} for name in (*merged, *copied)]
        return [*removes, *(action for actions in written for action in actions)]


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


def _prepared(table: Table, changes: pa.Table, schema: pa.Schema) -> pa.Table:
    """The changes in the types of the table."""
    import pyarrow as pa

    if not set(table.columns) <= set(schema.names):
        raise NotThisWay(_OTHER_COLUMNS)
    more = [name for name in changes.column_names if name not in (*table.columns, KIND)]
    return pa.table(
        {
            **{name: changes[name].cast(schema.field(name).type) for name in table.columns},
            KIND: changes[KIND].cast("string"),
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


def _kept_rows(file: DataFile, effects: Effects) -> Iterator[pa.Table]:
    """The rows of a file that the batch neither deletes nor updates, by row groups."""
    own = file.for_another_thread()
    vector = file.marked | BitMap(effects.marked.get(file.name, np.empty(0, np.int64)).tolist())
    kept = np.ones(file.rows, np.bool_)
    kept[np.fromiter(vector, np.int64, len(vector))] = False
    for group in range(own.parquet.num_row_groups):
        begin, rows = own.begin_of(group), own.read([group], own.schema.names)
        yield rows.filter(kept[begin : begin + rows.num_rows])
