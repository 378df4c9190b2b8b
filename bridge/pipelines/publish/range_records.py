"""The rows and records of a publish range: the feed's changes, compacted as planned, then encoded."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from bridge import compact
from bridge.arrow_formats.record_encoder import RecordEncoder
from bridge.columns import AFTER
from bridge.definition import Definition, Topic
from bridge.delta import change_feed
from bridge.delta.table import Table
from bridge.encode import encode, encode_changes, leave_to_tasks
from bridge.options import FORMATS
from bridge.pipelines.publish.planned_range import Compaction, PlannedRange
from bridge.pipelines.publish.task_encoding import task_encoder
from bridge.pipelines.runtime.preflight import refuse_retractions
from bridge.publish_progress import PublishRange

__all__ = ["RangeRecords", "changes_in_range", "encode_changes_of_range"]


@dataclass(frozen=True)
class RangeRecords:
    """The records of a range, as a Delivery sends them."""

    rows: DataFrame | pa.Table
    """A table of Arrow is sent by the driver, in its order; see `driver_records`."""
    encoder: RecordEncoder | None = None
    """What makes keys and values of the columns where they are sent; None where a frame has them."""


def changes_in_range(planned: PlannedRange, table: Table, definition: Definition) -> DataFrame:
    """Read the changes of a range and compact them as planned; the same rows each time.

    The result has the table's columns, or those of compact.net. Raises GapError when versions are gone, TableError for
    updates and deletes where the plan has inserts only.
    """
    key, before_images = definition.primary_key, planned.compaction is not Compaction.WITHOUT_BEFORE_IMAGES
    rows = _rows(planned.recorded, table, definition, before_images)
    match planned.compaction:
        case Compaction.NONE | Compaction.WITHOUT_BEFORE_IMAGES:
            return rows
        case Compaction.INSERTS_ONLY:
            refuse_retractions(rows, table)
            return rows
        case Compaction.EACH:
            return compact.each(rows)
        case Compaction.NET_OF_VERSION:
            return compact.net(rows, key, across_versions=False)
        case Compaction.NET_OF_RANGE:
            return compact.net(rows, key, across_versions=True)


def encode_changes_of_range(
    changes: DataFrame, publish_range: PublishRange, definition: Definition, topic: Topic
) -> RangeRecords:
    """Encode what `changes_in_range` gives as the records of `topic`, or leave that to the tasks that send them."""
    if not FORMATS[topic.value.name].insert_only:
        return RangeRecords(encode_changes(changes, topic, pair=definition.publish.pair))
    rows = compact.upserts(changes) if AFTER in changes.columns else changes
    encoder = task_encoder(publish_range, definition, topic)
    if isinstance(encoder, str):
        return RangeRecords(encode(rows, topic))
    return RangeRecords(leave_to_tasks(rows, topic, encoder), encoder)


def _rows(
    publish_range: PublishRange, table: Table, definition: Definition, before_images: bool
) -> DataFrame:
    first, last = publish_range.first, publish_range.last
    by_delta = bool(publish_range.files)  # the plan is asked for its files again
    if not publish_range.snapshot:
        return change_feed.changes(table, first, last, before_images=before_images, by_delta=by_delta)
    snapshot = change_feed.snapshot(table, last, by_delta=by_delta)
    return change_feed.chunk(
        table, snapshot, definition.primary_key, publish_range.chunk, publish_range.chunks
    )
