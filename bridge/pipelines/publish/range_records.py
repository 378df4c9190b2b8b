"""Reads the changes of a publish range, compacts them as planned, and encodes them as records.

- a frame: encoded by Spark SQL
- `UnencodedRecords`: encoded by the tasks that send them, where these need no keys (docs/adr/043)
- `DriverRecords`: a small range, which the driver reads, encodes and sends (docs/adr/046)
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from bridge import compact
from bridge.arrow_formats.record_encoder import RETRACTS, RecordEncoder, record_encoder
from bridge.columns import AFTER, KIND
from bridge.definition import Definition, DeliveryGuarantee, Encoder, Topic
from bridge.delta import change_feed
from bridge.delta.changed_files import BEFORE_IMAGE, CHANGE_TYPE, DELETE, INSERT, changes_in_driver
from bridge.delta.table import Table
from bridge.encode import encode, encode_changes, leave_to_tasks
from bridge.kafka.sink import UnencodedRecords, needs_no_key
from bridge.options import FORMATS
from bridge.pipelines.changes.declared_times import checked_keys, has_longer_keys
from bridge.pipelines.publish.range_planner import Compaction, PlannedRange
from bridge.pipelines.publish.sharding import is_unique_in_range
from bridge.pipelines.runtime.preflight import refuse_retractions
from bridge.publish_progress import PublishRange
from bridge.rows import RowKind
from bridge.ways import NotThisWay, told


@dataclass(frozen=True)
class _LeftToTasks:
    """See `UnencodedRecords`."""

    rows: DataFrame
    topic: Topic
    encoder: RecordEncoder

    def encoded(self) -> DataFrame:
        return encode(self.rows, self.topic)

    def for_tasks(self) -> tuple[DataFrame, RecordEncoder]:
        return leave_to_tasks(self.rows, self.topic, self.encoder), self.encoder


Records = DataFrame | UnencodedRecords
"""The records of a range that Spark's tasks send."""


@dataclass(frozen=True)
class DriverRecords:
    """The records of a small range, which the driver sends in the order of the rows."""

    rows: pa.Table
    encoder: RecordEncoder
    judged: pa.Table | None = None
    """What the gate looks at, if there is one: the table's columns and `__kind`."""


def changes_in_range(planned: PlannedRange, table: Table, definition: Definition) -> DataFrame:
    """Read the changes of a range and compact them as planned; the same rows each time.

    The result has the table's columns, or those of compact.net. Raises GapError when versions are gone, TableError for
    updates and deletes where the plan has inserts only, and for keys with more digits of time than the topic's.
    """
    key, before_images = definition.primary_key, planned.compaction is not Compaction.WITHOUT_BEFORE_IMAGES
    rows = _rows(planned.recorded, table, definition, before_images)
    if not definition.topic.appends:
        compacts = planned.compaction in (Compaction.NET_OF_VERSION, Compaction.NET_OF_RANGE)
        rows = checked_keys(rows, table, definition.topic.schema, compacts=compacts)
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
) -> tuple[Records, str]:
    """Encode what `changes_in_range` gives as the records of `topic`, or leave that to the tasks that send them; and
    what encodes them, with the reason."""
    if not FORMATS[topic.value.name].insert_only:
        records = encode_changes(changes, topic, pair=definition.publish.pair)
        return records, told("spark", f"the format is {topic.value.name}")
    rows = compact.upserts(changes) if AFTER in changes.columns else changes
    try:
        encoder = task_encoder(publish_range, definition, topic)
    except NotThisWay as reason:
        return encode(rows, topic), told("spark", reason)
    return _LeftToTasks(rows, topic, encoder), told("tasks")


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


def task_encoder(
    publish_range: PublishRange, definition: Definition, topic: Topic, *, in_order: bool = False
) -> RecordEncoder:
    """Return the encoder of a range. Raises NotThisWay where its tasks do not encode it.

    They do where that gives the same bytes, and where no record is moved or sorted by its key before it is sent.
    `in_order`: a single sender gets the records by their versions, so that none must be.
    """
    if definition.publish.encoder is Encoder.SPARK:
        raise NotThisWay("publish.encoder is spark")
    if not FORMATS[topic.value.name].insert_only:
        raise NotThisWay(f"the format is {topic.value.name}")
    if topic.sink.delivery_guarantee is DeliveryGuarantee.EXACTLY_ONCE:
        if not publish_range.files:
            raise NotThisWay("its records are sharded by key")
    elif not in_order and not needs_no_key(topic, unique_keys=is_unique_in_range(topic, publish_range)):
        raise NotThisWay("its records are sent by key")
    return record_encoder(topic)


MOST_BYTES, MOST_ROWS = 4 << 20, 100_000
"""Of the files of a range. Several tasks send more than these faster."""


def driver_records(
    planned: PlannedRange, table: Table, definition: Definition, topic: Topic
) -> DriverRecords:
    """Return the records of a small range as Arrow. Raises NotThisWay where Spark must read or encode them, or say what
    is wrong.

    They are those of `encode_changes_of_range`, by ascending version: a key has one of each.
    """
    encoder = driver_encoder(planned, definition, topic)
    first, last = planned.recorded.first, planned.recorded.last
    judged = () if definition.gate is None else table.columns
    columns = list(dict.fromkeys((*encoder.sources, *judged)))
    changes = changes_in_driver(table, first, last, columns, most_bytes=MOST_BYTES, most_rows=MOST_ROWS)
    if not topic.appends and has_longer_keys(changes, topic.schema):
        raise NotThisWay("a key has more digits of time than the topic's")
    kinds = changes[CHANGE_TYPE]
    if planned.compaction is Compaction.INSERTS_ONLY:
        if pc.any(pc.not_equal(kinds, INSERT)).as_py():
            raise NotThisWay("rows of a table without a key were updated or deleted")
    else:
        changes = changes.filter(pc.not_equal(kinds, BEFORE_IMAGE))
    retracts = pc.equal(changes[CHANGE_TYPE], DELETE)
    sources = encoder.sources
    sent = pa.table([*(changes[c] for c in sources), retracts], names=[*sources.values(), RETRACTS])
    if definition.gate is None:
        return DriverRecords(sent, encoder)
    kind = pc.if_else(retracts, RowKind.DELETE.value, RowKind.UPDATE_AFTER.value)
    return DriverRecords(sent, encoder, changes.select(list(table.columns)).append_column(KIND, kind))


def driver_encoder(planned: PlannedRange, definition: Definition, topic: Topic) -> RecordEncoder:
    """Return the encoder of a range that the driver may send. Raises NotThisWay where it may not."""
    if planned.recorded.snapshot:
        raise NotThisWay("all rows of the table are sent")
    if planned.compaction not in (Compaction.WITHOUT_BEFORE_IMAGES, Compaction.INSERTS_ONLY):
        raise NotThisWay("changes of a key are compacted")
    if definition.gate is not None and topic.appends:
        raise NotThisWay("the gate names rows without a key by their versions")
    if topic.sink.parallelism is not None or topic.sink.partitioner != "default":
        raise NotThisWay("tasks decide where its records go")
    if topic.sink.headers or any(not column.virtual for column in topic.schema.metadata):
        raise NotThisWay("its records have more than key and value")
    encoder = task_encoder(planned.recorded, definition, topic, in_order=True)
    if encoder.as_texts:
        raise NotThisWay("floating point numbers have Java's texts")
    return encoder
