"""Chooses the engine that merges a batch, and names the reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from bridge.columns import KIND, frame_of
from bridge.definition import Engine, MergeSettings
from bridge.delta.changes_in_driver import Limits
from bridge.delta.initial_load import NotEmpty, initial_load
from bridge.delta.merge_contract import MergeResult, UnsupportedByEngine
from bridge.delta.merge_deletion_vectors import DeletionVectorsEngine
from bridge.delta.merge_delta_rs import DeltaRsEngine
from bridge.delta.merge_semantics import MergeSemantics, upsert_by_key
from bridge.delta.merge_spark import SparkEngine
from bridge.delta.table import Table
from bridge.errors import TableError
from bridge.ingest_progress import IngestProgress

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Engines", "Merged"]

_CONFIGURED = "set by merge.engine"


@dataclass(frozen=True)
class Merged:
    """A batch that is in the table."""

    result: MergeResult
    engine: Engine
    reason: str
    """Why this engine; empty for an engine in the driver that `auto` has chosen."""

    def __str__(self) -> str:
        return _describe(self.engine, self.reason)


class Engines:
    """The engines of one run, and the semantics that they execute.

    `merge.engine: auto` chooses an engine in the driver for a table with only those features and types that the engine
    handles as Spark does, and for a batch whose size and touched files are within `merge.max-batch` and
    `merge.max-touched`: deletion vectors for a batch that is small for the files it touches, if the table has them and
    is in local files; else delta-rs, for a table in local files or on S3. It chooses Spark for everything else. A batch
    that Spark would merge into an empty table is written without a MERGE.
    """

    def __init__(self, settings: MergeSettings, semantics: MergeSemantics = upsert_by_key) -> None:
        self._settings, self._semantics = settings, semantics
        self._spark = SparkEngine()
        limits = None
        if settings.engine is Engine.AUTO:
            limits = Limits(settings.max_batch_bytes, settings.max_touched_bytes)
        self._in_driver: list[DeletionVectorsEngine | DeltaRsEngine] = []
        if settings.engine in (Engine.AUTO, Engine.DELETION_VECTORS):
            self._in_driver.append(DeletionVectorsEngine(limits))
        if settings.engine in (Engine.AUTO, Engine.DELTA_RS):
            self._in_driver.append(DeltaRsEngine(limits))
        self._has_rows = False

    def merge(
        self,
        table: Table,
        changes: DataFrame | pa.Table,
        *,
        key: Sequence[str],
        adds: int,
        progress: IngestProgress,
    ) -> Merged:
        """Merge `changes` as `MergeEngine.merge` promises; `adds` of them are +I and +U.

        They are a persisted frame, or the same columns in the driver as Arrow.

        Raises TableError, too, where `merge.engine` names an engine that does not support the table.
        """
        unsupported: UnsupportedByEngine | None = None
        for engine in self._in_driver:
            given = _with_engine(progress, engine.name, self._reason)
            try:
                if isinstance(changes, DataFrame):
                    result = engine.merge(
                        table, changes, key=key, progress=given, persisted=True, semantics=self._semantics
                    )
                else:
                    result = engine.merge_arrow(
                        table, changes, key=key, progress=given, semantics=self._semantics
                    )
            except UnsupportedByEngine as reason:
                unsupported = reason
                continue
            return Merged(result, engine.name, self._reason)
        return self._merge_with_spark(
            table, changes, key, adds, progress, self._why_spark(table, unsupported)
        )

    def describe_choice(self, table: Table, changes: DataFrame, *, key: Sequence[str]) -> str:
        """The engine that `merge` would choose for these persisted changes, and the reason. Raises as `merge` does."""
        unsupported: UnsupportedByEngine | None = None
        for engine in self._in_driver:
            try:
                engine.refuse(table, changes, key=key)
            except UnsupportedByEngine as reason:
                unsupported = reason
                continue
            return _describe(engine.name, self._reason)
        return _describe(Engine.SPARK, self._why_spark(table, unsupported))

    @property
    def _reason(self) -> str:
        """The reason to give for an engine that is not chosen for what the batch or the table is."""
        return "" if self._settings.engine is Engine.AUTO else _CONFIGURED

    def _why_spark(self, table: Table, unsupported: UnsupportedByEngine | None) -> str:
        """Why Spark merges, where no engine in the driver does. Raises TableError if another one was named."""
        if unsupported is None:
            return _CONFIGURED
        if self._settings.engine is not Engine.AUTO:
            raise _unsupported(table, self._settings.engine, unsupported) from unsupported
        return str(unsupported)

    def _merge_with_spark(
        self,
        table: Table,
        given: DataFrame | pa.Table,
        key: Sequence[str],
        adds: int,
        progress: IngestProgress,
        reason: str,
    ) -> Merged:
        changes = given if isinstance(given, DataFrame) else _frame(table, given)
        if adds and not self._has_rows:
            load_reason = f"{reason}; the table was empty, so nothing was merged"
            load_progress = _with_engine(progress, Engine.SPARK, load_reason).merging(table.target, key)
            try:
                result = initial_load(
                    table, changes, rows=adds, progress=load_progress, semantics=self._semantics
                )
            except NotEmpty:
                self._has_rows = True
            else:
                return Merged(result, Engine.SPARK, load_reason)
        result = self._spark.merge(
            table,
            changes,
            key=key,
            progress=_with_engine(progress, Engine.SPARK, reason),
            persisted=True,
            semantics=self._semantics,
        )
        return Merged(result, Engine.SPARK, reason)


def _frame(table: Table, changes: pa.Table) -> DataFrame:
    schema = T.StructType([*table.fields, T.StructField(KIND, T.StringType())])
    return frame_of(table.spark, changes, schema)


def _unsupported(table: Table, engine: Engine, reason: UnsupportedByEngine) -> TableError:
    return TableError(
        f"table {table}: `merge.engine: {engine.value}` is not possible, as {reason}; leave the option out, and Spark "
        f"merges where {engine.value} cannot"
    )


def _with_engine(progress: IngestProgress, engine: Engine, reason: str) -> IngestProgress:
    return replace(progress, engine=_describe(engine, reason))


def _describe(engine: Engine, reason: str) -> str:
    return f"{engine.value} ({reason})" if reason else engine.value
