"""Where a run of a publish begins: at the progress of the run before it, or at `publish.start`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bridge.definition import Definition
from bridge.delta import change_feed
from bridge.delta.table import Table
from bridge.errors import REPUBLISH, GapError
from bridge.pipelines.publish.delivery import Delivery
from bridge.pipelines.publish.range_planner import RangePlanner
from bridge.publish_progress import NOTHING, PublishProgress, PublishRange

__all__ = ["StartPosition", "start_position"]


@dataclass(frozen=True)
class StartPosition:
    """What a run of a publish continues with."""

    progress: PublishProgress
    """As recorded by the delivery; its open range, if it has one, is sent first."""
    latest: int
    """The newest table version that the run knows of."""
    snapshot: PublishRange | None = None
    """The snapshot that a first run opens next."""


def start_position(
    definition: Definition, table: Table, delivery: Delivery, planner: RangePlanner
) -> StartPosition:
    """Take over the progress of the run before, or record the position that `publish.start` names.

    Raises GapError when progress belongs to another table, to other topics or to another key, and when a resync was
    interrupted; ConcurrentRunError, KafkaError.
    """
    progress = delivery.take_over()
    if progress is not None and progress.has_begun:
        return _resumed(definition, table, progress)
    latest = change_feed.latest_version(table)
    batch = progress.batch if progress is not None else -1
    progress = PublishProgress(definition.name, table.id, NOTHING, batch=batch)
    start = definition.publish.start
    if start.mode == "snapshot":
        snapshot = planner.snapshot(latest)
        if snapshot.shards:
            # Without this record a run that dies between the log and Kafka while it opens the first range leaves
            # progress in the log only, which looks as if Kafka had lost it.
            progress = delivery.record(progress)
        return StartPosition(progress, latest, snapshot)
    if start.mode == "version":
        latest = int(start.value or 0) - 1
    elif start.mode == "timestamp":
        latest = change_feed.version_at(table, start.value or "") - 1
    return StartPosition(delivery.record(replace(progress, version=latest)), latest)


def _resumed(definition: Definition, table: Table, progress: PublishProgress) -> StartPosition:
    change_feed.check_same(table, progress.table_id)
    open_range = progress.open
    if open_range is not None and open_range.resync:
        raise GapError(
            f"{definition.name!r}: a resync was interrupted, so it is not known which version of {table} the topic "
            f"holds; {REPUBLISH}"
        )
    return StartPosition(progress, open_range.last if open_range is not None else progress.version)
