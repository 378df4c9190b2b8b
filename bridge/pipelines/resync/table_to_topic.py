"""Delta, whole -compare with fold(topic)-> what differs -encode-> records -produce-> topic"""

from __future__ import annotations

import uuid
from contextlib import ExitStack
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bridge import compact, failpoints
from bridge.columns import AFTER, BEFORE, POSITION, col
from bridge.config import refuse_unpublishable
from bridge.definition import Definition
from bridge.delta import change_feed
from bridge.delta.delta_errors import feed_errors
from bridge.delta.table import Table
from bridge.kafka import admin, topic_creation
from bridge.kafka.sink import ProduceResult
from bridge.offsets import Offsets
from bridge.pipelines.changes import changelog_decode, row_gate
from bridge.pipelines.compare.topic_differences import UNKNOWN, TopicDifferences
from bridge.pipelines.publish import foreign_writes
from bridge.pipelines.publish.added_columns import with_added_columns
from bridge.pipelines.publish.consumer_registration import ConsumerRegistration
from bridge.pipelines.publish.delivery import delivery_for
from bridge.pipelines.publish.destination import Destination
from bridge.pipelines.resync.report import Resync, refuse_appends
from bridge.pipelines.runtime import lease, query_state
from bridge.pipelines.runtime.monitoring import Notices
from bridge.pipelines.runtime.preflight import published_table
from bridge.publish_progress import NOTHING, PublishProgress, PublishRange

__all__ = ["resync"]


def resync(spark: SparkSession, definition: Definition, *, dry_run: bool = False) -> Resync:
    """Make the topic say what the newest version of the table holds, and write down that version as published: an
    ordinary publish goes on from there, whatever became of its progress, the change feed or the table.

    The topic is read to the end it has now, by committed records. Sent are records of rows that it lacks or has
    otherwise, and tombstones (CDC formats: delete messages) of keys that only it has; a key whose last record cannot be
    decoded is sent again. Nothing else is. With exactly-once it goes out in transactions, and what runs before have
    open is ended first. When it dies, run it again: it compares anew, so a record that arrived is not sent twice; a
    publish refuses to go on before that. A publish that runs at the same time ends when it next writes its progress.
    `dry_run` writes nothing, and takes nothing over.

    Raises DefinitionError for a table without a PRIMARY KEY, TableError for one that holds a key twice, BadRecordError
    for a record of the topic whose key cannot be decoded, KafkaError, ConcurrentRunError.
    """
    refuse_appends(definition)
    refuse_unpublishable(definition.topic)
    row_gate.refuse_quarantine(definition)
    topic, table = admin.resolve(definition.topic), published_table(spark, definition)
    topic, table = with_added_columns(definition, topic, table, table.read({}).schema)
    run = _Run(replace(definition, topic=topic), table, change_feed.latest_version(table))
    with ExitStack() as stack:
        persist = changelog_decode.persist_within(stack)
        if dry_run:
            state = admin.describe(topic)
            with feed_errors(table, run.version, run.version):
                return run.report(
                    persist(run.differences.whole(state.earliest, state.end, persist)), state.end, True
                )
        ours = stack.enter_context(lease.acquire_lease(spark, definition, "publish", verb="resync"))
        topic_creation.prepare_topics(topic)
        return run.send(stack, persist, ours)


@dataclass(frozen=True)
class _Run:
    definition: Definition
    """With the topics that are there, and the columns that the table has."""
    table: Table
    version: int

    @property
    def differences(self) -> TopicDifferences:
        return TopicDifferences(self.definition, self.table, self.version)

    def send(self, stack: ExitStack, persist: changelog_decode.Persist, ours: lease.Lease) -> Resync:
        definition, table, spark = self.definition, self.table, self.table.spark
        destination = Destination(definition, definition.topic)
        out = stack.enter_context(delivery_for(spark, definition, destination))
        previous = out.take_over_for_resync()
        published_version = (
            previous.version if previous is not None and previous.table_id == table.id else NOTHING
        )
        publish_range = PublishRange(self.version, self.version, resync=True)
        state = PublishProgress(
            definition.name, table.id, published_version, previous.batch if previous is not None else -1
        )
        # Written down before the topic is read: a publish that still runs ends there, and none goes on before us.
        state = out.record(replace(state, resync=uuid.uuid4().hex).opened(publish_range))
        failpoints.hit("resync.opened")
        # Before the topic is read: what others write from here on is looked at when all is sent.
        before = admin.log_end_offsets(definition.topic) if foreign_writes.applies_to(definition) else None
        topic = admin.describe(definition.topic)
        place = stack.enter_context(query_state.query_state_folder(spark, definition, "resync", state.resync))
        with feed_errors(table, self.version, self.version):
            # Kept in files: the same rows for a task that is repeated, though the topic has changed by then.
            self.differences.whole(topic.earliest, topic.end, persist).write.parquet(place)
            differences = spark.read.parquet(place)
            result = self.report(differences, topic.end, False)
        ours.check()
        rows = compact.upserts(differences.select(BEFORE, AFTER, POSITION))
        way_out = (
            "correct the rows in the table and run the resync again (a publish does not go on before that)"
        )
        gate_warnings = row_gate.enforce(
            definition, row_gate.evaluate(definition, rows), rows, "Nothing was sent", way_out
        )
        sent = ProduceResult()
        if result.inserted or result.updated or result.deleted:
            assert state.open is not None
            differences = differences.select(BEFORE, AFTER, POSITION)
            sent = out.send(self.differences.records(differences), state.open)
        failpoints.hit("resync.sent")
        state = state.closed(lost=sent.lost)
        repaired = foreign_writes.repair_foreign_writes(
            definition, table, out, state, before=before, sent=sent.records
        )
        state = out.record(repaired.progress)
        notices = Notices()
        registration_warning = ConsumerRegistration(definition, table).update(state)
        for warning in (
            ours.warning,
            *gate_warnings,
            _lost_warning(sent.lost),
            repaired.warning,
            registration_warning,
        ):
            notices.add(warning)
        return replace(result, warning=notices.all())

    def report(self, differences: DataFrame, end: Offsets, dry_run: bool) -> Resync:
        """Counts of what differs."""
        deleted, unknown = col(AFTER).isNull(), col(UNKNOWN)
        inserted = col(BEFORE).isNull() & ~unknown
        row = differences.agg(
            F.count_if(inserted), F.count_if(~inserted & ~deleted), F.count_if(deleted), F.count_if(unknown)
        ).first()
        assert row is not None
        rows = self.table.read({"versionAsOf": str(self.version)}).count()
        return Resync(
            pipeline=self.definition.name,
            direction="publish",
            dry_run=dry_run,
            version=None if dry_run else self.version,
            topic_end=end.to_json(),
            inserted=row[0],
            updated=row[1],
            deleted=row[2],
            unchanged=rows - row[0] - row[1],
            kept=0,
            bad=row[3],
        )


def _lost_warning(records: int) -> str | None:
    if not records:
        return None
    return (
        f"{records:,} records were lost, as 'sink.delivery-guarantee' = 'none' allows; run the resync again, or with "
        "another guarantee"
    )
