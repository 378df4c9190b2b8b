"""Puts into each commit of an ingest its batch number, which Delta accepts only once, and the progress."""

from __future__ import annotations

from pyspark.sql import SparkSession

from bridge.delta.ingest_progress import newest_first
from bridge.delta.table import Table
from bridge.errors import ConcurrentRunError
from bridge.ingest_progress import IngestProgress, app_id

_APP_ID = "spark.databricks.delta.write.txnAppId"
_APP_VERSION = "spark.databricks.delta.write.txnVersion"
_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_LAST_VERSION = "spark.databricks.delta.lastCommitVersionInSession"


def txn_settings(table: Table, progress: IngestProgress) -> dict[str, str]:
    """Session settings with which the next write commits as `progress.batch` of its pipeline.

    Set them for that write alone (`session.session_settings`): with them Delta would silently skip the write after it.
    """
    return {
        _APP_ID: app_id(progress.pipeline),
        _APP_VERSION: str(progress.batch),
        _METADATA: progress.to_json(table.id),
    }


def forget_last_version(spark: SparkSession) -> None:
    """Make `last_version` ignore all commits up to now."""
    spark.conf.unset(_LAST_VERSION)


def last_version(spark: SparkSession) -> int | None:
    """The version that this session committed last, to any table; None where it has committed none."""
    version = spark.conf.get(_LAST_VERSION, None)
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
