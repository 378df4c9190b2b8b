"""How far a pipeline has got, without moving it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import Any

from pyspark.sql import SparkSession

from bridge.definition import Definition
from bridge.delta import change_feed, quarantine
from bridge.delta.feed_consumers import FeedConsumers, Lag, lags
from bridge.delta.optimize_vacuum import last_done
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
    version, followed, published = None, None, None
    readers: list[Lag] = []
    cared: dict[str, str] = {}
    warnings: list[str] = []
    if exists(spark, definition.delta):
        table = open_whole_table(spark, definition)
        version = change_feed.latest_version(table)
        followed = open_ingested_table(table, definition)
        published = PublishLog(spark, definition.run.checkpoint, definition.name).last()
        readers = lags(table, FeedConsumers(table).all())
        warnings = log_retention_warnings(table, readers)
        if followed:
            late = TopicRetention(topic, table).warning(followed[0].offsets, end)
            warnings += [late] if late else []
        cared = {what: _shown(at) for what, at in last_done(table).items()}
    aside = definition.quarantine
    kept = None if aside is None else quarantine.quarantined(spark, aside, definition.name)
    return Status(
        pipeline=definition.name,
        table=str(definition.delta),
        table_version=version,
        ingested=followed[0].offsets.to_json() if followed else None,
        ingest_batch=followed[0].batch if followed else None,
        engine=(followed[0].engine or None) if followed else None,
        pending_records=followed[0].offsets.behind(end) if followed else None,
        published_version=published.version if published and published.version != NOTHING else None,
        pending_versions=version - published.version if published and version is not None else None,
        lost_records=(published.lost or None) if published else None,
        topic_end=end.to_json(),
        quarantined=kept,
        consumers=tuple(consumer_lines(readers)),
        last_optimize=cared.get("OPTIMIZE"),
        last_vacuum=cared.get("VACUUM"),
        warning="; ".join(warnings) or None,
    )


def _shown(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, timezone.utc).isoformat(timespec="seconds")
