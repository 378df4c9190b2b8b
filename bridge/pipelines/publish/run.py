"""Delta -feed-> changes -compact-> changes -encode-> records -produce-> topic

What goes out between two writings-down of progress is a stretch: the changes of some versions, or a chunk of a
snapshot. How it is sent, and what a crash in between means, is the outlet's business.
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
from bridge.delta.delta_errors import reading
from bridge.errors import REPUBLISH, ConcurrentRunError, GapError, KafkaError
from bridge.kafka import admin, topic_creation
from bridge.kafka.sink import ProduceResult
from bridge.metrics import BatchReport, Listener, Summary, ignore
from bridge.options import FORMATS
from bridge.pipelines.changes import row_gate
from bridge.pipelines.publish import foreign_writes
from bridge.pipelines.publish.added_columns import grown
from bridge.pipelines.publish.consumer_registration import Presence
from bridge.pipelines.publish.delivery import Outlet, outlet
from bridge.pipelines.publish.partition_count import Partitions
from bridge.pipelines.publish.range_planner import Stretches
from bridge.pipelines.publish.range_records import changes_of, encoded
from bridge.pipelines.runtime import lease
from bridge.pipelines.runtime.monitoring import Notices
from bridge.pipelines.runtime.preflight import published_table, warnings_of
from bridge.pipelines.runtime.spark_errors import told
from bridge.publish_progress import NOTHING, PublishProgress, Stretch

__all__ = ["publish"]

_POLL_SECONDS = 0.1
_LOOK_SECONDS = 10.0
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

    `sink.delivery-guarantee` at-least-once: after a crash the stretch that was under way is sent again, in the same
    order per key. exactly-once: readers of committed records see every record once; the records of one transaction
    together, and those of a version that changed primary keys in one transaction (as long as it is not larger than
    publish.transaction-rows, and no `sink.partitioner` places records by their task).

    Raises ConcurrentRunError when another run of the pipeline is at work, KafkaError, TableError, GapError before
    anything is sent; ConcurrentRunError when another run took over or wrote its progress in between.
    """
    with lease.held(spark, definition, "publish") as ours:
        return _Run(spark, definition, listener, stop or threading.Event(), ours).run()


class _Run:
    outlet: Outlet
    state: PublishProgress
    latest: int
    """The table's newest version when it was last looked at."""
    looked = float("-inf")
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
        self._follow()
        self.notices, self.presence = Notices(), Presence(definition, self.table)
        self.partitions = Partitions(spark, definition)
        found = (
            row_gate.check_ready(spark, definition, self.table.fields),
            *topic_creation.prepare(self.topic),
            *warnings_of(self.topic),
            *self.partitions.warnings(self.topic),
        )
        for warning in (ours.warning, *found):
            self.notices.add(warning)

    def run(self) -> Summary:
        started = time.monotonic()
        interval = self.definition.run.trigger_seconds
        with outlet(self.spark, self.definition, self.topic) as self.outlet:
            self.stretches = Stretches(self.definition, self.table, self.outlet.slots, self.outlet.file_tasks)
            self._begin()
            for warning in self.outlet.destination.warnings():
                self.notices.add(warning)
            self.notices.add(self.presence.tell(self.state))
            while not self.stop.is_set():
                turn = time.monotonic()
                self.lease.check()
                self._finish_open()
                self._catch_up()
                if interval is None:
                    break
                self.stop.wait(max(_POLL_SECONDS, interval - (time.monotonic() - turn)))
        return replace(self.summary, warning=self.notices.all(), seconds=time.monotonic() - started)

    def _follow(self) -> None:
        """See the table as it is now, before anything of it is sent."""
        topic, table = self.as_declared
        self.topic, self.table = grown(self.definition, topic, table, table.read({}).schema)

    def _begin(self) -> None:
        """Go on where the last run ended, or take the start position; a snapshot sends every present row as +I."""
        found = self.outlet.take_over()
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
            stretch = self.stretches.snapshot(latest)
            if stretch.slots:
                # Else a run that dies while it opens the first stretch leaves the log open and Kafka without a word,
                # as if Kafka had forgotten one.
                self.state = self.outlet.record(self.state)
            self._open(stretch)
            return
        if start.mode == "version":
            latest = int(start.value or 0) - 1
        elif start.mode == "timestamp":
            latest = change_feed.version_at(self.table, start.value or "") - 1
        self.state = self.outlet.record(replace(self.state, version=latest))

    def _catch_up(self) -> None:
        self.latest = latest = change_feed.latest_version(self.table)
        if self.stop.is_set():
            return
        if latest == self.state.version:
            self._look_back()
            return
        self._follow()
        self.notices.add(self.presence.lag(self.state))
        for warning in self.partitions.warnings(self.topic):
            self.notices.add(warning)
        first = self.state.version + 1
        change_feed.check_feed(self.table, first, max(first, latest), self.state.table_id, newest=latest)
        for stretch in self.stretches.changes(first, latest):
            if not self.stop.is_set():
                self._open(stretch)
                self._finish_open()

    def _look_back(self) -> None:
        """Where there is nothing to send: now and then, and in a run's first turn, whether others wrote meanwhile."""
        state = self.state
        if state.ends is None or time.monotonic() - self.looked < _LOOK_SECONDS:
            return
        with told(self.spark, self.definition, "comparing the topic with the table"):
            found = self._settled(state, 0)
            if found.progress != state:
                self.state = self.outlet.record(found.progress)
        self.summary = replace(
            self.summary,
            records_out=self.summary.records_out + found.sent,
            tombstones=self.summary.tombstones + found.tombstones,
        )

    def _settled(self, done: PublishProgress, sent: int) -> foreign_writes.Settled:
        """`done`, once no record of others since the last progress is newer than what it says."""
        definition = replace(self.definition, topic=self.topic)
        found = foreign_writes.settled(
            definition, self.table, self.outlet, done, before=self.state.ends, sent=sent
        )
        self.looked = time.monotonic()
        self.notices.add(found.warning)
        return found

    def _open(self, stretch: Stretch) -> None:
        self.state = self.outlet.record(self.state.opened(stretch))
        failpoints.hit("publish.opened")

    def _finish_open(self) -> None:
        """Send the open stretch, and what it goes on with: the next chunks of a snapshot."""
        while self.state.open is not None and not self.stop.is_set():
            self.lease.check()
            self._send(self.state.open)

    def _send(self, stretch: Stretch) -> None:
        started = time.monotonic()
        versions = f"sending versions {stretch.first} to {stretch.last}"
        with (
            told(self.spark, self.definition, versions),
            reading(self.table, stretch.first, stretch.last),
        ):
            sent, judged = self._sent(stretch)
        failpoints.hit("publish.sent")
        with told(self.spark, self.definition, "writing down progress"):
            found = self._settled(self.state.closed(lost=sent.lost), sent.records)
            self.state = self.outlet.record(found.progress)
        failpoints.hit("publish.closed")
        self.notices.add(self.presence.tell(self.state))
        report = BatchReport(
            pipeline=self.definition.name,
            verb="publish",
            batch=self.state.batch,
            version=stretch.last,
            records_out=sent.records + found.sent,
            tombstones=sent.tombstones + found.tombstones,
            lost=sent.lost,
            unexpected_rows=row_gate.unexpected(judged),
            pending_records=self.latest - stretch.last,
            warning=self.notices.new(),
            seconds=time.monotonic() - started,
        )
        self.summary = self.summary.plus(report)
        self.listener(report)

    def _sent(self, stretch: Stretch) -> tuple[ProduceResult, row_gate.Counts]:
        with ExitStack() as stack:
            changes = changes_of(
                stretch, self.definition, self.topic, self.table, direct=self._is_direct(stretch)
            )
            judged = self._judged(changes, stack)
            return self._produced(encoded(changes, self.definition, self.topic), stretch), judged

    def _is_direct(self, stretch: Stretch) -> bool:
        """See Stretches.direct, which may read a whole version: it is asked only where it matters."""
        grouped = self.definition.publish.net_changes or not FORMATS[self.topic.value.name].insert_only
        return not (stretch.snapshot or self.topic.appends or grouped) and self.stretches.direct(stretch)

    def _judged(self, changes: DataFrame, stack: ExitStack) -> row_gate.Counts:
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

    def _produced(self, records: DataFrame, stretch: Stretch) -> ProduceResult:
        try:
            try:
                return self.outlet.send(records, stretch)
            except ConcurrentRunError:
                # A task stood still. If nobody has taken over meanwhile, the stretch is sent again, in the same order.
                if self.topic.sink.delivery_guarantee is DeliveryGuarantee.EXACTLY_ONCE:
                    raise
                self.lease.look()
                return self.outlet.send(records, stretch)
        except KafkaError as refused:
            which = f"(versions {stretch.first} to {stretch.last} of table {self.table})"
            raise type(refused)(f"{refused} {which}") from refused
