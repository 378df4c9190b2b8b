"""Chooses the engine that merges a batch, and names the reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from bridge.columns import KIND
from bridge.definition import Engine, MergeSettings
from bridge.delta.ingest_progress import IngestProgress
from bridge.delta.initial_load import NotEmpty, initial_load
from bridge.delta.merge_contract import MergeResult, UnsupportedByEngine
from bridge.delta.merge_delta_rs import DeltaRsEngine, Limits
from bridge.delta.merge_semantics import MergeSemantics, upsert_by_key
from bridge.delta.merge_spark import SparkEngine
from bridge.delta.table import Table
from bridge.errors import TableError

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
    """Why this engine; empty where delta-rs was the first choice."""

    def __str__(self) -> str:
        return _describe(self.engine, self.reason)


class Engines:
    """The engines of one run, and the semantics that they execute.

    `merge.engine: auto` chooses delta-rs for a table in local files or on S3 with only those features and types that
    delta-rs handles as Spark does, and for a batch whose size and touched files are within `merge.max-batch` and
    `merge.max-touched`. It chooses Spark for everything else. A batch that Spark would merge into an empty table is
    written without a MERGE.
    """

    def __init__(self, settings: MergeSettings, semantics: MergeSemantics = upsert_by_key) -> None:
        self._settings, self._semantics = settings, semantics
        self._spark = SparkEngine()
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

        Raises TableError, too, where `merge.engine` is delta-rs and delta-rs does not support the table.
        """
        if self._settings.engine is Engine.SPARK:
            return self._merge_with_spark(table, changes, key, adds, progress, _CONFIGURED)
        delta_rs, reason = self._delta_rs()
        progress_of_delta_rs = _with_engine(progress, Engine.DELTA_RS, reason)
        try:
            if isinstance(changes, DataFrame):
                result = delta_rs.merge(
                    table,
                    changes,
                    key=key,
                    progress=progress_of_delta_rs,
                    persisted=True,
                    semantics=self._semantics,
                )
            else:
                result = delta_rs.merge_arrow(
                    table, changes, key=key, progress=progress_of_delta_rs, semantics=self._semantics
                )
        except UnsupportedByEngine as unsupported:
            if self._settings.engine is Engine.DELTA_RS:
                raise _unsupported(table, unsupported) from unsupported
            return self._merge_with_spark(table, changes, key, adds, progress, str(unsupported))
        return Merged(result, Engine.DELTA_RS, reason)

    def describe_choice(self, table: Table, changes: DataFrame, *, key: Sequence[str]) -> str:
        """The engine that `merge` would choose for these persisted changes, and the reason. Raises as `merge` does."""
        if self._settings.engine is Engine.SPARK:
            return _describe(Engine.SPARK, _CONFIGURED)
        delta_rs, reason = self._delta_rs()
        try:
            delta_rs.refuse(table, changes, key=key)
        except UnsupportedByEngine as unsupported:
            if self._settings.engine is Engine.DELTA_RS:
                raise _unsupported(table, unsupported) from unsupported
            return _describe(Engine.SPARK, str(unsupported))
        return _describe(Engine.DELTA_RS, reason)

    def _delta_rs(self) -> tuple[DeltaRsEngine, str]:
        """The engine delta-rs, and the reason to give where it merges."""
        if self._settings.engine is Engine.DELTA_RS:
            return DeltaRsEngine(), _CONFIGURED
        limits = Limits(self._settings.max_batch_bytes, self._settings.max_touched_bytes)
        return DeltaRsEngine(limits), ""

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
            load_progress = replace(_with_engine(progress, Engine.SPARK, load_reason), key=tuple(key))
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
    return table.spark.createDataFrame(changes, schema)


def _unsupported(table: Table, reason: UnsupportedByEngine) -> TableError:
    return TableError(
        f"table {table}: `merge.engine: delta-rs` is not possible, as {reason}; leave the option out, and Spark "
        "merges where delta-rs cannot"
    )


def _with_engine(progress: IngestProgress, engine: Engine, reason: str) -> IngestProgress:
    return replace(progress, engine=_describe(engine, reason))


def _describe(engine: Engine, reason: str) -> str:
    return f"{engine.value} ({reason})" if reason else engine.value
