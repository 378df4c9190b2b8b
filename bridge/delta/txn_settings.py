"""What every commit of an ingest carries: its number, by which Delta knows it again, and the progress."""

from __future__ import annotations

from pyspark.sql import SparkSession

from bridge.delta.ingest_progress import IngestProgress, app_id, read_progress
from bridge.delta.table import Table
from bridge.errors import ConcurrentRunError

__all__ = ["committed_version", "forget_last_version", "last_version", "txn_settings"]

_APP_ID = "spark.databricks.delta.write.txnAppId"
_APP_VERSION = "spark.databricks.delta.write.txnVersion"
_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_LAST_VERSION = "spark.databricks.delta.lastCommitVersionInSession"


def txn_settings(table: Table, progress: IngestProgress) -> dict[str, str]:
    """Session settings under which the next write commits as `progress.batch` of its pipeline: for that one alone
    (`session.settings`), as left set they would make Delta skip the one after it in silence."""
    return {
        _APP_ID: app_id(progress.pipeline),
        _APP_VERSION: str(progress.batch),
        _METADATA: progress.to_json(table.id),
    }


def forget_last_version(spark: SparkSession) -> None:
    """Make `last_version` tell of what is committed from now on."""
    spark.conf.unset(_LAST_VERSION)


def last_version(spark: SparkSession) -> int | None:
    """The version that this session committed last, to whichever table; None for none."""
    found = spark.conf.get(_LAST_VERSION, None)
    return None if found is None else int(found)


def committed_version(table: Table, progress: IngestProgress) -> int:
    """The version that holds `progress`; raises ConcurrentRunError when the batch of that number is another's."""
    newest = read_progress(table, progress.pipeline)
    if newest and newest[0] == progress:
        return newest[1]
    other = f"run {newest[0].run!r} has committed batch {newest[0].batch}" if newest else "no commit is there"
    raise ConcurrentRunError(
        f"table {table}: batch {progress.batch} of pipeline {progress.pipeline!r} was not applied: {other}, this is "
        f"run {progress.run!r}. Make sure that only one run is alive, then start it again: it goes on from the table"
    )
