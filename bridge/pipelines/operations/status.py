"""How far a pipeline has got, without moving it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import Any

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

__all__ = ["Status", "status"]


@dataclass(frozen=True)
class Status:
    """Positions of both ends. None where a pipeline has not run in that direction, or there is no table."""

    pipeline: str
    table: str
    table_version: int | None
    ingested: str | None
    """Offsets the table has, as JSON."""
    ingest_batch: int | None
    engine: str | None
    """What merged the last batch, and why that; None where nothing was merged."""
    pending_records: int | None
    """Offsets between the table and the topic's end."""
    published_version: int | None
    pending_versions: int | None
    lost_records: int | None
    """How many the broker has not acknowledged since the publish began or the last resync of it, as
    'sink.delivery-guarantee' = 'none' allows; None where there are none."""
    topic_end: str
    quarantined: int | None
    """Records that were put aside; None without `bad-records: quarantine`."""
    consumers: tuple[str, ...] = ()
    """Every publish that is registered at the table, whichever pipeline it is of, and how far behind it is."""
    last_optimize: str | None = None
    last_vacuum: str | None = None
    """When the table was last looked after, by whomever, in UTC."""
    warning: str | None = None
    """A lag that nears a retention time."""

    def as_dict(self) -> dict[str, Any]:
        """All fields, JSON-ready."""
        return asdict(self)


def status(spark: SparkSession, definition: Definition) -> Status:
    """Read the progress of both directions, and where topic and table stand now. Writes nothing."""
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
        published = PublishLog(spark, definition.run.checkpoint, definition.name).last()
        consumer_lags = lags(table, FeedConsumers(table).all())
        warnings = log_retention_warnings(table, consumer_lags)
        if ingested:
            lag_warning = TopicRetention(topic, table).warning(ingested[0].offsets, end)
            warnings += [lag_warning] if lag_warning else []
        last_maintenance = {what: _iso_utc(at) for what, at in maintenance_times(table).items()}
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
        engine=(ingested[0].engine or None) if ingested else None,
        pending_records=ingested[0].offsets.lag(end) if ingested else None,
        published_version=published.version if published and published.version != NOTHING else None,
        pending_versions=version - published.version if published and version is not None else None,
        lost_records=(published.lost or None) if published else None,
        topic_end=end.to_json(),
        quarantined=quarantined_records,
        consumers=tuple(consumer_lines(consumer_lags)),
        last_optimize=last_maintenance.get("OPTIMIZE"),
        last_vacuum=last_maintenance.get("VACUUM"),
        warning="; ".join(warnings) or None,
    )


def _iso_utc(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, timezone.utc).isoformat(timespec="seconds")
