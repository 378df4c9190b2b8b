"""Delta -feed-> changes -compact-> changes -encode-> records -produce-> topic

A publish sends one range after the other: the changes of some table versions, or a chunk of a snapshot. Progress is
recorded between ranges. The delivery decides how a range is sent and what a crash in the middle of it means.
"""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from bridge import failpoints
from bridge.config import refuse_unpublishable
from bridge.definition import Definition, DeliveryGuarantee
from bridge.delta import change_feed
from bridge.delta.delta_errors import feed_errors
from bridge.errors import ConcurrentRunError, KafkaError
from bridge.kafka import admin, topic_creation
from bridge.kafka.sink import ProduceResult
from bridge.metrics import BatchReport, Listener, Summary, ignore
from bridge.options import FORMATS
from bridge.pipelines.changes import row_gate
from bridge.pipelines.publish.added_columns import with_added_columns
from bridge.pipelines.publish.consumer_registration import ConsumerRegistration
from bridge.pipelines.publish.delivery import Delivery, delivery_for
from bridge.pipelines.publish.foreign_write_monitor import ForeignWriteMonitor
from bridge.pipelines.publish.foreign_writes import Repair
from bridge.pipelines.publish.partition_count import PartitionCount
from bridge.pipelines.publish.range_gate import check_range
from bridge.pipelines.publish.range_planner import RangePlanner
from bridge.pipelines.publish.range_records import changes_in_range, encode_changes_of_range
from bridge.pipelines.publish.start_position import start_position
from bridge.pipelines.runtime.lease import Lease, acquire_lease
from bridge.pipelines.runtime.monitoring import Notices
from bridge.pipelines.runtime.preflight import publish_warnings, published_table
from bridge.pipelines.runtime.spark_errors import explain_errors
from bridge.publish_progress import PublishProgress, PublishRange

__all__ = ["publish"]

_POLL_SECONDS = 0.1


def publish(
    spark: SparkSession,
    definition: Definition,
    *,
    listener: Listener = ignore,
    stop: threading.Event | None = None,
) -> Summary:
    """Send the table's changes to its topic or topics, until there are none left (available-now) or `stop` is set.

    The first run begins at `publish.start`. Later runs continue where the last one ended, also in the middle of a
    snapshot. A commit gives at most one record per key: the row, or a tombstone. A changed primary key gives a
    tombstone for the old key and a record for the new one; an update that changes no column gives none. Records of a
    key keep the order of the table's versions. CDC formats write one message per change with the row before and after,
    or, with `publish.update-messages: pair`, a delete and a create message. Under `publish.net-changes` all this holds
    for a batch instead of a commit. A table without a PRIMARY KEY gives one record per added row; its updates and
    deletes need a CDC format.

    `sink.delivery-guarantee` at-least-once: after a crash the range that was being sent is sent again, in the same
    order per key. exactly-once: readers of committed records see each record once. The records of one transaction
    appear together, and so do those of a version that changed primary keys (if it has at most
    publish.transaction-rows records and no `sink.partitioner` places records by their task).

    Raises ConcurrentRunError when another run of the pipeline holds the lease, KafkaError, TableError and GapError
    before anything is sent; ConcurrentRunError when another run takes over or records its progress meanwhile.
    """
    with acquire_lease(spark, definition, "publish") as lease:
        return _Run(spark, definition, listener, stop or threading.Event(), lease).run()


class _Run:
    delivery: Delivery
    progress: PublishProgress
    latest: int
    """The newest version of the table when the log was last read."""

    def __init__(
        self,
        spark: SparkSession,
        definition: Definition,
        listener: Listener,
        stop: threading.Event,
        lease: Lease,
    ) -> None:
        self.spark, self.definition, self.listener, self.stop = spark, definition, listener, stop
        self.lease = lease
        self.summary = Summary(definition.name, "publish")
        refuse_unpublishable(definition.topic)
        row_gate.refuse_quarantine(definition)
        self.as_declared = admin.resolve(definition.topic), published_table(spark, definition)
        self._refresh_table()
        self.notices, self.registration = Notices(), ConsumerRegistration(definition, self.table)
        self.partition_count = PartitionCount(spark, definition)
        warnings = (
            row_gate.check_ready(spark, definition, self.table.fields),
            *topic_creation.prepare_topics(self.topic),
            *publish_warnings(self.topic),
            *self.partition_count.warnings(self.topic),
        )
        self._notify(lease.warning, *warnings)

    def run(self) -> Summary:
        started = time.monotonic()
        interval = self.definition.run.trigger_seconds
        with delivery_for(self.spark, self.definition, self.topic) as self.delivery:
            self._begin()
            while not self.stop.is_set():
                turn = time.monotonic()
                self.lease.check()
                self._publish_open_range()
                self._publish_new_versions()
                if interval is None:
                    break
                self.stop.wait(max(_POLL_SECONDS, interval - (time.monotonic() - turn)))
        return replace(self.summary, warning=self.notices.all(), seconds=time.monotonic() - started)

    def _begin(self) -> None:
        delivery = self.delivery
        self.planner = RangePlanner(self.definition, self.table, delivery.shards, delivery.file_tasks)
        self.foreign_writes = ForeignWriteMonitor(delivery, self.notices)
        start = start_position(self.definition, self.table, delivery, self.planner)
        self.progress, self.latest = start.progress, start.latest
        if start.snapshot is not None:
            self._open(start.snapshot)
        self._notify(*delivery.destination.warnings(), self.registration.update(self.progress))

    def _publish_new_versions(self) -> None:
        """Publish what was committed to the table since the last call, range by range."""
        self.latest = latest = change_feed.latest_version(self.table)
        if self.stop.is_set():
            return
        if latest == self.progress.version:
            self._check_foreign_writes()
            return
        self._refresh_table()
        self._notify(self.registration.lag_warning(self.progress), *self.partition_count.warnings(self.topic))
        first = self.progress.version + 1
        change_feed.check_feed(self.table, first, max(first, latest), self.progress.table_id, newest=latest)
        for publish_range in self.planner.changes(first, latest):
            if not self.stop.is_set():
                self._open(publish_range)
                self._publish_open_range()

    def _publish_open_range(self) -> None:
        """Publish the open range and what follows it: the next chunks of a snapshot."""
        while self.progress.open is not None and not self.stop.is_set():
            self.lease.check()
            self._publish(self.progress.open)

    def _open(self, publish_range: PublishRange) -> None:
        self.progress = self.delivery.record(self.progress.opened(publish_range))
        failpoints.hit("publish.opened")

    def _publish(self, publish_range: PublishRange) -> None:
        """Feed, compact, judge, encode, produce, record progress, report: one range."""
        started = time.monotonic()
        first, last = publish_range.first, publish_range.last
        with (
            explain_errors(self.spark, self.definition, f"sending versions {first} to {last}"),
            feed_errors(self.table, first, last),
            ExitStack() as stack,
        ):
            direct = self._sends_directly(publish_range)
            changes = changes_in_range(publish_range, self.definition, self.topic, self.table, direct=direct)
            gate_counts = check_range(self.definition, changes, self.notices, stack)
            records = encode_changes_of_range(changes, self.definition, self.topic)
            sent = self._produce(records, publish_range)
        failpoints.hit("publish.sent")
        with explain_errors(self.spark, self.definition, "recording progress"):
            repair = self._repair_foreign_writes(self.progress.closed(lost=sent.lost), sent.records)
            self.progress = self.delivery.record(repair.progress)
        failpoints.hit("publish.closed")
        self._notify(self.registration.update(self.progress))
        self._report(
            BatchReport(
                pipeline=self.definition.name,
                verb="publish",
                batch=self.progress.batch,
                version=last,
                records_out=sent.records + repair.sent,
                tombstones=sent.tombstones + repair.tombstones,
                lost=sent.lost,
                unexpected_rows=row_gate.unexpected_rows(gate_counts),
                pending_records=self.latest - last,
                warning=self.notices.new(),
                seconds=time.monotonic() - started,
            )
        )

    def _sends_directly(self, publish_range: PublishRange) -> bool:
        """See RangePlanner.sends_directly, which may read a whole version: called only where it matters."""
        grouped = self.definition.publish.net_changes or not FORMATS[self.topic.value.name].insert_only
        return not (publish_range.snapshot or self.topic.appends or grouped) and self.planner.sends_directly(
            publish_range
        )

    def _produce(self, records: DataFrame, publish_range: PublishRange) -> ProduceResult:
        try:
            try:
                return self.delivery.send(records, publish_range)
            except ConcurrentRunError:
                # A task stood still. If no other run has taken over, the range is sent again, in the same order.
                if self.topic.sink.delivery_guarantee is DeliveryGuarantee.EXACTLY_ONCE:
                    raise
                self.lease.refresh()
                return self.delivery.send(records, publish_range)
        except KafkaError as failed:
            versions = f"(versions {publish_range.first} to {publish_range.last} of table {self.table})"
            raise type(failed)(f"{failed} {versions}") from failed

    def _repair_foreign_writes(self, progress: PublishProgress, sent: int) -> Repair:
        """Repair what others wrote since the recorded ends, before `progress` is recorded; see foreign_writes."""
        definition = replace(self.definition, topic=self.topic)
        return self.foreign_writes.repair(
            definition, self.table, progress, before=self.progress.ends, sent=sent
        )

    def _check_foreign_writes(self) -> None:
        """Repair foreign writes while there is nothing to publish."""
        if not self.foreign_writes.is_due(self.progress):
            return
        with explain_errors(self.spark, self.definition, "comparing the topic with the table"):
            repair = self._repair_foreign_writes(self.progress, 0)
            if repair.progress != self.progress:
                self.progress = self.delivery.record(repair.progress)
        self.summary = replace(
            self.summary,
            records_out=self.summary.records_out + repair.sent,
            tombstones=self.summary.tombstones + repair.tombstones,
        )

    def _refresh_table(self) -> None:
        """Read the table's columns as they are now, before any of its rows is sent."""
        topic, table = self.as_declared
        self.topic, self.table = with_added_columns(self.definition, topic, table, table.read({}).schema)

    def _notify(self, *warnings: str | None) -> None:
        for warning in warnings:
            self.notices.add(warning)

    def _report(self, report: BatchReport) -> None:
        self.summary = self.summary.plus(report)
        self.listener(report)
