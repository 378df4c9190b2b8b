"""Appends data files that tasks have written to a table, by a commit of its own (docs/adr/044).

Such an append reads nothing of the table, so no other writer's rows conflict with it: where another commit came first,
it takes the next version.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from bridge.delta.commit_files import file_changes
from bridge.delta.delta_errors import attempts, conflict_error, replaced_error
from bridge.delta.delta_rs import open_with_delta_rs
from bridge.delta.driver_tables import not_null_columns, refuse_unsupported_table
from bridge.delta.log_cleanup import checkpoint_if_due
from bridge.delta.merge_contract import MergeResult
from bridge.delta.rows_taken_back import following
from bridge.delta.table import Table
from bridge.delta.table_checks import refuse_unfit_properties
from bridge.delta.txn_settings import committed_version
from bridge.ingest_progress import IngestProgress, app_id
from bridge.lake.commit import append_info, write_commit
from bridge.lake.data_files import arrow_schema
from bridge.lake.snapshot import Action, Snapshot, open_snapshot
from bridge.lake.statistics import columns_with_statistics
from bridge.lake.store import Store
from bridge.storage import store_for_writing
from bridge.ways import NotThisWay

_PATTERN = re.compile(r"[{}\[\]*?\\]")


@dataclass(frozen=True)
class AppendTarget:
    """Where and how tasks write data files of a table."""

    store: Store
    schema: pa.Schema
    """All columns of the table, those included that the pipeline does not know."""
    columns_with_statistics: int
    description: Mapping[str, Any]
    """The actions `metaData` and `protocol` for which the files are written."""


class FileAppends:
    """The appends of one run to one table. It keeps what it knows of the table's log. Threads may share it: one reads
    ahead while another one commits.

    Raises NotThisWay for a table that is in another store (see `storage.store_at`), has partitions, or has what the
    driver does not handle as Spark does (see `driver_tables`).
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._lock = threading.Lock()
        """Two threads that follow the log at once would count a version twice."""
        self._snapshot = open_snapshot(store_for_writing(table.spark, table.location), with_files=False)
        self._refuse_unsupported(self._newest())

    def target(self) -> AppendTarget:
        """How files for the newest version are to be written. Raises NotThisWay where none can be appended."""
        with self._lock:
            snapshot = self._newest()
            store, description = snapshot.store, _description(snapshot)
            self._refuse_unsupported(snapshot)
        metadata = description["metaData"]
        schema = arrow_schema(metadata)
        if not set(self._table.columns) <= set(schema.names):
            raise NotThisWay("the columns of the table have changed meanwhile")
        columns = columns_with_statistics(metadata["configuration"], len(schema))
        return AppendTarget(store, schema, columns, description)

    def commit(
        self, target: AppendTarget, adds: Sequence[Action], *, rows: int, progress: IngestProgress
    ) -> MergeResult:
        """Append the files of `adds`, which were written for `target` and have `rows` rows, and record `progress`, in
        one commit or not at all. Each batch number is accepted once, so a repeated batch adds nothing.

        Raises NotThisWay, with nothing committed, if the table is described otherwise than the files were
        written for; ConcurrentRunError if another run has committed that batch; TableError if another table has
        replaced this one, or if other writers were first at every attempt.
        """
        table, progress = self._table, replace(progress, key=())
        refuse_unfit_properties(table, table.properties, progress.pipeline, appends=True)
        for _ in attempts():
            with self._lock:
                result = self._commit(target, adds, rows, progress)
            if result is not None:
                properties = target.description["metaData"]["configuration"]
                if not result.skipped:
                    opened = partial(open_with_delta_rs, table)
                    checkpoint_if_due(properties, table, result.version, target.store, opened)
                return result
        raise conflict_error(table, f"batch {progress.batch}")

    def _commit(
        self, target: AppendTarget, adds: Sequence[Action], rows: int, progress: IngestProgress
    ) -> MergeResult | None:
        """Append after the newest version; None if another writer was first."""
        table, snapshot = self._table, self._newest()
        committed = snapshot.transactions.get(app_id(progress.pipeline))
        if committed is not None and committed >= progress.batch:
            return MergeResult(committed_version(table, progress), skipped=True)
        progress = following(table, progress, snapshot.version)
        if _description(snapshot) != target.description:
            raise NotThisWay("the columns or properties of the table have changed meanwhile")
        version = snapshot.version + 1
        actions: list[Action] = [
            {"commitInfo": append_info(snapshot.version, progress.to_json(table.id), adds, rows)},
            {"txn": {"appId": app_id(progress.pipeline), "version": progress.batch}},
            *({"add": add} for add in adds),
        ]
        done = write_commit(snapshot.store, version, actions)
        return MergeResult(version, inserted=rows, files=file_changes(actions)) if done else None

    def _newest(self) -> Snapshot:
        if not self._snapshot.follow():
            self._snapshot = open_snapshot(self._snapshot.store, with_files=False)
        if self._snapshot.metadata["id"] != self._table.id:
            raise replaced_error(self._table)
        return self._snapshot

    def _refuse_unsupported(self, snapshot: Snapshot) -> None:
        refuse_unsupported_table(snapshot, ())
        for name in not_null_columns(snapshot):
            if name not in self._table.columns:
                raise NotThisWay(f"column {name!r} is NOT NULL, and not a column of the pipeline")


def written_rows(table: Table, target: AppendTarget, adds: Sequence[Action]) -> DataFrame:
    """The rows of files that were written for `target` and are in no version yet, without an order. Runs no job.

    Raises NotThisWay for a folder in whose name Spark's reader finds a pattern."""
    folder = target.store.location
    if found := _PATTERN.search(folder):
        raise NotThisWay(f"the path has {found[0]!r} in a name, which Spark's reader takes for a pattern")
    schema = T.StructType(list(table.fields))
    return table.spark.read.schema(schema).parquet(*(f"{folder}/{add['path']}" for add in adds))


def _description(snapshot: Snapshot) -> Mapping[str, Any]:
    return {"metaData": snapshot.metadata, "protocol": snapshot.protocol}
