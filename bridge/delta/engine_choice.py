"""Chooses the engine that merges a batch, and names the reason.

`initial_load` fills an empty table: the effect of a MERGE without its two passes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.backend import persist, unpersist
from bridge.columns import KIND, col, frame_of, retracts
from bridge.definition import Engine, MergeSettings
from bridge.delta.append import appended
from bridge.delta.changes_in_driver import Limits
from bridge.delta.delete_memory import DeleteMemory
from bridge.delta.deletions_in_driver import DeletionsInDriver
from bridge.delta.delta_errors import CONFLICTS, error_names, table_errors
from bridge.delta.merge_contract import MergeResult
from bridge.delta.merge_driver import DELETES_OTHERS, DriverEngine
from bridge.delta.merge_semantics import (
    ADDS,
    KEPT,
    RETRACTS,
    SOURCE,
    MergeSemantics,
    after_truncate,
    after_truncate_by_sequence,
    kept_column,
    upsert_by_key,
)
from bridge.delta.merge_spark import SparkEngine
from bridge.delta.sequence_floor import Floor
from bridge.delta.table import Table
from bridge.delta.timeline import Timeline
from bridge.delta.txn_settings import committed_version
from bridge.errors import TableError
from bridge.ingest_progress import IngestProgress
from bridge.ways import NotThisWay, told

if TYPE_CHECKING:
    import pyarrow as pa


_ROWS = "__rows"
_NOT_EMPTY = "bridge: the table has rows"


def initial_load(
    table: Table,
    changes: DataFrame,
    *,
    rows: int,
    progress: IngestProgress,
    semantics: MergeSemantics = upsert_by_key,
) -> MergeResult:
    """Append the changes that `semantics` inserts, as `merge_contract` promises, if the table is empty.

    `rows` of the changes are +I and +U. The write counts the table's rows while it runs. So Delta knows that it has
    read the table, and rows that another writer commits meanwhile make it fail, as they would a MERGE. `progress.key`
    is the key. Raises NotThisWay in this case, and where the table had rows before.
    """
    if not table.is_empty():
        raise NotThisWay("the table has rows")
    # Delta answers a plain count(*) from its log, and would not record that the table was read.
    first_column = col(table.columns[0])
    row_count = (
        table.delta().toDF().agg(F.count_if(first_column.isNull() | first_column.isNotNull()).alias(_ROWS))
    )
    is_empty = F.when(col(_ROWS) == 0, F.lit(True)).otherwise(F.raise_error(F.lit(_NOT_EMPTY)))
    insert = semantics(table.columns, progress.key or ()).insert
    inserted = changes.alias(SOURCE).where(F.expr(insert.when.sql)).select(*map(col, insert.columns))
    try:
        with table_errors(table):
            into_empty = inserted.crossJoin(F.broadcast(row_count)).where(is_empty).drop(_ROWS)
            result = appended(table, into_empty, progress, rows)
    except Exception as error:
        reasons = error_names(error)
        if "ConcurrentTransactionException" in reasons:
            return MergeResult(committed_version(table, progress), skipped=True)
        if reasons & CONFLICTS or _NOT_EMPTY in str(error):
            raise NotThisWay("the table has rows") from error
        raise
    if result.skipped or insert.when == ADDS:
        return result
    return replace(result, inserted=inserted.count())


_CONFIGURED = "set by merge.engine"
_FORGET_SECONDS = 600.0
"""So often a run looks for deletions to forget."""


class Engines:
    """The engines of one run, and the semantics that they execute.

    `merge.engine: auto` chooses the driver for a table with only those features and types that it handles as Spark
    does, and for a batch whose size and touched files are within `merge.max-batch` and `merge.max-touched`. It chooses
    Spark for everything else. A batch that Spark would merge into an empty table is written without a MERGE.
    """

    def __init__(self, settings: MergeSettings, semantics: MergeSemantics = upsert_by_key) -> None:
        self._settings, self._semantics = settings, semantics
        self._spark = SparkEngine()
        limits = Limits(settings.max_batch_bytes, settings.max_touched_bytes)
        is_auto = settings.engine is Engine.AUTO
        self._driver = None if settings.engine is Engine.SPARK else DriverEngine(limits if is_auto else None)
        self._has_rows = False
        self._memory: DeleteMemory | None = None
        self._deletions = DeletionsInDriver()
        self._remembers = False
        """Whether the memory may have a deletion."""
        self._forget_at = 0.0

    def merge(
        self,
        table: Table,
        changes: DataFrame | pa.Table,
        *,
        key: Sequence[str],
        adds: int,
        progress: IngestProgress,
        deletes_others: bool = False,
        floor: Floor | None = None,
    ) -> MergeResult:
        """Merge `changes` as `merge_contract` promises; `adds` of them are +I and +U.

        They are a persisted frame, or the same columns in the driver as Arrow. Where a sequence orders them, those that
        are older than a remembered deletion of their key are left out, and deletions are remembered (`delete_memory`).
        Under `delta.history` there is one change for each key and sequence, and what is merged are the changes of
        intervals that they make (`timeline`). With `deletes_others` rows that no change matches are deleted; where a
        sequence orders changes, those that are not newer than `floor`, which is remembered: all changes are newer.

        Raises TableError, too, where `merge.engine` names an engine that does not support the table.
        """
        if not table.target.sequence_by:
            semantics = after_truncate if deletes_others else self._semantics
            return self._merge(table, changes, semantics, key=key, adds=adds, progress=progress)
        if self._memory is None:
            self._memory = DeleteMemory.open(table, key)
            self._remembers = not self._memory.is_empty()
        semantics = self._semantics
        if floor is not None:
            self._why_spark(table, NotThisWay(DELETES_OTHERS))  # before anything is remembered
            self._memory, self._remembers = self._memory.on(table.spark).remember_truncate(floor), True
            by, others = table.target.sequence_by, floor.sql
            semantics = partial(after_truncate_by_sequence, sequence=by, others=others)
        memory = self._memory.on(table.spark)
        try:
            if floor is not None:
                raise NotThisWay(DELETES_OTHERS)
            merged = self._merge_ordered(memory, changes, progress)
        except NotThisWay as reason:
            why = self._why_spark(table, reason)
            if table.target.history is not None:
                by_spark = partial(self._merge_intervals, memory, progress=progress, reason=why)
            else:
                by_spark = partial(
                    self._merge_newer, memory, progress=progress, reason=why, semantics=semantics
                )
            merged = _on_frame(table, changes, by_spark)
        warning = None
        if self._remembers and time.monotonic() >= self._forget_at:
            warning = memory.forget(progress.newest_ms)
            self._forget_at = time.monotonic() + _FORGET_SECONDS
        return replace(merged, warnings=(warning,) if warning else ())

    def _merge_ordered(
        self, memory: DeleteMemory, changes: DataFrame | pa.Table, progress: IngestProgress
    ) -> MergeResult:
        """Merge changes that a sequence orders in the driver; remembers the deletions among them first."""
        table, key, known = memory.table, memory.key, None
        if self._driver is None:
            raise NotThisWay(_CONFIGURED)
        newest, changes = self._driver.received(table, changes, key)
        if self._remembers and table.target.history is None:
            changes = self._deletions.without_older(memory, changes)
        elif self._remembers:
            known = self._deletions.of_keys(memory, changes)
        deletions = changes.filter(RETRACTS.mask(changes, None))
        if deletions.num_rows:
            self._deletions.remember(memory, deletions)
            self._remembers = True
        engine = told(Engine.DRIVER.value, self._reason)
        given, merge = replace(progress, engine=engine), self._driver.merge
        if table.target.history is not None:
            merge = partial(self._driver.merge_history, deletions=known)
        result = merge(table, changes, key=key, progress=given, semantics=self._semantics, newest=newest)
        return replace(result, engine=engine)

    def _merge_intervals(
        self, memory: DeleteMemory, changes: DataFrame, progress: IngestProgress, reason: str
    ) -> MergeResult:
        """Merge the changes of intervals by Spark; remembers the deletions among the changes first."""
        table, known = memory.table, memory.of_keys(changes) if self._remembers else None
        timeline = Timeline.of_batch(table, changes, memory.key, known).persist()
        try:
            adds, deletions, without_effect = timeline.counts()
            if deletions:
                memory.remember(changes)
                self._remembers = True
            key = table.target.row_key(memory.key)
            merged = self._merge_with_spark(
                table, timeline.changes(), self._semantics, key, adds, progress, reason
            )
        finally:
            timeline.unpersist()
        return replace(merged, without_effect=without_effect)

    def _merge_newer(
        self,
        memory: DeleteMemory,
        changes: DataFrame,
        progress: IngestProgress,
        reason: str,
        semantics: MergeSemantics,
    ) -> MergeResult:
        """Merge the changes that are not older than a deletion of their key by Spark; remembers the deletions among
        these first."""
        newer = persist(memory.without_older(changes)) if self._remembers else changes
        try:
            row = newer.agg(F.count_if(~retracts()), F.count_if(retracts())).first()
            assert row is not None
            if row[1]:
                memory.remember(newer)
                self._remembers = True
            return self._merge_with_spark(
                memory.table, newer, semantics, memory.key, row[0], progress, reason
            )
        finally:
            if newer is not changes:
                unpersist(newer)

    def _merge(
        self,
        table: Table,
        changes: DataFrame | pa.Table,
        semantics: MergeSemantics,
        *,
        key: Sequence[str],
        adds: int,
        progress: IngestProgress,
    ) -> MergeResult:
        if self._driver is None:
            return self._merge_with_spark(table, changes, semantics, key, adds, progress, _CONFIGURED)
        engine = told(Engine.DRIVER.value, self._reason)
        given = replace(progress, engine=engine)
        try:
            result = self._driver.merge(table, changes, key=key, progress=given, semantics=semantics)
        except NotThisWay as reason:
            why = self._why_spark(table, reason)
            return self._merge_with_spark(table, changes, semantics, key, adds, progress, why)
        return replace(result, engine=engine)

    def describe_choice(
        self, table: Table, changes: DataFrame, *, key: Sequence[str], deletes_others: bool = False
    ) -> str:
        """The engine that `merge` would choose for these persisted changes, and the reason. Raises as `merge` does."""
        if self._driver is None:
            return told(Engine.SPARK.value, _CONFIGURED)
        try:
            if deletes_others:
                raise NotThisWay(DELETES_OTHERS)
            self._driver.refuse(table, changes, key=key)
        except NotThisWay as reason:
            return told(Engine.SPARK.value, self._why_spark(table, reason))
        return told(Engine.DRIVER.value, self._reason)

    @property
    def _reason(self) -> str:
        """The reason to give for the driver."""
        return "" if self._settings.engine is Engine.AUTO else _CONFIGURED

    def _why_spark(self, table: Table, unsupported: NotThisWay) -> str:
        """Why Spark merges, where the driver does not. Raises TableError if the driver is configured."""
        if self._settings.engine is Engine.DRIVER:
            raise TableError(
                f"table {table}: `merge.engine: driver` is not possible, as {unsupported}; leave the option out, and "
                "Spark merges where the driver cannot"
            ) from unsupported
        return str(unsupported)

    def _merge_with_spark(
        self,
        table: Table,
        given: DataFrame | pa.Table,
        semantics: MergeSemantics,
        key: Sequence[str],
        adds: int,
        progress: IngestProgress,
        reason: str,
    ) -> MergeResult:
        changes = given if isinstance(given, DataFrame) else changes_frame(table, given)
        if adds and not self._has_rows:
            engine = told(Engine.SPARK.value, f"{reason}; the table was empty, so nothing was merged")
            given = replace(progress, engine=engine).merging(table.target, key)
            try:
                result = initial_load(table, changes, rows=adds, progress=given, semantics=semantics)
            except NotThisWay:
                self._has_rows = True
            else:
                return replace(result, engine=engine)
        engine = told(Engine.SPARK.value, reason)
        given = replace(progress, engine=engine)
        result = self._spark.merge(table, changes, key=key, progress=given, semantics=semantics)
        return replace(result, engine=engine)


def _on_frame(
    table: Table, changes: DataFrame | pa.Table, merge: Callable[[DataFrame], MergeResult]
) -> MergeResult:
    """Merge the changes as a persisted frame."""
    if isinstance(changes, DataFrame):
        return merge(changes)
    frame = persist(changes_frame(table, changes))
    try:
        return merge(frame)
    finally:
        unpersist(frame)


def changes_frame(table: Table, changes: pa.Table) -> DataFrame:
    """The changes of a batch, those of the table's columns that they have and `__kind`, as a frame of the table's
    session; with KEPT where they have columns of `kept_column`."""
    fields = [f for f in table.fields if f.name in changes.column_names]
    flags = {f.name: kept_column(f.name) for f in fields if kept_column(f.name) in changes.column_names}
    kept = [T.StructField(flag, T.BooleanType()) for flag in flags.values()]
    schema = T.StructType([*fields, T.StructField(KIND, T.StringType()), *kept])
    frame = frame_of(table.spark, changes, schema)
    if not kept:
        return frame
    names = F.array_compact(F.array(*(F.when(col(flag), F.lit(name)) for name, flag in flags.items())))
    return frame.withColumn(KEPT, names).drop(*flags.values())
