"""Puts into each commit of an ingest its batch number, which Delta accepts only once, and the progress.

An append has both as options of its writer. A MERGE has no options, so the settings of the session carry them; where
the compute takes no settings, commits before and after the MERGE have them (ADR 092).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from bridge import failpoints
from bridge.backend import Feature, backend_of
from bridge.delta.ingest_progress import newest_first
from bridge.delta.table import Table
from bridge.errors import ConcurrentRunError
from bridge.ingest_progress import IngestProgress, app_id
from bridge.session import session_settings

_APP_ID = "spark.databricks.delta.write.txnAppId"
_APP_VERSION = "spark.databricks.delta.write.txnVersion"
_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_LAST_VERSION = "spark.databricks.delta.lastCommitVersionInSession"


@dataclass
class Merged:
    """The commit of a MERGE."""

    version: int | None = None
    """None where the session has committed nothing."""


@contextmanager
def merging(table: Table, progress: IngestProgress, settings: Mapping[str, str]) -> Iterator[Merged]:
    """Let the MERGE of the block, the only write of its session, commit as `progress.batch` of its pipeline, under
    other `settings`, too. What is yielded has the version at the end of the block.

    Where the compute takes no settings, the MERGE is a commit of its own. The one before it has the progress at the
    start of the batch and says how far the batch reaches; the one after it has `progress`. So what is killed between
    them is read again, to its end at least: at least once, and a MERGE changes no row that is as it should be. Raises
    ConcurrentRunError when another run has committed.
    """
    spark, merged = table.spark, Merged()
    if backend_of(spark).can(Feature.SETTINGS) is None:
        numbered = {
            _APP_ID: app_id(progress.pipeline),
            _APP_VERSION: str(progress.batch),
            _METADATA: progress.to_json(table.id),
        }
        # With these Delta would silently skip the write after the MERGE, so they are set for it alone.
        with session_settings(spark, {**settings, **numbered}):
            yield merged
            merged.version = last_version(spark)
        return
    if progress.start is not None:
        begun = replace(progress, offsets=progress.start, reaches=progress.offsets)
        _record(table, begun, f"{app_id(progress.pipeline)}/begun")
        committed_version(table, begun)
        failpoints.hit("ingest.begun")
    yield merged
    failpoints.hit("ingest.merged")
    _record(table, progress, app_id(progress.pipeline))
    merged.version = committed_version(table, progress)


def _record(table: Table, progress: IngestProgress, app: str) -> None:
    """Commit progress without rows."""
    append(table, table.spark.createDataFrame([], T.StructType(list(table.fields))), progress, app)


def append(table: Table, rows: DataFrame, progress: IngestProgress, app: str | None = None) -> None:
    """Append rows as `progress.batch` of its pipeline; nothing where Delta knows the number. `app` counts others."""
    ids = {"txnAppId": app or app_id(progress.pipeline), "txnVersion": str(progress.batch)}
    writer = rows.write.format("delta").mode("append").options(**ids, userMetadata=progress.to_json(table.id))
    if table.target.table:
        writer.saveAsTable(table.target.table)
    else:
        writer.save(str(table.target.path))


def forget_last_version(spark: SparkSession) -> None:
    """Make `last_version` ignore all commits up to now."""
    if backend_of(spark).can(Feature.SETTINGS) is None:
        spark.conf.unset(_LAST_VERSION)


def last_version(spark: SparkSession) -> int | None:
    """The version that this session committed last, to any table; None where it has none, or does not tell."""
    version = backend_of(spark).setting(_LAST_VERSION)
    return None if version is None else int(version)


def committed_version(table: Table, progress: IngestProgress) -> int:
    """The version that holds `progress`, also if a RESTORE has taken its rows back since.

    Raises ConcurrentRunError when another run has committed that batch number.
    """
    other = "the log has no commit of it"
    for commit in newest_first(table):
        parsed = IngestProgress.from_json(commit["userMetadata"])
        if parsed and parsed[0].pipeline == progress.pipeline:
            if parsed[0] == progress:
                return int(commit["version"])
            other = f"run {parsed[0].run!r} has committed batch {parsed[0].batch}"
            break
    raise ConcurrentRunError(
        f"table {table}: batch {progress.batch} of pipeline {progress.pipeline!r} was not applied: {other}, this is "
        f"run {progress.run!r}. Make sure that only one run is alive, then start it again: it continues from the table"
    )
