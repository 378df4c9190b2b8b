"""Previews the next range of a publish: its versions, and what would send and encode it. Sends nothing."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from bridge.backend import backend_of
from bridge.definition import Definition, DeliveryGuarantee, Topic
from bridge.delta import change_feed
from bridge.delta.publish_log import PublishLog
from bridge.delta.table import Table
from bridge.pipelines.publish.endpoints import Endpoints
from bridge.pipelines.publish.range_planner import PlannedRange, RangePlanner
from bridge.pipelines.publish.range_records import driver_records, task_encoder
from bridge.pipelines.publish.sharding import FileShardLimits, sharding_for
from bridge.publish_progress import PublishProgress
from bridge.ways import NotThisWay, told


@dataclass(frozen=True)
class Explained:
    """The next range. None where there is nothing to send."""

    pipeline: str
    table: str
    topic: str
    pending_versions: int
    range: str = "there is nothing to send"
    """Its versions, and what of them is sent."""
    sender: str | None = None
    """As in the report of the range."""
    encoder: str | None = None
    transactions: int | None = None
    """At most; None where it is sent without."""


def explain(spark: SparkSession, definition: Definition) -> Explained:
    """Plan the next range as a run would, from the progress in the publish log, and choose its way.

    Writes nothing; the progress of a run with transactions that died may be newer in Kafka. Raises as a publish before
    its first range.
    """
    endpoints = Endpoints(spark, definition)
    topic, table = endpoints.topic, endpoints.table
    sharding = sharding_for(topic, backend_of(spark).parallelism)
    planner = RangePlanner(definition, table, sharding, FileShardLimits.from_environment())
    progress = PublishLog.of(spark, definition).last()
    latest = change_feed.latest_version(table)
    if progress is None or not progress.has_begun:
        start = _first_version(definition, table, latest)
        planned = planner.snapshot(latest) if start is None else _next(planner, start, latest)
        pending = 1 if start is None else max(0, latest - start + 1)
    else:
        change_feed.check_same(table, progress.table_id)
        planned = _resumed(planner, progress, latest)
        pending = latest - progress.version
    found = Explained(definition.name, str(definition.delta), topic.title, pending)
    if planned is None:
        return found
    sender, encoder = _ways(planned, table, definition, topic)
    return Explained(
        found.pipeline,
        found.table,
        found.topic,
        pending,
        _named(planned),
        sender,
        encoder,
        planned.recorded.shards or None,
    )


def _first_version(definition: Definition, table: Table, latest: int) -> int | None:
    """The first version whose changes a first run sends; None where it sends a snapshot."""
    start = definition.publish.start
    match start.mode:
        case "snapshot":
            return None
        case "version":
            return int(start.value or 0)
        case "timestamp":
            return change_feed.version_at(table, start.value or "")
        case _:
            return latest + 1


def _resumed(planner: RangePlanner, progress: PublishProgress, latest: int) -> PlannedRange | None:
    if progress.open is not None:
        return planner.plan(progress.open)
    return _next(planner, progress.version + 1, latest)


def _next(planner: RangePlanner, first: int, latest: int) -> PlannedRange | None:
    return next(planner.changes(first, latest), None) if first <= latest else None


def _ways(planned: PlannedRange, table: Table, definition: Definition, topic: Topic) -> tuple[str, str]:
    try:
        if topic.sink.delivery_guarantee is DeliveryGuarantee.EXACTLY_ONCE:
            raise NotThisWay("it is sent in transactions")
        driver_records(planned, table, definition, topic)
    except NotThisWay as reason:
        sender = told("tasks", reason)
    else:
        return told("driver"), told("driver")
    try:
        task_encoder(planned.recorded, definition, topic)
    except NotThisWay as reason:
        return sender, told("spark", reason)
    return sender, told("tasks")


def _named(planned: PlannedRange) -> str:
    part = planned.recorded
    if part.snapshot:
        return f"all rows of version {part.last}, chunk {part.chunk + 1} of {part.chunks}"
    return f"the changes of versions {part.first} to {part.last}"
