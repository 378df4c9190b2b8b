"""changes -> Delta: one batch, one MERGE, one atomic commit that holds the rows and the progress."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from bridge.columns import KIND, col, differs, same_key
from bridge.delta.checks import refuse_unfit
from bridge.delta.failures import CONFLICTS, names, table_errors
from bridge.delta.progress import IngestProgress, read_progress
from bridge.delta.table import Table
from bridge.errors import ConcurrentRunError, TableError
from bridge.rows import RowKind
from bridge.schema import quote

__all__ = ["MergeResult", "merge"]

_ATTEMPTS = 6
_FIRST_PAUSE_SECONDS = 0.5

_APP_ID = "spark.databricks.delta.write.txnAppId"
_APP_VERSION = "spark.databricks.delta.write.txnVersion"
_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_MATERIALIZE = "spark.databricks.delta.merge.materializeSource"
_LAST_VERSION = "spark.databricks.delta.lastCommitVersionInSession"


@dataclass(frozen=True)
class MergeResult:
    """What one MERGE did to the table."""

    version: int
    """The version that holds this batch."""
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    skipped: bool = False
    """True when this very commit was found done (its first answer got lost); the counts are 0 then."""


def merge(
    table: Table, changes: DataFrame, *, key: Sequence[str], progress: IngestProgress, persisted: bool = False
) -> MergeResult:
    """Apply `changes` to `table` and record `progress`, both in one commit or not at all.

    `changes`: the table's columns and `__kind`, at most one row per key (null-safe; see `compact`). Adds (+I, +U)
    update the row of their key where it differs, or insert it; retractions (-U, -D) delete it. An update that
    changes nothing and a delete of an unknown key write no file and no change-feed row; the commit is made
    all the same, as it carries the progress.

    `persisted`: the caller has persisted `changes`, so Delta need not make a copy of its own to read them twice.
    The copy guards against a frame that gives other rows the second time: say True only for a frame that is cached
    and can be computed again alike.

    `progress.batch` must be the one after the table's own: Delta lets each number in only once, whoever comes
    first. Settings are made on `table.spark` for this one MERGE and put back as they were, so use a session that
    no other thread writes with.

    Raises ConcurrentRunError when another run has committed that batch, TableError when the table does not take
    the rows, or when other writers' commits get in the way of every attempt (a few, with growing pauses).
    """
    refuse_unfit(table, table.properties, progress.pipeline)
    if not table.deletion_vectors:
        changes = _effective(table, changes, key)
    settings = {
        _APP_ID: f"bridge/{progress.pipeline}",
        _APP_VERSION: str(progress.batch),
        _METADATA: progress.to_json(table.id),
    }
    if table.deletion_vectors and persisted:
        settings[_MATERIALIZE] = "none"
    conflict: Exception | None = None
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(_FIRST_PAUSE_SECONDS * 2 ** (attempt - 1) * random.uniform(0.5, 1.5))
        try:
            with table_errors(table), _settings(table.spark, settings):
                counts = _run(table, changes, key)
                version = int(table.spark.conf.get(_LAST_VERSION, None) or -1)
        except Exception as error:
            reasons = names(error)
            if "ConcurrentTransactionException" in reasons:
                return MergeResult(_version_of(table, progress), skipped=True)
            if not reasons & CONFLICTS:
                raise
            conflict = error
            continue
        if counts is None or not counts["num_affected_rows"]:
            # Nothing was done, or it was known already: only the table's history can tell which.
            return MergeResult(_version_of(table, progress), skipped=counts is None)
        return MergeResult(
            version, counts["num_inserted_rows"], counts["num_updated_rows"], counts["num_deleted_rows"]
        )
    raise TableError(
        f"table {table}: batch {progress.batch} lost against other writers {_ATTEMPTS} times in a row; nothing "
        "of it is written. Run OPTIMIZE and other jobs on this table at another time, then start again"
    ) from conflict


def _run(table: Table, changes: DataFrame, key: Sequence[str]) -> Row | None:
    """Counts of the MERGE, or None when Delta skipped it because it knows the batch number."""
    values: dict[str, str | Column] = {quote(n): col(n, "s") for n in table.columns}
    rest = [f for f in table.fields if f.name not in key]
    rows = (
        table.delta()
        .alias("t")
        .merge(changes.alias("s"), same_key(key, "t", "s"))
        .whenMatchedDelete(_retracts())
        .whenMatchedUpdate(differs(rest, "t", "s"), values)
        .whenNotMatchedInsert(~_retracts(), values)
        .execute()
        .collect()
    )
    return rows[0] if rows else None


def _effective(table: Table, changes: DataFrame, key: Sequence[str]) -> DataFrame:
    """`changes` without those that have nothing to change: without deletion vectors a MERGE rewrites
    the file of every matched row, whether it changes or not."""
    there = "__there"
    target = table.delta().toDF().select(*(col(n) for n in table.columns), F.lit(True).alias(there))
    rest = [f for f in table.fields if f.name not in key]
    needed = F.when(_retracts(), col(there).isNotNull()).otherwise(
        col(there).isNull() | differs(rest, "t", "s")
    )
    joined = changes.alias("s").join(target.alias("t"), same_key(key, "t", "s"), "left")
    return joined.where(needed).select("s.*")


def _retracts() -> Column:
    return col(KIND, "s").isin([kind.value for kind in RowKind if kind.retracts])


def _version_of(table: Table, progress: IngestProgress) -> int:
    newest = read_progress(table, progress.pipeline)
    if newest and newest[0] == progress:
        return newest[1]
    other = f"run {newest[0].run!r} has committed batch {newest[0].batch}" if newest else "no commit is there"
    raise ConcurrentRunError(
        f"table {table}: batch {progress.batch} of pipeline {progress.pipeline!r} was not applied: {other}, this is "
        f"run {progress.run!r}. Make sure that only one run is alive, then start it again: it goes on from the table"
    )


@contextmanager
def _settings(spark: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    """Session settings for one statement. Left set, Delta's would make it skip the next write in silence."""
    before = [(key, spark.conf.get(key, None)) for key in wanted]
    try:
        for key, value in wanted.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, old in before:
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)
