"""Runs a publish: Delta -feed-> changes -compact-> changes -encode-> records -produce-> topic

A publish sends one range after the other: the changes of some table versions, or a chunk of a snapshot. Progress is
recorded between ranges. The delivery decides how a range is sent and what a crash in the middle of it means. A range
whose task was stopped for a while is sent again. The gate (`quality.gate`) counts the rows of a range that break a rule
before any of them is sent.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from bridge import compact, failpoints
from bridge.backend import backend_of, persist, unpersist
from bridge.columns import AFTER
from bridge.definition import Definition, DeliveryGuarantee, Topic
from bridge.delta import change_feed
from bridge.delta.delta_errors import feed_errors
from bridge.delta.engine_choice import changes_frame
from bridge.delta.table import Table
from bridge.errors import REPUBLISH, ConcurrentRunError, GapError, KafkaError
from bridge.kafka.records import SendCounts
from bridge.lake.snapshot import one_look
from bridge.metrics import BatchReport, Counts, Listener, Summary, ignore, now_ms
from bridge.metrics.monitoring import monitored
from bridge.metrics.steps import TRANSACTION, step, taken, watched
from bridge.offsets import Offsets
from bridge.pipelines.changes import row_gate
from bridge.pipelines.publish.delivery import Delivery, delivery_for
from bridge.pipelines.publish.destination import Destination
from bridge.pipelines.publish.endpoints import ConsumerRegistration, Endpoints, PartitionCount
from bridge.pipelines.publish.foreign_writes import ForeignWriteMonitor
from bridge.pipelines.publish.range_planner import PlannedRange, RangePlanner
from bridge.pipelines.publish.range_records import (
    DriverRecords,
    changes_in_range,
    driver_records,
    encode_changes_of_range,
)
from bridge.pipelines.publish.sharding import FileShardLimits, sharding_for
from bridge.pipelines.runtime.executors import check_executors
from bridge.pipelines.runtime.lease import Lease, acquire_lease
from bridge.pipelines.runtime.lineage import publish_flow
from bridge.pipelines.runtime.monitoring import Notices
from bridge.pipelines.runtime.spark_errors import explain_errors
from bridge.publish_progress import NOTHING, PublishProgress, PublishRange
from bridge.watchdog import waiting
from bridge.ways import NotThisWay, told


def produce_range(
    send: Callable[[], SendCounts],
    publish_range: PublishRange,
    lease: Lease,
    topic: Topic,
    table: Table,
) -> SendCounts:
    """Send the records of an open range by `send`, a Delivery's, and return when the broker has acknowledged them.

    A task that was stopped for seconds fails the range with ConcurrentRunError, as another run may have taken over.
    Unless one has, an at-least-once publish sends the range once more, in the same order. Raises ConcurrentRunError,
    and KafkaError that names the versions.
    """
    try:
        try:
            return send()
        except ConcurrentRunError:
            if topic.sink.delivery_guarantee is DeliveryGuarantee.EXACTLY_ONCE:
                raise
            lease.refresh()
            return send()
    except KafkaError as failed:
        versions = f"(versions {publish_range.first} to {publish_range.last} of table {table})"
        raise type(failed)(f"{failed} {versions}") from failed


_WAY_OUT = (
    "correct the rows in the table, then `bridge resync` sends what differs (a publish by itself sends every version "
    "in turn, and stops again)"
)


def check_range(
    definition: Definition, changes: DataFrame, notices: Notices, stack: ExitStack
) -> row_gate.Counts:
    """Count what the gate finds in the rows of a range; empty without a gate.

    Under `gate: warn` the warnings go to `notices`. Changes that took a shuffle are cached until `stack` closes, so
    that sending them does not shuffle again. Raises QualityError under `gate: fail`.
    """
    if definition.gate is None:
        return ()
    rows = changes
    if AFTER in changes.columns:
        stack.callback(unpersist, persist(changes))
        rows = compact.upserts(changes)
    counts = row_gate.evaluate(definition, rows)
    for warning in row_gate.enforce(definition, counts, rows, "Nothing of it was sent", _WAY_OUT):
        notices.add(warning)
    return counts


_POLL_SECONDS = 0.1


def publish(
    spark: SparkSession,
    definition: Definition,
    *,
    listener: Listener = ignore,
    stop: threading.Event | None = None,
    file_shard_limits: FileShardLimits | None = None,
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

    `file_shard_limits` replaces the sizes from which a data file is a shard (docs/adr/017), for trials on small tables.

    Raises ConcurrentRunError when another run of the pipeline holds the lease, KafkaError, TableError and GapError
    before anything is sent; ConcurrentRunError when another run takes over or records its progress meanwhile.
    """
    check_executors(spark, definition, sends=True)
    name = definition.run_name("publish")
    with (
        watched(name, definition.run.step_timeout_seconds),
        acquire_lease(spark, definition, "publish") as lease,
        monitored(
            definition.run.monitoring,
            listener,
            name,
            owner=lease.owner,
            died=lease.died,
            flow=partial(publish_flow, spark, definition),
            stop=stop,
        ) as listen,
    ):
        limits = file_shard_limits or FileShardLimits.from_environment()
        return _Run(spark, definition, listen, stop or threading.Event(), lease, limits).run()


class _Run:
    delivery: Delivery
    progress: PublishProgress
    open_range: PlannedRange | None
    """The range that `progress` has open, as it was planned."""
    latest: int
    """The newest version of the table when the log was last read."""

    def __init__(
        self,
        spark: SparkSession,
        definition: Definition,
        listener: Listener,
        stop: threading.Event,
        lease: Lease,
        file_shard_limits: FileShardLimits,
    ) -> None:
        self.spark, self.definition, self.listener, self.stop = spark, definition, listener, stop
        self.lease, self.file_shard_limits = lease, file_shard_limits
        guarantee = definition.topic.sink.delivery_guarantee
        self.sends = TRANSACTION if guarantee is DeliveryGuarantee.EXACTLY_ONCE else "send"
        self.summary, self.notices = Summary(definition.name, "publish"), Notices()
        with one_look():
            self.endpoints = Endpoints(spark, definition)
        self.registration = ConsumerRegistration(definition, self.endpoints.table)
        self.partition_count = PartitionCount(spark, definition)
        warnings = [*self.endpoints.prepare(), *self.partition_count.warnings(self.endpoints.topic)]
        self._notify(lease.warning, *warnings)

    def run(self) -> Summary:
        started = time.monotonic()
        interval = self.definition.run.trigger_seconds
        destination = Destination(self.definition, self.endpoints.topic)
        with delivery_for(self.spark, self.definition, destination) as self.delivery:
            self._begin(destination)
            self._notify(*destination.warnings(), self.registration.update(self.progress))
            while not self.stop.is_set():
                turn = time.monotonic()
                self.lease.check()
                self._publish_open_range()
                self._publish_new_versions()
                if interval is None:
                    break
                with waiting():
                    self.stop.wait(max(_POLL_SECONDS, interval - (time.monotonic() - turn)))
        return replace(self.summary, warning=self.notices.all(), seconds=time.monotonic() - started)

    def _begin(self, destination: Destination) -> None:
        """Continue where the last run ended, or begin at `publish.start`."""
        sharding = sharding_for(self.endpoints.topic, backend_of(self.spark).parallelism)
        self.planner = RangePlanner(self.definition, self.endpoints.table, sharding, self.file_shard_limits)
        self.foreign_writes = ForeignWriteMonitor(self.definition, self.delivery, self.notices)
        start = _start_position(self.definition, self.endpoints.table, self.delivery, self.planner)
        self.progress, self.latest, self.open_range = start.progress, start.latest, start.open_range
        if start.is_first:
            self._notify(destination.first_run_warning(self.definition.run))
        if start.snapshot is not None:
            self._open(start.snapshot)

    def _publish_new_versions(self) -> None:
        """Publish what was committed to the table since the last call, range by range."""
        with one_look():
            self.latest = change_feed.latest_version(self.endpoints.table)
            ranges = self._new_ranges()
            planned = next(ranges, None)
        if self.latest == self.progress.version and not self.stop.is_set():
            self._check_foreign_writes()
        while planned is not None and not self.stop.is_set():
            self._open(planned)
            self._publish_open_range()
            planned = next(ranges, None)

    def _new_ranges(self) -> Iterator[PlannedRange]:
        """What was committed to the table up to the version `latest`. Raises as `check_feed`."""
        latest = self.latest
        if self.stop.is_set() or latest == self.progress.version:
            return
        self.endpoints.refresh()
        self._notify(
            self.registration.lag_warning(self.progress), *self.partition_count.warnings(self.endpoints.topic)
        )
        first = self.progress.version + 1
        change_feed.check_feed(
            self.endpoints.table, first, max(first, latest), self.progress.table_id, newest=latest
        )
        yield from self.planner.changes(first, latest)

    def _publish_open_range(self) -> None:
        """Publish the open range and what follows it: the next chunks of a snapshot."""
        while self.open_range is not None and not self.stop.is_set():
            self.lease.check()
            self._publish(self.open_range)

    def _open(self, planned: PlannedRange) -> None:
        """Record a range as open, before any of it is sent."""
        self.progress = self.delivery.record(self.progress.opened(planned.recorded))
        self.open_range = planned.continued(self.progress.open)
        failpoints.hit("publish.opened")

    def _publish(self, planned: PlannedRange) -> None:
        """One range: feed, compact, check the gate, encode, produce, record progress, report."""
        started = time.monotonic()
        topic, table = self.endpoints.topic, self.endpoints.table
        first, last = planned.recorded.first, planned.recorded.last
        with (
            step(self.sends, sending := f"sending versions {first} to {last}"),
            explain_errors(self.spark, self.definition, sending, sends=True),
            feed_errors(table, first, last),
            ExitStack() as stack,
        ):
            try:
                records_in_driver = self._driver_records(planned)
            except NotThisWay as reason:
                sender = told("tasks", reason)
                changes = changes_in_range(planned, table, self.definition)
                gate_counts = check_range(self.definition, changes, self.notices, stack)
                records, encoder = encode_changes_of_range(changes, planned.recorded, self.definition, topic)
                send = partial(self.delivery.send, records, planned.recorded)
            else:
                sender = encoder = told("driver")
                gate_counts = self._judged(records_in_driver, stack)
                send = partial(self._send_in_driver, records_in_driver)
            sending_since = time.monotonic()
            sent = produce_range(send, planned.recorded, self.lease, topic, table)
            send_seconds = time.monotonic() - sending_since
        failpoints.hit("publish.sent")
        with (
            step("record", "recording progress"),
            explain_errors(self.spark, self.definition, "recording progress"),
        ):
            progress = replace(self.progress.closed(lost=sent.lost), sender=sender)
            ends = self.progress.ends
            repair = self.foreign_writes.repair(topic, table, progress, before=ends, sent=sent.records)
            self.progress = self.delivery.record(repair.progress)
            self.open_range = planned.continued(self.progress.open)
        failpoints.hit("publish.closed")
        self._notify(self.registration.update(self.progress))
        self._report(
            BatchReport(
                pipeline=self.definition.name,
                verb="publish",
                batch=self.progress.batch,
                topic=topic.title,
                version=last,
                first_version=first,
                table=table.id,
                records_out=sent.records + repair.sent,
                tombstones=sent.tombstones + repair.tombstones,
                bytes_out=sent.bytes + repair.bytes,
                lost=sent.lost,
                transactions=sent.transactions,
                unexpected_rows=row_gate.unexpected_rows(gate_counts),
                pending_records=self.latest - last,
                committed_ms=now_ms(),
                warning=self.notices.new(),
                sender=sender,
                encoder=encoder,
                send_seconds=send_seconds,
                seconds=time.monotonic() - started,
                steps=taken(),
                sent_to=self.progress.ends.moved_since(ends or Offsets()) if self.progress.ends else (),
            )
        )

    def _driver_records(self, planned: PlannedRange) -> DriverRecords:
        """What the driver sends of the range. Raises NotThisWay where Spark's tasks send it."""
        if self.delivery.send_in_driver is None:
            raise NotThisWay("it is sent in transactions")
        return driver_records(planned, self.endpoints.table, self.definition, self.endpoints.topic)

    def _send_in_driver(self, records: DriverRecords) -> SendCounts:
        send = self.delivery.send_in_driver
        assert send is not None
        return send(records)

    def _judged(self, records: DriverRecords, stack: ExitStack) -> row_gate.Counts:
        """Do as `check_range` with what the driver has read."""
        if records.judged is None:
            return ()
        rows = changes_frame(self.endpoints.table, records.judged)
        return check_range(self.definition, rows, self.notices, stack)

    def _check_foreign_writes(self) -> None:
        """Repair foreign writes while there is nothing to publish."""
        if not self.foreign_writes.is_due(self.progress):
            return
        topic, table, ends = self.endpoints.topic, self.endpoints.table, self.progress.ends
        comparing = "comparing the topic with the table"
        with step("compare", comparing), explain_errors(self.spark, self.definition, comparing):
            repair = self.foreign_writes.repair(topic, table, self.progress, before=ends, sent=0)
            if repair.progress != self.progress:
                self.progress = self.delivery.record(repair.progress)
        repaired = Counts(records_out=repair.sent, tombstones=repair.tombstones, bytes_out=repair.bytes)
        self.summary = replace(self.summary, **self.summary.sums(repaired))

    def _notify(self, *warnings: str | None) -> None:
        for warning in warnings:
            self.notices.add(warning)

    def _report(self, report: BatchReport) -> None:
        self.summary = self.summary.plus(report)
        self.listener(report)


@dataclass(frozen=True)
class _StartPosition:
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


def _start_position(
    definition: Definition, table: Table, delivery: Delivery, planner: RangePlanner
) -> _StartPosition:
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
        return _StartPosition(progress, latest, snapshot=snapshot, is_first=True)
    if start.mode == "version":
        latest = int(start.value or 0) - 1
    elif start.mode == "timestamp":
        latest = change_feed.version_at(table, start.value or "") - 1
    return _StartPosition(delivery.record(replace(progress, version=latest)), latest, is_first=True)


def _resumed(
    definition: Definition, table: Table, planner: RangePlanner, progress: PublishProgress
) -> _StartPosition:
    change_feed.check_same(table, progress.table_id)
    open_range = progress.open
    if open_range is None:
        return _StartPosition(progress, progress.version)
    if open_range.resync:
        raise GapError(
            f"{definition.name!r}: a resync was interrupted, so it is not known which version of {table} the topic "
            f"holds; {REPUBLISH}"
        )
    return _StartPosition(progress, open_range.last, open_range=planner.plan(open_range))
