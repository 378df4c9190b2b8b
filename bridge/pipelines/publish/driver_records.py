"""Which ranges the driver reads, encodes and sends by itself, without a Spark job: small ones (docs/adr/046).

Their records are those of `range_records`, for which Delta plans the change feed and Spark starts tasks: that takes far
longer than to send a few thousand records.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from bridge.arrow_formats.record_encoder import RETRACTS, RecordEncoder
from bridge.columns import KIND
from bridge.definition import Definition, Topic
from bridge.delta.changed_files import BEFORE_IMAGE, CHANGE_TYPE, DELETE, INSERT, changes_in_driver
from bridge.delta.table import Table
from bridge.pipelines.changes.declared_times import has_longer_keys
from bridge.pipelines.publish.range_planner import Compaction, PlannedRange
from bridge.pipelines.publish.range_records import DriverRecords, task_encoder
from bridge.rows import RowKind
from bridge.ways import NotThisWay

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
