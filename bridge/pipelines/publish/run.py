"""Delta -feed-> changes -compact-> changes -encode-> records -produce-> topic

What goes out between two writings-down of progress is a range: the changes of some versions, or a chunk of a
snapshot. How it is sent, and what a crash in between means, is the delivery's business.
"""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from bridge import compact, failpoints
from bridge.columns import AFTER
from bridge.config import refuse_unpublishable
from bridge.definition import Definition, DeliveryGuarantee
from bridge.delta import change_feed
from bridge.delta.delta_errors import feed_errors
from bridge.errors import REPUBLISH, ConcurrentRunError, GapError, KafkaError
from bridge.kafka import admin, topic_creation
from bridge.kafka.sink import ProduceResult
from bridge.metrics import BatchReport, Listener, Summary, ignore
from bridge.options import FORMATS
from bridge.pipelines.changes import row_gate
from bridge.pipelines.publish import foreign_writes
from bridge.pipelines.publish.added_columns import with_added_columns
from bridge.pipelines.publish.consumer_registration import ConsumerRegistration
from bridge.pipelines.publish.delivery import Delivery, delivery_for
from bridge.pipelines.publish.partition_count import PartitionCount
from bridge.pipelines.publish.range_planner import RangePlanner
from bridge.pipelines.publish.range_records import changes_in_range, encode_changes_of_range
from bridge.pipelines.runtime import lease
from bridge.pipelines.runtime.monitoring import Notices
from bridge.pipelines.runtime.preflight import published_table, warnings_of
from bridge.pipelines.runtime.spark_errors import explain_errors
from bridge.publish_progress import NOTHING, PublishProgress, PublishRange

__all__ = ["publish"]

_POLL_SECONDS = 0.1
_CHECK_ENDS_SECONDS = 10.0
"""So often the topic's ends are asked for while the table does not change."""


def publish(
    spark: SparkSession,
    definition: Definition,
    *,
    listener: Listener = ignore,
    stop: threading.Event | None = None,
) -> Summary:
    """Send the table's changes to the topic (or topics) until there are no more (available-now) or `stop` is set.

    The first run begins where `publish.start` says; later runs go on where the last one ended, in the middle of a
    snapshot, too. Every commit gives at most one record per key: its row, or a tombstone; a changed primary key gives
    a tombstone for the old key and a record for the new one; an update that changes nothing gives none. Records of a
    key keep the order of the table's versions. CDC formats write one message per change with the row before and after,
    or with `publish.update-messages: pair` a delete and a create message. Under `publish.net-changes` all this holds
    for a batch instead of a commit. A table without a PRIMARY KEY gives one record per row added, and only with a CDC
    format may have updates and deletes.

    `sink.delivery-guarantee` at-least-once: after a crash the range that was under way is sent again, in the same
    order per key. exactly-once: readers of committed records see every record once; the records of one transaction
    together, and those of a version that changed primary keys in one transaction (as long as it is not larger than
    publish.transaction-rows, and no `sink.partitioner` places records by their task).

    Raises ConcurrentRunError when another run of the pipeline is at work, KafkaError, TableError, GapError before
    anything is sent; ConcurrentRunError when another run took over or wrote its progress in between.
    """
    with lease.acquire_lease(spark, definition, "publish") as ours:
        return _Run(spark, definition, listener, stop or threading.Event(), ours).run()


class _Run:
    delivery: Delivery
    state: PublishProgress
    latest: int
    """The table's newest version when it was last looked at."""
    ends_checked_at = float("-inf")
    """When the topic's ends were last looked at."""

    def __init__(
        self,
        spark: SparkSession,
        definition: Definition,
        listener: Listener,
        stop: threading.Event,
        ours: lease.Lease,
    ) -> None:
        self.spark, self.definition, self.listener, self.stop = spark, definition, listener, stop
        self.lease = ours
        self.summary = Summary(definition.name, "publish")
        refuse_unpublishable(definition.topic)
        row_gate.refuse_quarantine(definition)
        self.as_declared = admin.resolve(definition.topic), published_table(spark, definition)
        self._refresh_table()
        self.notices, self.registration = Notices(), ConsumerRegistration(definition, self.table)
        self.partition_count = PartitionCount(spark, definition)
        found = (
            row_gate.check_ready(spark, definition, self.table.fields),
            *topic_creation.prepare_topics(self.topic),
            *warnings_of(self.topic),
            *self.partition_count.warnings(self.topic),
        )
        for warning in (ours.warning, *found):
            self.notices.add(warning)

    def run(self) -> Summary:
        started = time.monotonic()
        interval = self.definition.run.trigger_seconds
        with delivery_for(self.spark, self.definition, self.topic) as self.delivery:
            self.planner = RangePlanner(
                self.definition, self.table, self.delivery.shards, self.delivery.file_tasks
            )
            self._begin()
            for warning in self.delivery.destination.warnings():
                self.notices.add(warning)
            self.notices.add(self.registration.update(self.state))
            while not self.stop.is_set():
                turn = time.monotonic()
                self.lease.check()
                self._finish_open()
                self._catch_up()
                if interval is None:
                    break
                self.stop.wait(max(_POLL_SECONDS, interval - (time.monotonic() - turn)))
        return replace(self.summary, warning=self.notices.all(), seconds=time.monotonic() - started)

    def _refresh_table(self) -> None:
        """See the table as it is now, before anything of it is sent."""
        topic, table = self.as_declared
        self.topic, self.table = with_added_columns(self.definition, topic, table, table.read({}).schema)

    def _begin(self) -> None:
        """Go on where the last run ended, or take the start position; a snapshot sends every present row as +I."""
        found = self.delivery.take_over()
        if found is not None and found.has_begun:
            change_feed.check_same(self.table, found.table_id)
            if found.open is not None and found.open.resync:
                raise GapError(
                    f"{self.definition.name!r}: a resync was broken off, so it is not known which version of "
                    f"{self.table} the topic holds; {REPUBLISH}"
                )
            self.state, self.latest = found, found.open.last if found.open else found.version
            return
        start = self.definition.publish.start
        self.latest = latest = change_feed.latest_version(self.table)
        batch = found.batch if found is not None else -1
        self.state = PublishProgress(self.definition.name, self.table.id, NOTHING, batch=batch)
        if start.mode == "snapshot":
            publish_range = self.planner.snapshot(latest)
            if publish_range.shards:
                # Else a run that dies while it opens the first range leaves the log open and Kafka without a word,
                # as if Kafka had forgotten one.
                self.state = self.delivery.record(self.state)
            self._open(publish_range)
            return
        if start.mode == "version":
            latest = int(start.value or 0) - 1
        elif start.mode == "timestamp":
            latest = change_feed.version_at(self.table, start.value or "") - 1
        self.state = self.delivery.record(replace(self.state, version=latest))

    def _catch_up(self) -> None:
        self.latest = latest = change_feed.latest_version(self.table)
        if self.stop.is_set():
            return
        if latest == self.state.version:
            self._check_foreign_writes()
            return
        self._refresh_table()
        self.notices.add(self.registration.lag_warning(self.state))
        for warning in self.partition_count.warnings(self.topic):
            self.notices.add(warning)
        first = self.state.version + 1
        change_feed.check_feed(self.table, first, max(first, latest), self.state.table_id, newest=latest)
        for publish_range in self.planner.changes(first, latest):
            if not self.stop.is_set():
                self._open(publish_range)
                self._finish_open()

    def _check_foreign_writes(self) -> None:
        """Where there is nothing to send: now and then, and in a run's first turn, whether others wrote meanwhile."""
        state = self.state
        if state.ends is None or time.monotonic() - self.ends_checked_at < _CHECK_ENDS_SECONDS:
            return
        with explain_errors(self.spark, self.definition, "comparing the topic with the table"):
            found = self._with_foreign_writes_repaired(state, 0)
            if found.progress != state:
                self.state = self.delivery.record(found.progress)
        self.summary = replace(
            self.summary,
            records_out=self.summary.records_out + found.sent,
            tombstones=self.summary.tombstones + found.tombstones,
        )

    def _with_foreign_writes_repaired(self, done: PublishProgress, sent: int) -> foreign_writes.Repair:
        """`done`, once no record of others since the last progress is newer than what it says."""
        definition = replace(self.definition, topic=self.topic)
        found = foreign_writes.repair_foreign_writes(
            definition, self.table, self.delivery, done, before=self.state.ends, sent=sent
        )
        self.ends_checked_at = time.monotonic()
        self.notices.add(found.warning)
        return found

    def _open(self, publish_range: PublishRange) -> None:
        self.state = self.delivery.record(self.state.opened(publish_range))
        failpoints.hit("publish.opened")

    def _finish_open(self) -> None:
        """Send the open range, and what it goes on with: the next chunks of a snapshot."""
        while self.state.open is not None and not self.stop.is_set():
            self.lease.check()
            self._send(self.state.open)

    def _send(self, publish_range: PublishRange) -> None:
        started = time.monotonic()
        versions = f"sending versions {publish_range.first} to {publish_range.last}"
        with (
            explain_errors(self.spark, self.definition, versions),
            feed_errors(self.table, publish_range.first, publish_range.last),
        ):
            sent, judged = self._send_range(publish_range)
        failpoints.hit("publish.sent")
        with explain_errors(self.spark, self.definition, "writing down progress"):
            found = self._with_foreign_writes_repaired(self.state.closed(lost=sent.lost), sent.records)
            self.state = self.delivery.record(found.progress)
        failpoints.hit("publish.closed")
        self.notices.add(self.registration.update(self.state))
        report = BatchReport(
            pipeline=self.definition.name,
            verb="publish",
            batch=self.state.batch,
            version=publish_range.last,
            records_out=sent.records + found.sent,
            tombstones=sent.tombstones + found.tombstones,
            lost=sent.lost,
            unexpected_rows=row_gate.unexpected(judged),
            pending_records=self.latest - publish_range.last,
            warning=self.notices.new(),
            seconds=time.monotonic() - started,
        )
        self.summary = self.summary.plus(report)
        self.listener(report)

    def _send_range(self, publish_range: PublishRange) -> tuple[ProduceResult, row_gate.Counts]:
        with ExitStack() as stack:
            changes = changes_in_range(
                publish_range,
                self.definition,
                self.topic,
                self.table,
                direct=self._sends_directly(publish_range),
            )
            judged = self._checked_by_gate(changes, stack)
            return self._produce(
                encode_changes_of_range(changes, self.definition, self.topic), publish_range
            ), judged

    def _sends_directly(self, publish_range: PublishRange) -> bool:
        """See Ranges.direct, which may read a whole version: it is asked only where it matters."""
        grouped = self.definition.publish.net_changes or not FORMATS[self.topic.value.name].insert_only
        return not (publish_range.snapshot or self.topic.appends or grouped) and self.planner.sends_directly(
            publish_range
        )

    def _checked_by_gate(self, changes: DataFrame, stack: ExitStack) -> row_gate.Counts:
        """What the gate says of the rows that go out, before any of them does. Raises QualityError."""
        if self.definition.gate is None:
            return ()
        rows = changes
        if AFTER in changes.columns:
            # They took a shuffle, which sending them would take once more.
            stack.callback(changes.persist().unpersist)
            rows = compact.upserts(changes)
        judged = row_gate.judge(self.definition, rows)
        way_out = (
            "correct the rows in the table, then `bridge resync` sends what differs (a publish by itself sends every "
            "version in turn, and stops again)"
        )
        for warning in row_gate.enforce(self.definition, judged, rows, "Nothing of it was sent", way_out):
            self.notices.add(warning)
        return judged

    def _produce(self, records: DataFrame, publish_range: PublishRange) -> ProduceResult:
        try:
            try:
                return self.delivery.send(records, publish_range)
            except ConcurrentRunError:
                # A task stood still. If nobody has taken over meanwhile, the range is sent again, in the same order.
                if self.topic.sink.delivery_guarantee is DeliveryGuarantee.EXACTLY_ONCE:
                    raise
                self.lease.refresh()
                return self.delivery.send(records, publish_range)
        except KafkaError as refused:
            which = f"(versions {publish_range.first} to {publish_range.last} of table {self.table})"
            raise type(refused)(f"{refused} {which}") from refused
