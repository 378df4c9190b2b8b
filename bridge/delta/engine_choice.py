"""Which engine merges a batch, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from bridge.definition import Engine, MergeSettings
from bridge.delta import merge_delta_rs
from bridge.delta.delta_rs import UnsupportedByEngine
from bridge.delta.ingest_progress import IngestProgress
from bridge.delta.initial_load import NotEmpty, initial_load
from bridge.delta.merge_contract import MergeResult
from bridge.delta.merge_spark import merge_with_spark
from bridge.delta.table import Table
from bridge.errors import TableError

__all__ = ["Engines", "Merged"]


@dataclass(frozen=True)
class Merged:
    """A batch that is in the table."""

    result: MergeResult
    engine: Engine
    reason: str
    """Why this engine; empty where there is nothing to say."""

    def __str__(self) -> str:
        return _words(self.engine, self.reason)


class Engines:
    """The engines of one run.

    `auto` takes delta-rs where it is sure: local files, only features and types that delta-rs keeps as Spark does, and
    a batch whose size, and whose files, stay within `merge.max-batch` and `merge.max-touched`. All else is Spark's.
    A first batch that is too large for delta-rs is written without a MERGE: there is nothing to merge with.
    """

    def __init__(self, settings: MergeSettings) -> None:
        self._settings = settings
        self._has_rows = False

    def merge(
        self, table: Table, changes: DataFrame, *, key: Sequence[str], adds: int, progress: IngestProgress
    ) -> Merged:
        """Apply persisted `changes` as `merging.Merge` says; `adds` of them are +I and +U.

        Raises TableError, too, where `merge.engine: delta-rs` is asked for and cannot be had.
        """
        if self._settings.engine is Engine.SPARK:
            return self._by_spark(table, changes, key, adds, progress, "asked for")
        limits, reason = self._limits()
        try:
            told = _told(progress, Engine.DELTA_RS, reason)
            result = merge_delta_rs.merge_with_delta_rs(
                table, changes, key=key, progress=told, persisted=True, limits=limits
            )
        except UnsupportedByEngine as unfit:
            if limits is None:
                raise _cannot(table, unfit) from unfit
            return self._by_spark(table, changes, key, adds, progress, str(unfit))
        return Merged(result, Engine.DELTA_RS, reason)

    def describe_choice(self, table: Table, changes: DataFrame, *, key: Sequence[str]) -> str:
        """The engine that would `merge` these persisted changes into the table as it is, and why; raises as that."""
        if self._settings.engine is Engine.SPARK:
            return _words(Engine.SPARK, "asked for")
        limits, reason = self._limits()
        try:
            merge_delta_rs.refuse(table, changes, key=key, limits=limits)
        except UnsupportedByEngine as unfit:
            if limits is None:
                raise _cannot(table, unfit) from unfit
            return _words(Engine.SPARK, str(unfit))
        return _words(Engine.DELTA_RS, reason)

    def _limits(self) -> tuple[merge_delta_rs.Limits | None, str]:
        """Those of delta-rs, and what there is to say when it is taken."""
        if self._settings.engine is Engine.DELTA_RS:
            return None, "asked for"
        return merge_delta_rs.Limits(self._settings.max_batch_bytes, self._settings.max_touched_bytes), ""

    def _by_spark(
        self,
        table: Table,
        changes: DataFrame,
        key: Sequence[str],
        adds: int,
        progress: IngestProgress,
        reason: str,
    ) -> Merged:
        if adds and not self._has_rows:
            told = f"{reason}; the table was empty, so nothing was merged"
            try:
                ours = replace(_told(progress, Engine.SPARK, told), key=tuple(key))
                result = initial_load(table, changes, rows=adds, progress=ours)
            except NotEmpty:
                self._has_rows = True
            else:
                return Merged(result, Engine.SPARK, told)
        result = merge_with_spark(
            table, changes, key=key, progress=_told(progress, Engine.SPARK, reason), persisted=True
        )
        return Merged(result, Engine.SPARK, reason)


def _cannot(table: Table, why: UnsupportedByEngine) -> TableError:
    return TableError(
        f"table {table}: `merge.engine: delta-rs` cannot keep it, as {why}; leave the option out, and Spark does where "
        "delta-rs cannot"
    )


def _told(progress: IngestProgress, engine: Engine, reason: str) -> IngestProgress:
    return replace(progress, engine=_words(engine, reason))


def _words(engine: Engine, reason: str) -> str:
    return f"{engine.value} ({reason})" if reason else engine.value
