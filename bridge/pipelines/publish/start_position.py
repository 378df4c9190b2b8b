"""Where a run of a publish begins: at the progress of the run before it, or at `publish.start`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bridge.definition import Definition
from bridge.delta import change_feed
from bridge.delta.table import Table
from bridge.errors import REPUBLISH, GapError
from bridge.pipelines.publish.delivery import Delivery
from bridge.pipelines.publish.planned_range import PlannedRange
from bridge.pipelines.publish.range_planner import RangePlanner
from bridge.publish_progress import NOTHING, PublishProgress


@dataclass(frozen=True)
class StartPosition:
    """What a run of a publish continues with."""

    progress: PublishProgress
    """As recorded by the delivery."""
    latest: int
    """The newest table version that the run knows of."""
    open_range: PlannedRange | None = None
    """The range that `progress` has open, which is sent first."""
    snapshot: PlannedRange | None = None
    """The snapshot that a first run opens."""
    is_first: bool = False
    """Whether there was no progress to take over."""


def start_position(
    definition: Definition, table: Table, delivery: Delivery, planner: RangePlanner
) -> StartPosition:
    """Take over the progress of the run before, or record the position that `publish.start` names.

    Raises GapError when progress belongs to another table, to other topics or to another key, and when a resync was
    interrupted; ConcurrentRunError, KafkaError.
    """
    progress = delivery.take_over()
    if progress is not None and progress.has_begun:
        return _resumed(definition, table, planner, progress)
    latest = change_feed.latest_version(table)
    batch = progress.batch if progress is not None else -1
    progress = PublishProgress(definition.name, table.id, NOTHING, batch=batch)
    start = definition.publish.start
    if start.mode == "snapshot":
        snapshot = planner.snapshot(latest)
        if snapshot.recorded.shards:
            # A run that dies while it opens the first range, after writing the log and before Kafka, would leave its
            # progress in the log only, as if Kafka had lost it.
            progress = delivery.record(progress)
        return StartPosition(progress, latest, snapshot=snapshot, is_first=True)
    if start.mode == "version":
        latest = int(start.value or 0) - 1
    elif start.mode == "timestamp":
        latest = change_feed.version_at(table, start.value or "") - 1
    return StartPosition(delivery.record(replace(progress, version=latest)), latest, is_first=True)


def _resumed(
    definition: Definition, table: Table, planner: RangePlanner, progress: PublishProgress
) -> StartPosition:
    change_feed.check_same(table, progress.table_id)
    open_range = progress.open
    if open_range is None:
        return StartPosition(progress, progress.version)
    if open_range.resync:
        raise GapError(
            f"{definition.name!r}: a resync was interrupted, so it is not known which version of {table} the topic "
            f"holds; {REPUBLISH}"
        )
    return StartPosition(progress, open_range.last, open_range=planner.plan(open_range))
