"""Delta -compare with the fold of the topic-> differences -encode-> records -produce-> topic"""

from __future__ import annotations

import uuid
from contextlib import ExitStack
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bridge import compact, failpoints
from bridge.backend import Feature, require
from bridge.columns import AFTER, BEFORE, POSITION, col
from bridge.config import refuse_unpublishable
from bridge.definition import Definition
from bridge.delta import change_feed
from bridge.delta.delta_errors import feed_errors
from bridge.delta.table import Table
from bridge.errors import DefinitionError
from bridge.kafka import admin, topic_creation
from bridge.kafka.records import SendCounts
from bridge.offsets import Offsets
from bridge.pipelines.changes import changelog_decode, row_gate
from bridge.pipelines.compare.topic_differences import UNKNOWN, TopicDifferences
from bridge.pipelines.publish import foreign_writes
from bridge.pipelines.publish.delivery import Delivery, delivery_for
from bridge.pipelines.publish.destination import Destination
from bridge.pipelines.publish.endpoints import ConsumerRegistration, with_added_columns
from bridge.pipelines.resync.report import Resync, refuse_appends
from bridge.pipelines.runtime import query_state
from bridge.pipelines.runtime.executors import check_executors
from bridge.pipelines.runtime.lease import Lease, acquire_lease
from bridge.pipelines.runtime.lineage import publish_flow, tracked_command
from bridge.pipelines.runtime.monitoring import Notices
from bridge.pipelines.runtime.preflight import published_table
from bridge.publish_progress import NOTHING, PublishProgress, PublishRange


def resync(spark: SparkSession, definition: Definition, *, dry_run: bool = False) -> Resync:
    """Make the topic equal to the newest version of the table, and record that version as published.

    An ordinary publish continues from there, whatever happened to its progress, the change feed or the table.

    Compares the committed records of the topic, up to its end now, with the table. Sends a record for each row that is
    missing or different in the topic, and a tombstone (CDC formats: a delete message) for each key that only the topic
    has; a key whose last record cannot be decoded gets a new record. Nothing else is sent. With exactly-once, records
    are sent in transactions, and open transactions of earlier runs are ended first.

    A resync that dies must be run again: it compares again, so a record that arrived is not sent twice, and a publish
    refuses to continue before. A publish that runs at the same time ends when it next records its progress. `dry_run`
    writes nothing, and fences no other run.

    Raises UnsupportedError through Spark Connect, DefinitionError for a table without a PRIMARY KEY, TableError for one
    with duplicate keys, BadRecordError for a record of the topic whose key cannot be decoded, QualityError under `gate:
    fail`, KafkaError, ConcurrentRunError.
    """
    refuse_appends(definition)
    refuse_unpublishable(definition.topic)
    row_gate.refuse_quarantine(definition)
    if not dry_run:
        require(spark, Feature.WORKING_FILES, "bridge resync of a topic")
        if not definition.run.checkpoint:
            raise DefinitionError(
                f"{definition.name!r}: bridge resync of a topic needs `run.checkpoint`, a folder for Spark's working "
                "files; set it beside `run.state`, which keeps the progress"
            )
    check_executors(spark, definition, sends=not dry_run)
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
        lease = stack.enter_context(acquire_lease(spark, definition, "publish", verb="resync"))
        stack.enter_context(tracked_command(spark, definition, "resync", publish_flow))
        topic_creation.prepare_topics(topic)
        return run.send(stack, persist, lease)


@dataclass(frozen=True)
class _Run:
    definition: Definition
    """With the topics that exist, and the columns of the table."""
    table: Table
    version: int

    @property
    def differences(self) -> TopicDifferences:
        return TopicDifferences(self.definition, self.table, self.version)

    def send(self, stack: ExitStack, persist: changelog_decode.Persist, lease: Lease) -> Resync:
        definition, table, spark = self.definition, self.table, self.table.spark
        destination = Destination(definition, definition.topic)
        delivery = stack.enter_context(delivery_for(spark, definition, destination))
        # Recorded before the topic is read: a publish that still runs ends there, and no other one continues.
        progress = delivery.record(self._opened(delivery))
        failpoints.hit("resync.opened")
        # Read before the topic: records that others write from here on are checked after everything is sent.
        before = admin.log_end_offsets(definition.topic) if foreign_writes.applies_to(definition) else None
        topic = admin.describe(definition.topic)
        folder = stack.enter_context(
            query_state.query_state_folder(spark, definition, "resync", progress.resync)
        )
        with feed_errors(table, self.version, self.version):
            # Written to files, so that a task that is repeated sends the same rows although the topic has changed.
            self.differences.whole(topic.earliest, topic.end, persist).write.parquet(folder)
            differences = spark.read.parquet(folder)
            result = self.report(differences, topic.end, False)
        lease.check()
        gate_warnings = self._enforce_gate(differences)
        sent = SendCounts()
        if result.inserted or result.updated or result.deleted:
            assert progress.open is not None
            records = self.differences.records(differences.select(BEFORE, AFTER, POSITION))
            sent = delivery.send(records, progress.open)
        failpoints.hit("resync.sent")
        progress = progress.closed(lost=sent.lost)
        repair = foreign_writes.repair_foreign_writes(
            definition, table, delivery, progress, before=before, sent=sent.records
        )
        progress = delivery.record(repair.progress)
        registration_warning = ConsumerRegistration(definition, table).update(progress)
        notices = Notices()
        notices.add(
            lease.warning, *gate_warnings, _lost_warning(sent.lost), repair.warning, registration_warning
        )
        return replace(result, warning=notices.all())

    def _opened(self, delivery: Delivery) -> PublishProgress:
        """The progress of a resync that begins: the version is open, published is what was published before."""
        previous = delivery.take_over_for_resync()
        published, batch = NOTHING, -1
        if previous is not None:
            published = previous.version if previous.table_id == self.table.id else NOTHING
            batch = previous.batch
        publish_range = PublishRange(self.version, self.version, resync=True)
        progress = PublishProgress(self.definition.name, self.table.id, published, batch)
        return replace(progress, resync=uuid.uuid4().hex).opened(publish_range)

    def _enforce_gate(self, differences: DataFrame) -> tuple[str, ...]:
        """Apply the gate to the rows that will be sent; returns its warnings, raises QualityError."""
        rows = compact.upserts(differences.select(BEFORE, AFTER, POSITION))
        counts = row_gate.evaluate(self.definition, rows)
        way_out = (
            "correct the rows in the table and run the resync again (a publish does not continue before that)"
        )
        return row_gate.enforce(self.definition, counts, rows, "Nothing was sent", way_out)

    def report(self, differences: DataFrame, end: Offsets, dry_run: bool) -> Resync:
        """Count the differences."""
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
