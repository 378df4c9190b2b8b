"""Reports the progress of a pipeline in both directions. Writes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone

from pyspark.sql import SparkSession

from bridge.definition import Definition
from bridge.delta import change_feed, quarantine
from bridge.delta.feed_consumers import FeedConsumers, Lag, lags
from bridge.delta.optimize_vacuum import maintenance_times
from bridge.delta.publish_log import PublishLog
from bridge.delta.table import exists
from bridge.kafka import admin
from bridge.pipelines.operations.maintain import consumer_lines
from bridge.pipelines.runtime.preflight import open_ingested_table, open_whole_table
from bridge.pipelines.runtime.retention_warnings import TopicRetention, log_retention_warnings
from bridge.publish_progress import NOTHING


@dataclass(frozen=True)
class Status:
    """The progress of both directions. None where a pipeline has not run in a direction, or there is no table."""

    pipeline: str
    table: str
    table_version: int | None
    ingested: str | None
    """The offsets that the table has applied, as JSON."""
    ingest_batch: int | None
    reader: str | None
    """What read the last batch and why not a faster way; None where nothing was read."""
    engine: str | None
    """The merge engine of the last batch and the reason for it; None where nothing was merged."""
    pending_records: int | None
    """Offsets between the table and the topic's end."""
    published_version: int | None
    sender: str | None
    """What sent the last range and why not a faster way; None where nothing was sent."""
    pending_versions: int | None
    lost_records: int | None
    """Records that the broker has not acknowledged since the publish began or was last resynced, as
    'sink.delivery-guarantee' = 'none' allows; None if there are none."""
    topic_end: str
    quarantined: int | None
    """Records in the quarantine; None without one."""
    consumers: tuple[str, ...] = ()
    """A line for each publish that is registered at the table, of any pipeline, with its lag."""
    last_optimize: str | None = None
    last_vacuum: str | None = None
    """When OPTIMIZE and VACUUM last ran, by any writer, in UTC."""
    warning: str | None = None
    """Lags that near a retention time."""


def status(spark: SparkSession, definition: Definition) -> Status:
    """Read the progress of both directions, and the current positions of topic and table."""
    topic = admin.resolve(definition.topic)
    end = admin.describe(topic).end
    version, ingested, published = None, None, None
    consumer_lags: list[Lag] = []
    last_maintenance: dict[str, str] = {}
    warnings: list[str] = []
    if exists(spark, definition.delta):
        table = open_whole_table(spark, definition)
        version = change_feed.latest_version(table)
        ingested = open_ingested_table(table, definition)
        published = PublishLog.of(spark, definition).last()
        consumer_lags = lags(table, FeedConsumers(table).all())
        warnings = log_retention_warnings(table, consumer_lags)
        if ingested:
            lag_warning = TopicRetention(topic, table).warning(ingested[0].offsets, end)
            warnings += [lag_warning] if lag_warning else []
        last_maintenance = {
            what: datetime.fromtimestamp(at / 1000, timezone.utc).isoformat(timespec="seconds")
            for what, at in maintenance_times(table).items()
        }
    quarantine_target = definition.quarantine
    quarantined_records = (
        None
        if quarantine_target is None
        else quarantine.quarantined_count(spark, quarantine_target, definition.name)
    )
    return Status(
        pipeline=definition.name,
        table=str(definition.delta),
        table_version=version,
        ingested=ingested[0].offsets.to_json() if ingested else None,
        ingest_batch=ingested[0].batch if ingested else None,
        reader=(ingested[0].reader or None) if ingested else None,
        engine=(ingested[0].engine or None) if ingested else None,
        pending_records=ingested[0].offsets.lag(end) if ingested else None,
        published_version=published.version if published and published.version != NOTHING else None,
        sender=(published.sender or None) if published else None,
        pending_versions=version - published.version if published and version is not None else None,
        lost_records=(published.lost or None) if published else None,
        topic_end=end.to_json(),
        quarantined=quarantined_records,
        consumers=tuple(consumer_lines(consumer_lags)),
        last_optimize=last_maintenance.get("OPTIMIZE"),
        last_vacuum=last_maintenance.get("VACUUM"),
        warning="; ".join(warnings) or None,
    )
