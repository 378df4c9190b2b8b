"""What a range of a publish sends: the feed's changes, grouped where they must be, then encoded."""

from __future__ import annotations

from pyspark.sql import DataFrame

from bridge import compact
from bridge.columns import AFTER
from bridge.definition import Definition, Topic
from bridge.delta import change_feed
from bridge.delta.table import Table
from bridge.encode import encode, encode_changes
from bridge.options import FORMATS
from bridge.pipelines.runtime.preflight import refuse_retractions
from bridge.publish_progress import PublishRange

__all__ = ["changes_in_range", "encode_changes_of_range"]


def changes_in_range(
    publish_range: PublishRange, definition: Definition, topic: Topic, table: Table, *, direct: bool
) -> DataFrame:
    """What a range sends, not encoded yet: changes, or the columns of compact.net; the same rows each time.

    `direct`: its rows without -U are what is to be sent (see Ranges.direct). Raises TableError for updates and
    deletes of a table without a PRIMARY KEY, where the format has only inserts.
    """
    key, insert_only = definition.primary_key, FORMATS[topic.value.name].insert_only
    if publish_range.snapshot:
        rows = change_feed.snapshot(table, publish_range.last)
        rows = change_feed.chunk(table, rows, key, publish_range.chunk, publish_range.chunks)
        return rows if insert_only else compact.each(rows)
    changes = change_feed.changes(table, publish_range.first, publish_range.last)
    if topic.appends:
        if insert_only:
            refuse_retractions(changes, table)
            return changes
        return compact.each(changes)
    if direct:
        return compact.without_before_images(changes)
    return compact.net(changes, key, across_versions=definition.publish.net_changes)


def encode_changes_of_range(changes: DataFrame, definition: Definition, topic: Topic) -> DataFrame:
    """The records of what `changes_of` gives."""
    if AFTER not in changes.columns:
        return encode(changes, topic)
    if FORMATS[topic.value.name].insert_only:
        return encode(compact.upserts(changes), topic)
    return encode_changes(changes, topic, pair=definition.publish.pair)
